/* Token grid: every position of the generation as a fixed cell, for one to four runs side by side. */
(() => {
  "use strict";
  const { h, say, on, emit, framed, panels, run, Player, LETTERS } = window.Scope;

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

  const size = (text) => (text.length > 7 ? " xs" : text.length > 5 ? " sm" : "");

  /** Colour level 0..LEVELS-1 of a decoded position. */
  function level(lane, position, shown, colour) {
    const scale = (value, top) => Math.max(0, Math.min(LEVELS - 1, Math.round((value / top) * (LEVELS - 1))));
    if (colour === "confidence") return scale(1 - lane.confidence[position], 0.8);
    if (colour === "step") return scale(lane.decodedAt[position], Math.max(1, lane.steps.length - 1));
    if (colour === "age") return scale(lane.age(lane.head.prompt + position, shown) || 0, 12);
    return scale(lane.entropy[position], 1.5);
  }

  class LaneView {
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
        h("span", {}, `prompt · ${head.prompt} tokens`)
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
      this.cells.addEventListener("pointerleave", () => emit("hover", {}));
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

    /** The facts of one position as a sentence, for a tooltip and a screen reader. */
    facts(position) {
      const { lane } = this;
      const shown = this.shown || 0;
      if (!lane.isDecoded(position, shown)) return `position ${position}: still masked`;
      const fresh = lane.age(lane.head.prompt + position, shown);
      const kv = fresh === 0 ? "K/V recomputed in this step" : `K/V ${fresh} steps old`;
      return (
        `position ${position}: “${glyphs(lane.text[position])}”, committed at step ${lane.decodedAt[position]}, ` +
        `confidence ${lane.confidence[position].toFixed(3)}, entropy ${lane.entropy[position].toFixed(3)} nats; ${kv}`
      );
    }

    describe(position) {
      if (position !== null) this.cell[position].element.setAttribute("aria-label", this.facts(position));
    }

    draw(shown) {
      const { lane, view } = this;
      this.shown = shown;
      const step = lane.steps[shown - 1];
      const canvas = lane.head.prompt;
      const blockStart = lane.blockStart(shown);
      for (let position = 0; position < this.cell.length; position += 1) {
        const cell = this.cell[position];
        const decoded = lane.isDecoded(position, shown);
        let classes = `c${cell.first}`;
        let text = "";
        if (decoded) {
          text = lane.end[position] ? "end" : glyphs(lane.text[position]);
          classes += ` l${level(lane, position, shown, view.colour)}${size(text)}`;
          if (lane.end[position]) classes += " end";
          if (lane.decodedAt[position] === shown - 1) classes += " new";
          if (view.differs(lane, position, shown)) classes += " diff";
        } else {
          const inBlock = position >= blockStart && position < blockStart + lane.head.block;
          classes += inBlock && lane.state !== "waiting" ? " m w" : " m";
        }
        if (lane.isRefreshed(canvas + position, shown)) classes += " fresh";
        if (view.pinned.includes(position)) classes += " pin";
        if (view.hovered.includes(position)) classes += " hover";
        if (classes !== cell.classes) cell.element.className = cell.classes = classes;
        if (text !== cell.text) say(cell.element, (cell.text = text));
      }
      this.drawHeader(step, shown);
      say(this.text, lane.prefix(shown));
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
      this.badge.classList.toggle("full", Boolean(step && step.f));
      say(this.where, `${shown} of ${lane.steps.length} steps · ${lane.decodedCount(shown)} of ${lane.head.gen} tokens`);
    }
  }

  class Grid {
    constructor(root, { drawn, block }) {
      this.drawn = drawn;
      this.block = block;
      this.views = [];
      this.colour = "entropy";
      this.pinned = this.hovered = [];
      this.player = new Player();
      this.tag = h("span", { class: "es-tag", hidden: true }, "recorded example");
      this.tip = h("p", { class: "es-tip", "aria-live": "off" });
      this.lanes = h("div", { class: "es-lanes" });
      root.append(this.header(), this.lanes, this.player.element, this.tip, this.legend());
      root.classList.add("es-card");
      root.addEventListener("keydown", (event) => {
        if (event.key === " " && event.target.tagName !== "BUTTON" && event.target.tagName !== "SELECT") {
          event.preventDefault();
          this.player.toggle();
        }
      });
      const redraw = framed(() => this.draw());
      on("cursor", ({ shown, settled }) => {
        this.shown = shown;
        this.settled = settled;
        redraw();
      });
      on("hover", ({ positions }) => {
        this.hovered = positions || [];
        redraw();
      });
      on("pin", ({ positions }) => {
        this.pinned = positions || [];
        redraw();
      });
      on("clear", () => {
        this.pinned = this.hovered = [];
        redraw();
      });
    }

    header() {
      const options = Object.entries(COLOURS).map(([name, label]) => h("option", { value: name }, label));
      const select = h("select", { "aria-label": "colour of the tokens" }, options);
      select.addEventListener("change", () => {
        this.colour = select.value;
        this.draw();
      });
      const choose = h("label", { class: "es-choose" }, "colour: ", select);
      return h("header", { class: "es-card-head" }, h("h2", {}, "Denoising"), this.tag, choose);
    }

    legend() {
      const key = (classes, text) => h("li", {}, h("i", { class: `c ${classes}`, "aria-hidden": "true" }), text);
      return h(
        "ul",
        { class: "es-legend", "aria-label": "legend" },
        key("m", "masked"), key("m w", "masked, in the active block"), key("l0 new", "committed in this step"),
        key("l0 fresh", "K/V recomputed in this step"),
        h("li", {}, h("i", { class: "ramp", "aria-hidden": "true" }), "low to high"),
        (this.diffKey = key("l0 diff", "differs from the run without a cache"))
      );
    }

    /** Whether a lane's token is another one than the reference lane's; null while that isn't known. */
    differs(lane, position) {
      const reference = run.reference;
      if (lane === reference || run.lanes.length < 2) return false;
      if (reference.decodedAt[position] > reference.steps.length) return false;
      return reference.text[position] !== lane.text[position];
    }

    update(frame) {
      const before = run.order;
      if (!run.take(frame)) return;
      if (run.order !== before || run.lanes.length !== this.views.length) this.rebuild();
      else this.views.forEach((view, index) => (view.lane = run.lanes[index]));
      this.tag.hidden = !run.example;
      emit("run", { run });
      this.player.arrived(run.order !== before);
    }

    rebuild() {
      this.pinned = this.hovered = [];
      this.views = run.lanes.map((lane, index) => new LaneView(lane, index, this));
      this.lanes.className = `es-lanes n${this.views.length}`;
      this.lanes.replaceChildren(...this.views.map((view) => view.element));
      this.player.strips.rebuild();
      this.diffKey.hidden = this.views.length < 2;
      this.shown = this.views.map(() => 0);
    }

    draw() {
      this.lanes.dataset.colour = this.colour;
      this.views.forEach((view, index) => view.draw(this.shown[index] || 0));
      const position = [...this.hovered, ...this.pinned][0];
      const known = position !== undefined && this.views.length && position < this.views[0].cell.length;
      const hint = "Hover a token for its facts, click to pin it, Esc to let go.";
      const facts = this.views.map((view, index) =>
        (this.views.length > 1 ? `${LETTERS[index]} ` : "") + view.facts(position));
      say(this.tip, known ? facts.join("\n") : hint);
      this.block.dataset.settled = this.settled ? "yes" : "no";
      this.block.dataset.shown = (this.shown || []).join(" ");
      this.block.dataset.state = run.state;
      this.drawn();
    }
  }

  panels.grid = (root, tools) => new Grid(root, tools);
})();
