/* Plots: a figure with its reading, drawn by plotly, re-coloured with the theme, linked to the rest. */
(() => {
  "use strict";
  const { h, on, emit, framed, panels, css, dark, run, LETTERS } = window.Scope;

  /** Colours that are too dim on a dark ground, and what stands for them there. */
  const ON_DARK = {
    "#0072b2": "#56b4e9", "#d55e00": "#ff8c42", "#009e73": "#2fc79c", "#cc79a7": "#e29bc2",
    "#e69f00": "#f2b84b", "#000000": "#e8eaed", "#2a3f5f": "#d5dae0", "#444": "#b4bcc6",
    "#1f2933": "#d5dae0", "#d9dee4": "#2f3741", "#ffffff": "#171b21", "#fff": "#171b21", "#f0e442": "#efe15a",
  };

  function recolour(value) {
    if (typeof value === "string") return ON_DARK[value.toLowerCase()] || value;
    if (Array.isArray(value)) return value.map(recolour);
    return value;
  }

  /** A copy of a figure part with every colour put through `recolour`. */
  function themed(part) {
    if (Array.isArray(part)) return part.map(themed);
    if (part === null || typeof part !== "object") return part;
    const copy = {};
    for (const [key, value] of Object.entries(part)) {
      copy[key] = /color(s|scale|way)?$/i.test(key) ? recolour(value) : typeof value === "object" ? themed(value) : value;
    }
    return copy;
  }

  function merge(base, over) {
    const out = { ...base };
    for (const [key, value] of Object.entries(over)) {
      const both = value && out[key] && typeof value === "object" && typeof out[key] === "object";
      out[key] = both && !Array.isArray(value) ? merge(out[key], value) : value;
    }
    return out;
  }

  function layoutOf(figure, width) {
    const ink = css("--es-ink");
    const line = css("--es-line");
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true };
    const layout = merge(dark() ? themed(figure.layout) : figure.layout, {
      autosize: true, width: undefined, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: css("--font"), size: 12, color: ink },
      hoverlabel: { bgcolor: css("--es-surface"), bordercolor: line, font: { color: ink, family: css("--font") } },
      uirevision: "keep", title: { text: "" },
    });
    for (const key of Object.keys(layout)) {
      if (!/^[xy]axis\d*$/.test(key)) continue;
      const decades = layout[key].type === "log" ? { dtick: 1, tickfont: { size: 10 } } : {};
      layout[key] = merge(layout[key], { ...axis, ...decades, title: { font: { size: width < 500 ? 11 : 12 }, standoff: 6 } });
    }
    layout.margin = { l: 8, r: 12, t: 12, b: 8 };
    delete layout.height;
    if (width < 500 && layout.legend) layout.legend = merge(layout.legend, { font: { size: 11 } });
    return layout;
  }

  class Plot {
    constructor(root, { drawn, block }) {
      this.drawn = drawn;
      this.title = h("h2", {});
      this.how = h("p", { class: "es-how" });
      this.choices = h("div", { class: "es-choices", role: "group", "aria-label": "run on show" });
      this.headline = h("p", { class: "es-headline" });
      this.about = h("p", { class: "es-about" });
      this.plot = h("div", { class: "es-plot", role: "img" });
      this.cursor = h("i", { class: "es-cursor", hidden: true });
      this.across = h("i", { class: "es-across", hidden: true });
      this.spot = h("i", { class: "es-spot", hidden: true });
      this.empty = h("p", { class: "es-empty", hidden: true });
      this.frame = h("div", { class: "es-plot-frame" }, this.plot, this.cursor, this.across, this.spot, this.empty);
      this.buttons = h("span", { class: "es-save" }, this.saver("png"), this.saver("svg"));
      const header = h("header", { class: "es-card-head" }, this.title, this.buttons);
      root.append(header, this.how, this.choices, this.headline, this.frame, this.about);
      this.chosen = 0;
      root.classList.add("es-card");
      this.block = block;
      on("theme", () => this.draw());
      on("cursor", framed(({ shown }) => this.follow(shown)));
      on("hover", framed((where) => this.light(where)));
      on("pin", ({ position, step }) => this.pin({ position, step }));
      on("clear", () => this.pin({}));
      new ResizeObserver(framed(() => this.resize())).observe(root);
    }

    saver(format) {
      return h("button", {
        type: "button", class: "es-chip", onclick: () => this.save(format),
        "aria-label": `save this figure as ${format.toUpperCase()}`,
      }, format.toUpperCase());
    }

    update(value) {
      this.value = value;
      this.title.textContent = value.title;
      this.how.textContent = value.how;
      this.about.textContent = value.about;
      this.plot.setAttribute("aria-label", `${value.title}. ${value.how} ${value.about}`);
      this.chosen = Math.min(this.chosen, Math.max(0, value.variants.length - 1));
      this.empty.hidden = value.variants.length > 0;
      this.empty.textContent = value.empty || "";
      this.buttons.hidden = value.variants.length === 0;
      this.frame.style.height = `${value.variants.length ? value.height : Math.min(value.height, 120)}px`;
      this.choices.hidden = value.variants.length < 2;
      this.choices.replaceChildren(...value.variants.map((variant, index) => this.choice(variant, index)));
      this.draw();
    }

    choice(variant, index) {
      return h("button", {
        type: "button", class: "es-chip", "aria-pressed": index === this.chosen ? "true" : "false",
        onclick: () => {
          this.chosen = index;
          [...this.choices.children].forEach((chip, at) => chip.setAttribute("aria-pressed", String(at === index)));
          this.draw();
        },
      }, h("b", { class: `es-letter lane-${index}` }, LETTERS[index]), variant.label);
    }

    get variant() {
      return this.value && this.value.variants[this.chosen];
    }

    draw() {
      if (!this.value) return;
      const { variant } = this;
      this.headline.replaceChildren(...(variant ? variant.headline : []).map((line) => h("span", {}, line)));
      if (!variant) {
        window.Plotly.purge(this.plot);
        this.listening = false;
        this.mark();
        this.drawn();
        return;
      }
      const { figure } = variant;
      const data = dark() ? themed(figure.data) : figure.data;
      const layout = layoutOf(figure, this.plot.clientWidth);
      const config = { displayModeBar: false, responsive: false };
      window.Plotly.react(this.plot, data, layout, config).then(() => {
        this.listen();
        this.mark();
        this.drawn();
      });
    }

    resize() {
      if (this.variant && this.plot.clientWidth && this.plot.data) {
        window.Plotly.Plots.resize(this.plot).then(() => this.mark());
      }
    }

    /** What a point of this figure stands for: {step} or {position}, as the figure's link says. */
    meaning(point) {
      const { link } = this.value;
      if (!link) return {};
      if (link.custom !== undefined) {
        const at = Array.isArray(point.customdata) ? point.customdata[link.custom] : point.customdata;
        return { [link.kind]: at };
      }
      const at = Math.round(point[link.axis]);
      return Number.isFinite(at) ? { [link.kind]: at } : {};
    }

    listen() {
      if (this.listening) return;
      this.listening = true;
      this.plot.on("plotly_hover", ({ points }) => emit("hover", { position: null, step: null, ...this.meaning(points[0]) }));
      this.plot.on("plotly_unhover", () => emit("hover", { position: null, step: null }));
      this.plot.on("plotly_click", ({ points }) => {
        const meaning = this.meaning(points[0]);
        if (this.value.link && this.value.link.seek && meaning.step !== undefined) emit("seek", meaning);
        emit("pin", meaning);
      });
    }

    follow(shown) {
      this.shown = shown;
      this.mark();
    }

    light({ position, step }) {
      this.hovered = { position, step };
      this.mark();
    }

    pin(where) {
      const same = this.pinned && this.pinned.position === where.position && this.pinned.step === where.step;
      this.pinned = same ? null : where;
      this.hovered = null;
      this.mark();
    }

    /** Draw what is hovered, pinned or on show over the figure, without touching the figure. */
    mark() {
      const link = this.variant && this.value.link;
      const layout = this.plot._fullLayout;
      this.cursor.hidden = this.across.hidden = this.spot.hidden = true;
      if (!link || !layout || !layout.xaxis) return;
      const wanted = [this.hovered, this.pinned].map((where) => where && where[link.kind]).find((at) => at !== null && at !== undefined);
      let at = wanted;
      if (at === undefined && link.kind === "step" && link.axis === "x" && this.shown) at = Math.max(...this.shown, 0) - 1;
      if (at === undefined || at === null || at < 0) return;
      if (link.axis === "x") this.line(layout, at);
      else if (link.axis === "y") this.row(layout, at);
      else this.point(layout, link, at);
    }

    line(layout, at) {
      const { l, t, w, h: height } = layout._size;
      const x = layout.xaxis.l2p(at);
      if (x < 0 || x > w) return;
      this.cursor.hidden = false;
      this.cursor.style.transform = `translate(${l + x}px, ${t}px)`;
      this.cursor.style.height = `${height}px`;
    }

    row(layout, at) {
      const { l, t, w, h: height } = layout._size;
      const y = layout.yaxis.l2p(at);
      if (y < 0 || y > height) return;
      this.across.hidden = false;
      this.across.style.transform = `translate(${l}px, ${t + y}px)`;
      this.across.style.width = `${w}px`;
    }

    point(layout, link, at) {
      for (const trace of this.plot._fullData) {
        const custom = trace.customdata || [];
        const index = Array.from(custom).findIndex((row) => (Array.isArray(row) ? row[link.custom] : row) === at);
        if (index < 0 || trace.visible !== true) continue;
        this.spot.hidden = false;
        const { l, t } = layout._size;
        const x = l + layout.xaxis.l2p(trace.x[index]);
        const y = t + layout.yaxis.l2p(trace.y[index]);
        this.spot.style.transform = `translate(${x}px, ${y}px)`;
        return;
      }
    }

    /** The picture on show, with title, reading and source written into it. */
    save(format) {
      const layout = { ...this.plot.layout, paper_bgcolor: css("--es-surface"), autosize: false };
      layout.width = Math.max(640, this.plot.clientWidth);
      layout.height = this.plot.clientHeight + 110;
      layout.margin = { ...this.plot._fullLayout._size, l: this.plot._fullLayout._size.l, t: 46, b: this.plot._fullLayout._size.b + 76, r: 16 };
      layout.title = { text: this.value.title, x: 0.01, xanchor: "left", y: 0.98, yanchor: "top", font: { size: 16 } };
      const wrap = (text) => text.replace(/(.{1,105})(\s|$)/g, "$1<br>").replace(/<br>$/, "");
      const words = [...this.variant.headline, this.value.how, this.value.about].join(" · ");
      const caption = wrap(words.replace(/</g, "&lt;"));
      layout.annotations = [...(layout.annotations || []), {
        text: caption, showarrow: false, align: "left", font: { size: 10 },
        xref: "container", yref: "container", x: 0.01, y: 0.01, xanchor: "left", yanchor: "bottom",
      }];
      const filename = `${run.id || "run"}-${this.block.id || "figure"}`;
      window.Plotly.downloadImage({ data: this.plot.data, layout }, { format, filename, scale: 2, width: layout.width, height: layout.height });
    }
  }

  panels.plot = (root, tools) => new Plot(root, tools);
})();
