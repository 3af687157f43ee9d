/* Strips: one line of marks a run over the scrubber: tall where all was recomputed, short where little was. */
(() => {
  "use strict";
  const { h, on, emit, css, run, LETTERS } = window.Scope;

  const LEFT = 14;
  const RIGHT = 8;
  const HEIGHT = 14;
  const SHARE_PARTIAL = 0.42;

  class Strips {
    constructor() {
      this.element = h("div", { class: "es-strips" });
      this.byTime = false;
      this.shown = [];
      on("theme", () => this.draw());
      // Told, not asked: asking makes the browser lay out the page once more for every step that comes.
      this.width = 0;
      new ResizeObserver(([{ contentRect }]) => {
        this.width = contentRect.width;
        this.draw();
      }).observe(this.element);
    }

    /** One canvas a lane; a click goes to the step under it. */
    rebuild() {
      this.canvas = run.lanes.map((lane, index) => {
        const canvas = h("canvas", { class: "es-strip", role: "img" });
        canvas.addEventListener("click", (event) => this.seek(lane, event));
        canvas.title = `${LETTERS[index]} ${lane.head.label}: click to go to a step`;
        return canvas;
      });
      this.element.replaceChildren(...this.canvas);
    }

    show(shown, byTime) {
      this.shown = shown;
      this.byTime = byTime;
      this.draw();
    }

    /** Where step `step` of a lane ends, as a share of the track. */
    stop(lane, step) {
      if (this.byTime) return (lane.seconds[step] || 0) / (run.maxSeconds || 1);
      return (step + 1) / Math.max(1, run.maxSteps);
    }

    seek(lane, event) {
      const share = (event.offsetX - LEFT) / (event.target.clientWidth - LEFT - RIGHT);
      const step = lane.steps.findIndex((_, index) => this.stop(lane, index) >= share);
      if (step >= 0) emit("seek", { step });
    }

    draw() {
      if (!this.canvas) return;
      this.canvas.forEach((canvas, index) => this.drawLane(canvas, run.lanes[index], index));
    }

    drawLane(canvas, lane, index) {
      if (!lane) return;
      const { width } = this;
      const ratio = window.devicePixelRatio || 1;
      if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
      if (canvas.height !== HEIGHT * ratio) canvas.height = HEIGHT * ratio;
      const pen = canvas.getContext("2d");
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, HEIGHT);
      this.drawLetter(pen, index);
      const track = width - LEFT - RIGHT;
      const [full, partial] = [css("--es-fresh"), css("--es-partial")];
      lane.steps.forEach((step, at) => {
        const start = LEFT + track * (at ? this.stop(lane, at - 1) : 0);
        const stop = LEFT + track * this.stop(lane, at);
        const gap = stop - start > 3 ? 1 : 0;
        const height = step.f ? HEIGHT : HEIGHT * SHARE_PARTIAL;
        pen.globalAlpha = at < (this.shown[index] || 0) ? 1 : 0.3;
        pen.fillStyle = step.f ? full : partial;
        pen.fillRect(start, HEIGHT - height, Math.max(1, stop - start - gap), height);
      });
      pen.globalAlpha = 1;
      const fulls = lane.steps.filter((step) => step.f).length;
      canvas.setAttribute("aria-label", `${lane.head.label}: ${fulls} of ${lane.steps.length} steps recomputed everything`);
    }

    drawLetter(pen, index) {
      if (run.lanes.length < 2) return;
      pen.fillStyle = css(`--lane-${index}`);
      pen.font = `700 10px ${css("--font")}`;
      pen.fillText(LETTERS[index], 1, HEIGHT - 3);
    }
  }

  window.Scope.Strips = Strips;
})();
