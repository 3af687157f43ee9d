/* Lanes: one policy's run as the browser keeps it, built from frames, asked for any step of it. */
(() => {
  "use strict";

  const UNSEEN = 32767;

  /** One run. Positions count from the start of the generation; `shown` counts steps, 0 is all masked. */
  class Lane {
    constructor(head) {
      this.head = head;
      this.steps = [];
      this.seconds = [];
      this.text = new Array(head.gen).fill("");
      this.end = new Array(head.gen).fill(false);
      this.decodedAt = new Int16Array(head.gen).fill(UNSEEN);
      this.confidence = new Float32Array(head.gen);
      this.entropy = new Float32Array(head.gen);
      this.refreshedAt = [];
      this.state = "running";
      this.judged = "";
    }

    get canvas() {
      return this.head.prompt + this.head.gen;
    }

    add(step) {
      if (step.s !== this.steps.length) return;
      for (const [position, text, confidence, entropy, ends] of step.c) {
        this.text[position] = text;
        this.end[position] = Boolean(ends);
        this.decodedAt[position] = step.s;
        this.confidence[position] = confidence;
        this.entropy[position] = entropy;
      }
      const before = this.refreshedAt[step.s - 1];
      const last = before ? before.slice() : new Int16Array(this.canvas).fill(-1);
      for (const [first, count] of step.r) last.fill(step.s, first, first + count);
      this.refreshedAt.push(last);
      this.seconds.push((this.seconds[step.s - 1] || 0) + step.t);
      this.steps.push(step);
    }

    /** Steps finished within the first `seconds` of decoding. */
    shownAfter(seconds) {
      let low = 0;
      let high = this.seconds.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.seconds[middle] <= seconds + 1e-9) low = middle + 1;
        else high = middle;
      }
      return low;
    }

    isDecoded(position, shown) {
      return this.decodedAt[position] < shown;
    }

    /** Steps since the position's K/V were computed, null before the first step. Canvas positions. */
    age(canvasPosition, shown) {
      const last = this.refreshedAt[shown - 1];
      return last ? shown - 1 - last[canvasPosition] : null;
    }

    isRefreshed(canvasPosition, shown) {
      return this.age(canvasPosition, shown) === 0;
    }

    /** First position of the block that step `shown - 1` worked on. */
    blockStart(shown) {
      const { gen, block, sliding } = this.head;
      if (shown === 0) return 0;
      let first = 0;
      while (first < gen - 1 && this.decodedAt[first] < shown - 1) first += 1;
      return sliding ? first : Math.floor(first / block) * block;
    }

    decodedCount(shown) {
      let count = 0;
      for (const at of this.decodedAt) if (at < shown) count += 1;
      return count;
    }

    /** Text decoded without a gap from the start: it only ever grows. */
    prefix(shown) {
      let text = "";
      for (let position = 0; position < this.head.gen; position += 1) {
        if (!this.isDecoded(position, shown) || this.end[position]) break;
        text += this.text[position];
      }
      return text.replace(/^ /, "");
    }

    /** Why there is no text where there will be none; "" else. */
    whyEmpty(shown) {
      if (!this.end[0] || !this.isDecoded(0, shown)) return "";
      const known = this.head.embedded ? "; the embedded model often does on prompts unlike those it learned" : "";
      return `(empty: the model wrote end-of-text first${known})`;
    }
  }

  /** The run on show; only a newer one may take its place. */
  class Run {
    constructor() {
      this.id = null;
      this.order = -1;
      this.lanes = [];
      this.state = "empty";
      this.example = false;
      this.samePrompt = true;
    }

    /** Take a frame; false where it is late: of an older run, or more of one that has ended. */
    take(frame) {
      if (frame.order < this.order) return false;
      if (frame.whole || frame.order > this.order) {
        if (!frame.whole && !frame.starts) return false;
        this.id = frame.run;
        this.order = frame.order;
        this.lanes = [];
        this.example = Boolean(frame.example);
      } else if (this.state !== "running") {
        return false;
      }
      this.state = frame.state;
      this.samePrompt = frame.same_prompt;
      for (const part of frame.lanes) {
        if (part.head) this.lanes[part.lane] = new Lane(part.head);
        const lane = this.lanes[part.lane];
        if (!lane) continue;
        for (const step of part.steps) lane.add(step);
        lane.state = part.state;
        lane.judged = part.judged || "";
      }
      return true;
    }

    get maxSteps() {
      return Math.max(0, ...this.lanes.map((lane) => lane.steps.length));
    }

    get maxSeconds() {
      return Math.max(0, ...this.lanes.map((lane) => lane.seconds[lane.seconds.length - 1] || 0));
    }

    /** The lane others are compared with: the one without a cache, else the first. */
    get reference() {
      return this.lanes.find((lane) => lane.head.policy === "none") || this.lanes[0];
    }
  }

  window.Scope.run = new Run();
})();
