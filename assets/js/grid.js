/* Token grid: one to four runs side by side, replayed together, with the facts of what is pointed at. */
(() => {
  "use strict";
  const { h, say, on, emit, framed, panels, run, Player, Cells, COLOURS, LETTERS } = window.Scope;

  const HINT = "Point at a token for its facts; click to pin it in every figure, Esc lets go.";
  const TAP = "Tap a token for its facts, pinned in every figure; tap it again to let go.";
  const hint = () => (window.matchMedia("(hover: none)").matches ? TAP : HINT);

  class Grid {
    constructor(root, { drawn, block }) {
      this.root = root;
      this.drawn = drawn;
      this.block = block;
      this.views = [];
      this.colour = "entropy";
      this.pinned = this.hovered = [];
      this.player = new Player();
      this.tag = h("span", { class: "es-tag", hidden: true }, "recorded example");
      this.tip = h("p", { class: "es-tip", "aria-live": "off" });
      this.lanes = h("div", { class: "es-lanes" });
      const dock = h("div", { class: "es-dock" }, this.tip, this.player.element);
      root.append(this.header(), this.lanes, dock, this.legend());
      root.classList.add("es-card");
      root.addEventListener("keydown", (event) => {
        if (event.key === " " && !["BUTTON", "SELECT"].includes(event.target.tagName)) {
          event.preventDefault();
          this.player.toggle();
        }
      });
      this.listen();
    }

    listen() {
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
    }

    header() {
      const options = Object.entries(COLOURS).map(([name, label]) => h("option", { value: name }, label));
      const select = h("select", { "aria-label": "colour of the tokens" }, options);
      select.addEventListener("change", () => {
        this.colour = select.value;
        this.draw();
      });
      const choose = h("label", { class: "es-choose" }, h("span", {}, "colour"), select);
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
        (this.diffKey = h("li", {}, h("i", { class: "c l0 diff", "aria-hidden": "true" }), (this.diffText = h("span", {}))))
      );
    }

    /** Whether a lane's token is another one than the reference lane's, once both are known. */
    differs(lane, position) {
      const reference = run.reference;
      if (lane === reference || run.lanes.length < 2 || !run.samePrompt) return false;
      if (reference.decodedAt[position] > reference.steps.length) return false;
      return reference.text[position] !== lane.text[position];
    }

    update(frame) {
      const before = run.order;
      if (!run.take(frame)) return;
      if (run.order !== before || run.lanes.length !== this.views.length) this.rebuild();
      else this.views.forEach((view, index) => (view.lane = run.lanes[index]));
      this.tag.hidden = !run.example;
      if (run.order !== before && run.state === "running") this.comeIntoSight();
      emit("run", { run });
      this.player.arrived(run.order !== before);
    }

    /** On a phone Run stands far above what it starts. */
    comeIntoSight() {
      if (window.matchMedia("(max-width: 860px)").matches) {
        this.block.scrollIntoView({ block: "start" });
      }
    }

    rebuild() {
      this.views = run.lanes.map((lane, index) => new Cells(lane, index, this));
      this.lanes.className = `es-lanes n${this.views.length}`;
      this.lanes.replaceChildren(...this.views.map((view) => view.element));
      this.player.strips.rebuild();
      this.diffKey.hidden = this.views.length < 2 || !run.samePrompt;
      this.nameReference();
      this.shown = this.views.map(() => 0);
      emit("hover");
      emit("pin");
      emit("lane", { lane: null });
    }

    /** What the marked tokens are compared with: without a cache, or else the first run. */
    nameReference() {
      const { reference } = run;
      const cached = reference && reference.head.policy !== "none";
      say(this.diffText, `differs from ${cached ? `run ${LETTERS[run.lanes.indexOf(reference)]}` : "the run without a cache"}`);
    }

    draw() {
      this.root.dataset.colour = this.colour;
      this.views.forEach((view, index) => view.draw(this.shown[index] || 0));
      say(this.tip, this.told());
      this.block.dataset.settled = this.settled ? "yes" : "no";
      this.block.dataset.shown = (this.shown || []).join(" ");
      this.block.dataset.state = run.state;
      this.drawn();
    }

    /** The facts of the token pointed at, else of the one pinned, in every run. */
    told() {
      const chosen = this.hovered.length ? this.hovered : this.pinned;
      const fits = this.views.length && chosen[0] < this.views[0].cell.length;
      if (!chosen.length || !fits) return hint();
      if (chosen.length > 1) return `${chosen.length} tokens: positions (from 0) ${chosen.slice(0, 12).join(", ")}${chosen.length > 12 ? ", …" : ""}`;
      const facts = this.views.map((view, index) =>
        (this.views.length > 1 ? `${LETTERS[index]} ` : "") + view.facts(chosen[0]));
      return facts.join("\n");
    }
  }

  panels.grid = (root, tools) => new Grid(root, tools);
})();
