/* Cells: one run in the token grid: a fixed cell for every position, its facts, the text so far. */
(() => {
  "use strict";
  const { h, say, emit, run, LETTERS } = window.Scope;

  const LEVELS = 7;
  const COLOURS = {
    entropy: "uncertainty at commit (entropy)",
    confidence: "doubt at commit (1 − confidence)",
    step: "step of the commit",
    age: "age of the cached K/V",
  };

  /** Blanks in a token are made visible: they are part of what the model chose. */
  function glyphs(text) {
    return text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/^ (?=\S)/, "").replace(/ /g, "·") || "·";
  }

  /** Letters of one width that a text is as wide as: those of East Asia take more than one. */
  const width = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u2e7f" ? 1.7 : 1), 0);
  const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

  /** Colour level 0..LEVELS-1 of a decoded position. */
  function level(lane, position, shown, colour) {
    const scale = (value, top) => Math.max(0, Math.min(LEVELS - 1, Math.round((value / top) * (LEVELS - 1))));
    if (colour === "confidence") return scale(1 - lane.confidence[position], 0.8);
    if (colour === "step") return scale(lane.decodedAt[position], Math.max(1, lane.steps.length - 1));
    if (colour === "age") return scale(lane.age(lane.head.prompt + position, shown) || 0, 12);
    return scale(lane.entropy[position], 1.5);
  }

  class Cells {
    constructor(lane, index, view) {
      this.lane = lane;
      this.view = view;
      const { head } = lane;
      const letter = h("b", { class: `es-letter lane-${index}` }, LETTERS[index]);
      this.badge = h("span", { class: "es-badge" });
      this.where = h("span", { class: "es-lane-step" });
      const single = run.lanes.length === 1;
      const title = h("h3", {}, single ? null : letter, h("span", {}, head.label));
      this.prompt = h("div", { class: "es-prompt-fill" });
      const prompt = h(
        "div",
        { class: "es-prompt", title: "share of the prompt's K/V recomputed in this step" },
        this.prompt,
        h("span", {}, `prompt · ${counted(head.prompt, "token")}`)
      );
      this.cells = h("div", { class: "es-cells", role: "listbox", "aria-label": `tokens of ${head.label}` });
      this.cell = [];
      // Side by side, long generations take smaller cells rather than twice the height.
      if (!single && head.gen > 128) this.cells.style.setProperty("--columns", 16);
      for (let position = 0; position < head.gen; position += 1) {
        const first = position && position % head.block === 0 ? " first" : "";
        const cell = h("span", { class: `c${first}`, role: "option", "data-p": position, tabindex: -1 });
        this.cell.push({ element: cell, classes: "", text: "", first });
        this.cells.append(cell);
      }
      if (this.cell.length) this.cell[0].element.tabIndex = 0;
      this.text = h("pre", { class: "es-text", tabindex: 0, "aria-label": `text of ${head.label}` });
      this.element = h(
        "section",
        { class: "es-lane" },
        h("header", {}, title, this.badge, this.where),
        prompt,
        h("div", { class: "es-lane-body" }, this.cells, this.text)
      );
      this.listen();
    }

    listen() {
      const positionOf = (event) => {
        const cell = event.target.closest("[data-p]");
        return cell ? Number(cell.dataset.p) : null;
      };
      const point = (event) => {
        const position = positionOf(event);
        emit("hover", position === null ? {} : { positions: [position] });
      };
      this.cells.addEventListener("pointerover", point);
      this.cells.addEventListener("focusin", (event) => {
        this.describe(positionOf(event));
        point(event);
      });
      this.cells.addEventListener("pointerleave", () => emit("hover"));
      this.cells.addEventListener("focusout", () => emit("hover"));
      this.cells.addEventListener("click", (event) => this.pin(positionOf(event)));
      this.cells.addEventListener("keydown", (event) => this.key(event, positionOf(event)));
    }

    key(event, position) {
      const columns = getComputedStyle(this.cells).gridTemplateColumns.split(" ").length;
      const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
      if (event.key in moves) {
        event.preventDefault();
        const next = this.cell[Math.max(0, Math.min(this.cell.length - 1, position + moves[event.key]))];
        this.cell[position].element.tabIndex = -1;
        next.element.tabIndex = 0;
        next.element.focus();
      } else if (event.key === "Enter") {
        this.pin(position);
      }
    }

    /** Pin a position, or let it go where it is pinned already. */
    pin(position) {
      if (position === null) return;
      const pinned = this.view.pinned.length === 1 && this.view.pinned[0] === position;
      emit("pin", pinned ? {} : { positions: [position] });
    }

    /** The facts of one position as a sentence, for a tooltip and a screen reader. Steps count from 1. */
    facts(position) {
      const { lane } = this;
      const shown = this.shown || 0;
      if (!lane.isDecoded(position, shown)) return `position ${position} (from 0): still masked`;
      const age = lane.age(lane.head.prompt + position, shown);
      const kv = age === 0 ? "K/V recomputed in this step" : `K/V ${counted(age, "step")} old`;
      return (
        `position ${position} (from 0): “${glyphs(lane.text[position])}”, committed at step ${lane.decodedAt[position] + 1}, ` +
        `confidence ${lane.confidence[position].toFixed(3)}, entropy ${lane.entropy[position].toFixed(3)} nats; ${kv}`
      );
    }

    describe(position) {
      if (position !== null) this.cell[position].element.setAttribute("aria-label", this.facts(position));
    }

    draw(shown) {
      const { lane, view } = this;
      this.shown = shown;
      const canvas = lane.head.prompt;
      const blockStart = lane.blockStart(shown);
      for (let position = 0; position < this.cell.length; position += 1) {
        const cell = this.cell[position];
        let classes = `c${cell.first}`;
        let text = "";
        if (lane.isDecoded(position, shown)) {
          text = lane.end[position] ? "end" : glyphs(lane.text[position]);
          classes += ` l${level(lane, position, shown, view.colour)}`;
          if (lane.end[position]) classes += " end";
          if (lane.decodedAt[position] === shown - 1) classes += " new";
          if (view.differs(lane, position)) classes += " diff";
        } else {
          const inBlock = position >= blockStart && position < blockStart + lane.head.block;
          classes += inBlock && lane.state !== "waiting" ? " m w" : " m";
        }
        if (lane.isRefreshed(canvas + position, shown)) classes += " fresh";
        if (view.pinned.includes(position)) classes += " pin";
        if (view.hovered.includes(position)) classes += " hover";
        if (classes !== cell.classes) cell.element.className = cell.classes = classes;
        if (text !== cell.text) {
          say(cell.element, (cell.text = text));
          cell.element.style.setProperty("--n", width(text) || 1);
        }
      }
      this.drawHeader(lane.steps[shown - 1], shown);
      this.write(lane.prefix(shown), lane.whyEmpty(shown));
    }

    /** The answer, its end in sight. Why it is empty is no part of it, so that nobody copies it. */
    write(text, why) {
      if (this.text.dataset.why !== why) this.text.dataset.why = why;
      if (this.text.textContent === text) return;
      say(this.text, text);
      this.text.scrollTop = this.text.scrollHeight;
    }

    drawHeader(step, shown) {
      const { lane } = this;
      let fresh = 0;
      for (let column = 0; column < lane.head.prompt; column += 1) {
        if (lane.isRefreshed(column, shown)) fresh += 1;
      }
      this.prompt.style.width = `${(100 * fresh) / Math.max(1, lane.head.prompt)}%`;
      const words = { waiting: "waiting for its turn", stopped: "stopped" };
      let badge = words[lane.state] && shown >= lane.steps.length ? words[lane.state] : "";
      if (!badge && step) badge = step.f ? `full recompute · ${step.w}` : "cached step";
      say(this.badge, badge);
      if (this.badge.title !== badge) this.badge.title = badge;
      this.badge.classList.toggle("full", Boolean(step && step.f));
      const of = counted(lane.steps.length, "step");
      say(this.where, `${shown} of ${of} · ${lane.decodedCount(shown)} of ${counted(lane.head.gen, "token")}`);
    }
  }

  Object.assign(window.Scope, { Cells, COLOURS, counted });
})();
