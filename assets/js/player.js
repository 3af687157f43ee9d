/* Player: which step is on show. A live run is shown as it is, a finished one replayed at a pace of choice. */
(() => {
  "use strict";
  const { h, say, on, emit, run, Strips } = window.Scope;

  const SPEEDS = [0.25, 0.5, 1, 2, 4];
  const STEPS_PER_SECOND = 8;
  const TIME_TICKS = 1000;

  class Player {
    constructor() {
      this.byTime = false;
      this.at = 0;
      this.playing = false;
      this.following = false;
      this.speed = 1;
      this.last = 0;
      this.tick = this.tick.bind(this);
      this.build();
      on("seek", ({ step }) => this.seek(step + 1));
    }

    build() {
      this.button = h("button", { type: "button", class: "es-play", onclick: () => this.toggle() });
      this.range = h("input", { type: "range", class: "es-range", min: 0, max: 1, step: 1, value: 0 });
      this.range.setAttribute("aria-label", "denoising step");
      this.range.addEventListener("input", () => this.scrub(Number(this.range.value)));
      this.where = h("output", { class: "es-where" });
      this.speedButton = h("button", { type: "button", class: "es-chip", onclick: () => this.nextSpeed() });
      this.axis = h("button", { type: "button", class: "es-chip", onclick: () => this.setAxis(!this.byTime) });
      this.strips = new Strips();
      const track = h("div", { class: "es-track" }, this.strips.element, this.range);
      this.element = h(
        "div",
        { class: "es-player", role: "group", "aria-label": "replay" },
        this.button, track, this.where, h("span", { class: "es-pace" }, this.axis, this.speedButton)
      );
      this.label();
    }

    get end() {
      return this.byTime ? run.maxSeconds : run.maxSteps;
    }

    /** Steps shown of each lane. */
    shown() {
      return run.lanes.map((lane) => {
        if (this.byTime) return lane.shownAfter(this.at);
        return Math.min(Math.floor(this.at + 1e-6), lane.steps.length);
      });
    }

    /** New steps have come: show them at once, unless another step was asked for in the meantime. */
    arrived(fresh) {
      if (fresh) {
        this.following = true;
        this.playing = this.byTime = false;
      }
      if (this.following) this.at = this.end;
      if (run.state !== "running") this.following = false;
      this.draw();
    }

    start() {
      if (this.ticking) return;
      this.ticking = true;
      this.last = performance.now();
      requestAnimationFrame(this.tick);
    }

    tick(now) {
      const passed = Math.min(0.25, (now - this.last) / 1000);
      this.last = now;
      if (this.playing) {
        const pace = this.byTime ? 1 : STEPS_PER_SECOND;
        this.at = Math.min(this.end, this.at + passed * pace * this.speed);
        if (this.at >= this.end) this.playing = false;
      }
      this.draw();
      if (this.playing) requestAnimationFrame(this.tick);
      else this.ticking = false;
    }

    toggle() {
      this.following = false;
      this.playing = !this.playing;
      if (this.playing && this.at >= this.end) this.at = 0;
      if (this.playing) this.start();
      this.draw();
    }

    seek(shown) {
      this.following = this.playing = false;
      if (this.byTime) {
        const lane = run.lanes.reduce((a, b) => (b.steps.length > a.steps.length ? b : a));
        this.at = lane.seconds[Math.min(shown, lane.seconds.length) - 1] || 0;
      } else {
        this.at = Math.max(0, Math.min(this.end, shown));
      }
      this.draw();
    }

    scrub(value) {
      this.following = this.playing = false;
      this.at = this.byTime ? (value / TIME_TICKS) * this.end : value;
      this.draw();
    }

    nextSpeed() {
      this.speed = SPEEDS[(SPEEDS.indexOf(this.speed) + 1) % SPEEDS.length];
      this.label();
    }

    /** By step, or by the seconds that each lane really took: a race. */
    setAxis(byTime) {
      const share = this.end ? this.at / this.end : 1;
      this.byTime = byTime;
      this.at = byTime ? share * this.end : Math.round(share * this.end);
      this.draw();
    }

    label() {
      say(this.speedButton, `${this.speed}×`);
      this.speedButton.setAttribute("aria-label", `replay speed ${this.speed} times`);
      say(this.axis, this.byTime ? "by time" : "by step");
      this.axis.setAttribute(
        "title",
        this.byTime ? "Replayed at the speed each run really had" : "Replayed step by step"
      );
      const word = this.playing ? "Pause" : "Replay";
      this.button.setAttribute("aria-label", word);
      this.button.setAttribute("title", `${word} (Space)`);
      this.button.classList.toggle("playing", this.playing);
    }

    draw() {
      const max = this.byTime ? TIME_TICKS : Math.max(1, this.end);
      const value = this.byTime ? (this.at / (this.end || 1)) * TIME_TICKS : Math.floor(this.at + 1e-6);
      this.range.max = max;
      this.range.value = value;
      this.range.style.setProperty("--done", `${(100 * value) / max}%`);
      const text = this.byTime
        ? `${this.at.toFixed(2)} of ${this.end.toFixed(2)} s`
        : `step ${value} of ${this.end}`;
      say(this.where, text);
      this.range.setAttribute("aria-valuetext", text);
      this.label();
      this.strips.show(this.shown(), this.byTime);
      emit("cursor", { shown: this.shown(), settled: !this.following && !this.playing });
    }
  }

  window.Scope.Player = Player;
})();
