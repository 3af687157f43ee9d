/* Status: the status line, and which of Run and Stop can be pressed: what a press says at once. */
(() => {
  "use strict";
  const { h, say, on, emit, panels, run, line } = window.Scope;

  const STARTS = { "": "#run, #whatif-run, [data-action^='measure']", "tune-": "#tune-run", "model-": "#model-load, #model-estimate" };
  const BUSY = "A run is going on: wait for its end, or press Stop first.";
  const IDLE = "Nothing is running.";
  const OFFLINE = "No connection to the server.";
  const SEEKING = "error: connection lost; your run is shown here as soon as the server answers again";
  const CUT_OFF = "error: the connection was lost, and this with it; what is shown is kept";
  const LOOK_SECONDS = 1;
  const HINT_SECONDS = 4;
  const ANSWER_SECONDS = 10;
  const SILENCE_SECONDS = 5;

  /** One status line with the Run and Stop that stand beside it; `#tune-status` goes with `#tune-run`. */
  class Status {
    constructor(root, { props, trigger, drawn, block }) {
      this.props = props;
      this.trigger = trigger;
      this.block = block;
      this.drawn = drawn;
      this.prefix = block.id.replace(/status$/, "");
      this.line = h("span", {});
      this.hint = h("span", { class: "es-hint" });
      this.bar = h("i", { class: "es-busy", "aria-hidden": "true" });
      root.append(this.bar, h("p", { class: "es-status", role: "status", "aria-live": "polite" }, this.line, " ", this.hint));
      this.said = "";
      this.stopping = this.again = this.astray = this.ours = this.asked = false;
      document.addEventListener("click", (event) => this.pressed(event), true);
      if (!this.prefix) document.addEventListener("keydown", (event) => this.key(event));
      on("line", ({ lost }) => (lost ? this.lose() : this.astray && this.look()));
    }

    get running() {
      return this.said.startsWith("running");
    }

    get stop() {
      return document.getElementById(`${this.prefix}stop`);
    }

    get run() {
      return document.querySelector(STARTS[this.prefix].split(",")[0]);
    }

    update({ text }) {
      clearTimeout(this.waiting);
      // News that had to be asked for: nobody tells this page of its run any more.
      if (this.asked && text !== this.said) this.astray = true;
      this.asked = false;
      this.say(text);
      this.ours = this.ours && this.running;
      this.astray = this.astray && this.running;
      if (this.astray) this.waiting = setTimeout(() => this.look(), 1000 * LOOK_SECONDS);
      else if (this.ours) this.listen();
    }

    /** A connection cut in an unlucky moment may lose a press, or all that is told of its run, without an error:
     * after a silence the server is asked how the run stands. */
    listen() {
      this.waiting = setTimeout(() => {
        this.asked = true;
        this.look();
      }, 1000 * SILENCE_SECONDS);
    }

    /** What was going on is told here no more; a run can be looked for, a search ends with its stream. */
    lose() {
      clearTimeout(this.waiting);
      this.again = false;
      if (!this.running && !this.astray) return;
      this.astray = !this.prefix;
      this.say(this.astray ? SEEKING : CUT_OFF);
    }

    /** Ask how the run stands that was going on when the connection was lost. */
    look() {
      if (line.lost) return;
      this.waiting = setTimeout(() => this.look(), 1000 * ANSWER_SECONDS);
      this.props.value = "";
      this.trigger("click", { seen: run.state === "running" ? run.order - 1 : run.order });
    }

    say(text) {
      this.said = text;
      if (!this.running) this.stopping = false;
      const state = text.split(/[: ]/, 1)[0];
      const stopping = this.again ? "running: stopping, then running again" : "running: stopping after this step…";
      say(this.line, this.stopping ? stopping : text);
      if (!this.stopping && this.block.dataset.state !== state) this.tell("");
      this.block.dataset.state = state;
      this.block.dataset.stopping = this.stopping ? "yes" : "no";
      this.show();
      emit("status", { text });
      this.drawn();
      if (!this.running && this.again) {
        this.again = false;
        this.run.click();
      }
    }

    /** Which buttons can be pressed, in a way that leaves them in reach of the keyboard. */
    show() {
      this.set(this.stop, !this.running || this.stopping, this.running ? "Stop after the step in hand; what was decoded is kept" : IDLE);
      for (const start of document.querySelectorAll(STARTS[this.prefix])) {
        this.set(start, this.running && !(this.stopping && start === this.run), this.running ? BUSY : "");
      }
    }

    set(button, off, title) {
      if (!button) return;
      if (off) button.setAttribute("aria-disabled", "true");
      else button.removeAttribute("aria-disabled");
      if (title) button.title = title;
      else button.removeAttribute("title");
    }

    pressed(event) {
      const button = event.target.closest && event.target.closest("button");
      if (!button) return;
      if (button === this.stop) this.pressedStop(event);
      else if (button.matches(STARTS[this.prefix])) this.pressedStart(event, button);
    }

    pressedStop(event) {
      if (!this.running) {
        event.stopImmediatePropagation();
        this.tell(IDLE);
        return;
      }
      this.stopping = true;
      this.again = false;
      this.say(this.said);
    }

    pressedStart(event, button) {
      if (line.lost) {
        event.stopImmediatePropagation();
        this.tell(OFFLINE);
        return;
      }
      if (!this.running) {
        this.astray = false;
        // Of the Decode tab's, the others tell of themselves.
        if (button === this.run || this.prefix) this.expect();
        return;
      }
      event.stopImmediatePropagation();
      if (this.stopping && button === this.run) {
        this.again = true;
        this.say(this.said);
      } else {
        this.tell(BUSY);
      }
    }

    /** Busy from the press on, whatever becomes of it on its way. */
    expect() {
      const before = this.said;
      this.ours = true;
      this.listen();
      // After the press itself has been handled, which a running state would swallow.
      setTimeout(() => {
        if (this.said !== before) return;
        // Or an answer equal to the last one would change nothing and be told to nobody.
        this.props.value = "";
        this.say("running: starting");
      });
    }

    /** A word on a press that did nothing. */
    tell(text) {
      say(this.hint, text);
      clearTimeout(this.fading);
      if (text) this.fading = setTimeout(() => say(this.hint, ""), HINT_SECONDS * 1000);
    }

    key(event) {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !event.target.closest("#controls")) return;
      event.preventDefault();
      this.run.click();
    }
  }

  panels.status = (root, tools) => new Status(root, tools);
})();
