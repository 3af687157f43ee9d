/* Plots: a figure with its reading, drawn by plotly, one run and one view of it at a time. */
(() => {
  "use strict";
  const { h, on, emit, follow, framed, panels, run, Links, LETTERS, dataOf, layoutOf, savePicture } = window.Scope;

  const MAX_SHARE = 0.2;
  const EMPTY_HEIGHT = 104;
  const NARROW = 500;
  const LEGEND_LINE = 20;
  const unique = (values) => [...new Set(values)];

  class Plot {
    constructor(root, { drawn, block, trigger }) {
      this.drawn = drawn;
      this.block = block;
      this.trigger = trigger;
      this.lane = null;
      this.rested = 0;
      this.view = null;
      this.title = h("h2", {});
      this.behind = h("span", { class: "es-tag quiet es-behind", hidden: true });
      this.how = h("p", { class: "es-how" });
      this.lanes = h("div", { class: "es-choices", role: "group", "aria-label": "run on show" });
      this.views = h("div", { class: "es-choices es-views", role: "group", "aria-label": "what is shown" });
      this.headline = h("p", { class: "es-headline" });
      this.about = h("p", { class: "es-about" });
      this.words = h("dl", { class: "es-words" });
      this.help = h("details", { class: "es-help" }, h("summary", {}, "What these numbers are"), this.words);
      this.plot = h("div", { class: "es-plot", role: "img" });
      this.empty = h("div", { class: "es-empty", hidden: true });
      this.frame = h("div", { class: "es-plot-frame" }, this.plot, this.empty, this.behind);
      this.buttons = h("span", { class: "es-save" }, this.saver("png"), this.saver("svg"));
      const header = h("header", { class: "es-card-head" }, this.title, this.buttons);
      const choices = h("div", { class: "es-choice-rows" }, this.lanes, this.views);
      root.append(header, this.how, choices, this.headline, this.frame, this.help, this.about);
      root.classList.add("es-card");
      this.root = root;
      this.links = new Links(this.plot, this.frame);
      on("theme", () => this.draw());
      follow("run", () => this.compare());
      // One choice of a run holds in every figure that has it.
      follow("lane", ({ lane }) => this.choose({ lane }));
      new ResizeObserver(framed(() => this.resize())).observe(root);
    }

    saver(format) {
      return h("button", {
        type: "button", class: "es-chip", onclick: () => this.save(format),
        "aria-label": `save this figure as ${format.toUpperCase()}`,
      }, format.toUpperCase());
    }

    /** Show a value; while a run goes on figures take at most a fifth of the time, or its tokens would wait. */
    update(value) {
      clearTimeout(this.waiting);
      const rest = run.state === "running" ? this.rested - performance.now() : 0;
      if (rest > 0) this.waiting = setTimeout(() => this.show(value), rest);
      else this.show(value);
    }

    show(value) {
      this.value = value;
      const { variants } = value;
      this.title.textContent = value.title;
      this.how.textContent = value.how;
      this.about.textContent = value.about;
      this.words.replaceChildren(...value.terms.flatMap(([term, meaning]) => [h("dt", {}, term), h("dd", {}, meaning)]));
      this.plot.setAttribute("aria-label", `${value.title}. ${value.how} ${value.about}`);
      this.drawEmpty(value);
      this.buttons.hidden = variants.length === 0;
      this.draw();
    }

    drawEmpty({ variants, empty, action }) {
      this.empty.hidden = variants.length > 0;
      const press = action && h("button", {
        type: "button", class: "es-chip", "data-action": action,
        onclick: () => this.trigger("click", { action }),
      }, action);
      this.empty.replaceChildren(h("p", {}, empty || ""), ...(press ? [press] : []));
    }

    get variant() {
      const { variants } = this.value;
      const fits = (variant) => (this.lane === null || variant.lane === this.lane) && (this.view === null || variant.view === this.view);
      return variants.find(fits) || variants.find((variant) => variant.lane === this.lane) || variants[0];
    }

    choose(wanted) {
      Object.assign(this, wanted);
      if (this.value) this.draw();
    }

    drawChoices(variant) {
      const { variants } = this.value;
      const chip = (label, pressed, onclick, letter) => h("button", {
        type: "button", class: "es-chip", "aria-pressed": String(pressed), onclick,
      }, letter, label);
      const lanes = unique(variants.map(({ lane }) => lane));
      const views = unique(variants.map(({ view }) => view));
      this.fill(this.lanes, lanes.length > 1 ? lanes.map((lane) => {
        const { label } = variants.find((other) => other.lane === lane);
        const letter = run.lanes.length > 1 ? h("b", { class: `es-letter lane-${lane}` }, LETTERS[lane]) : null;
        return chip(label, variant.lane === lane, () => emit("lane", { lane }), letter);
      }) : []);
      this.fill(this.views, views.length > 1 ? views.map((view) => chip(view, variant.view === view, () => this.choose({ view }), null)) : []);
    }

    /** New chips in a row, the focus where it was. */
    fill(row, chips) {
      const focused = [...row.children].indexOf(document.activeElement);
      row.hidden = chips.length === 0;
      row.replaceChildren(...chips);
      if (focused >= 0 && chips[focused]) chips[focused].focus();
    }

    /** Tell where the figure is behind the grid: of an earlier run, or of fewer steps. */
    compare() {
      if (!this.value) return;
      const { order } = this.value;
      const earlier = order !== null && order < run.order;
      const variant = this.value.variants.length ? this.variant : null;
      const lane = variant && run.lanes[variant.lane];
      const behind = !earlier && variant && variant.steps !== null && lane && variant.steps < lane.steps.length;
      this.root.classList.toggle("es-earlier", Boolean(earlier));
      this.behind.hidden = !earlier && !behind;
      this.behind.textContent = earlier ? "of the run before; drawn anew when this one ends" : behind ? `up to step ${variant.steps}` : "";
    }

    draw() {
      const started = performance.now();
      if (!this.value) return;
      const variant = this.value.variants.length ? this.variant : null;
      this.drawChoices(variant || {});
      this.compare();
      this.headline.replaceChildren(...(variant ? variant.headline : []).map((line) => h("span", {}, line)));
      this.headline.hidden = !variant || variant.headline.length === 0;
      this.frame.style.height = `${this.heightOf(variant)}px`;
      this.links.links = variant ? this.value.links : [];
      this.links.lane = variant && variant.lane !== null ? variant.lane : 0;
      // Put out of sight, not cleared away: plotly may still be at work on what was drawn last.
      this.plot.style.visibility = variant ? "" : "hidden";
      if (!variant) {
        this.links.mark();
        this.drawn();
        return;
      }
      const config = { displayModeBar: false, responsive: false };
      const layout = layoutOf(variant.figure, this.plot.clientWidth);
      window.Plotly.react(this.plot, dataOf(variant.figure), layout, config).then(() => {
        if (!this.listening) this.links.listen();
        this.listening = true;
        this.links.mark();
        this.rested = performance.now() + (1 / MAX_SHARE - 1) * (performance.now() - started);
        this.drawn();
      });
    }

    /** A legend that takes a line an entry, as on a phone, must not eat up the plot. */
    heightOf(variant) {
      const { height } = this.value;
      if (!variant || this.root.clientWidth >= NARROW) return height || EMPTY_HEIGHT;
      const entries = variant.figure.data.filter((trace) => trace.name && trace.showlegend !== false).length;
      return height + LEGEND_LINE * Math.max(0, entries - 3);
    }

    resize() {
      if (this.value && this.value.variants.length && this.plot.clientWidth && this.plot.data) {
        window.Plotly.Plots.resize(this.plot).then(() => this.links.mark());
      }
    }

    save(format) {
      const { title, how, about } = this.value;
      const words = [...this.variant.headline, how, about].join(" · ");
      savePicture(this.plot, { title, words, format, filename: `${run.id || "run"}-${this.block.id || "figure"}` });
    }
  }

  panels.plot = (root, tools) => new Plot(root, tools);
})();
