/* Plots: a figure with its reading, drawn by plotly, re-coloured with the theme, linked to the rest. */
(() => {
  "use strict";
  const { h, on, framed, panels, css, dark, run, Links, LETTERS } = window.Scope;

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
    // Titles of subplots are notes above the plot, which no automatic margin makes room for.
    const above = (layout.annotations || []).some((note) => note.yref === "paper" && note.yanchor === "bottom");
    layout.margin = { l: 8, r: 12, t: above ? 30 : 12, b: 8 };
    delete layout.height;
    if (width < 500 && layout.legend) layout.legend = merge(layout.legend, { font: { size: 11 } });
    return layout;
  }

  /** Lines of at most `length` characters; markup signs are written out. */
  function wrap(text, length) {
    const lines = [""];
    for (const word of text.split(/\s+/)) {
      const last = lines.length - 1;
      if (lines[last].length + word.length + 1 > length) lines.push(word);
      else lines[last] += (lines[last] ? " " : "") + word;
    }
    return lines.map((line) => line.replace(/&/g, "&amp;").replace(/</g, "&lt;"));
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
      this.empty = h("p", { class: "es-empty", hidden: true });
      this.frame = h("div", { class: "es-plot-frame" }, this.plot, this.empty);
      this.buttons = h("span", { class: "es-save" }, this.saver("png"), this.saver("svg"));
      const header = h("header", { class: "es-card-head" }, this.title, this.buttons);
      root.append(header, this.how, this.choices, this.headline, this.frame, this.about);
      this.chosen = 0;
      root.classList.add("es-card");
      this.block = block;
      this.links = new Links(this.plot, this.frame);
      on("theme", () => this.draw());
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
      }, run.lanes.length > 1 && variant.lane !== null ? h("b", { class: `es-letter lane-${variant.lane}` }, LETTERS[variant.lane]) : null, variant.label);
    }

    get variant() {
      return this.value && this.value.variants[this.chosen];
    }

    draw() {
      if (!this.value) return;
      const { variant } = this;
      this.headline.replaceChildren(...(variant ? variant.headline : []).map((line) => h("span", {}, line)));
      this.links.links = variant ? this.value.links : [];
      this.links.lane = variant && variant.lane !== null ? variant.lane : 0;
      if (!variant) {
        window.Plotly.purge(this.plot);
        this.listening = false;
        this.links.mark();
        this.drawn();
        return;
      }
      const { figure } = variant;
      const data = dark() ? themed(figure.data) : figure.data;
      const layout = layoutOf(figure, this.plot.clientWidth);
      const config = { displayModeBar: false, responsive: false };
      window.Plotly.react(this.plot, data, layout, config).then(() => {
        if (!this.listening) this.links.listen();
        this.listening = true;
        this.links.mark();
        this.drawn();
      });
    }

    resize() {
      if (this.variant && this.plot.clientWidth && this.plot.data) {
        window.Plotly.Plots.resize(this.plot).then(() => this.links.mark());
      }
    }

    /** The picture on show, with title, reading and source written into it. */
    save(format) {
      const { _size: size } = this.plot._fullLayout;
      const width = Math.max(640, this.plot.clientWidth);
      const words = [...this.variant.headline, this.value.how, this.value.about].join(" · ");
      const lines = wrap(words, Math.round(width / 6.2));
      const caption = {
        text: lines.join("<br>"), showarrow: false, align: "left", font: { size: 10 },
        xref: "paper", yref: "paper", x: 0, y: 0, xanchor: "left", yanchor: "top", yshift: -size.b - 6, xshift: 8 - size.l,
      };
      const layout = {
        ...this.plot.layout, width, autosize: false, paper_bgcolor: css("--es-surface"),
        height: this.plot.clientHeight + 40 + 14 * lines.length,
        margin: { l: size.l, r: Math.max(16, size.r), t: size.t + 28, b: size.b + 12 + 14 * lines.length },
        title: { text: this.value.title, x: 0.01, xanchor: "left", yref: "container", y: 0.985, yanchor: "top", font: { size: 16 } },
        annotations: [...(this.plot.layout.annotations || []), caption],
      };
      const filename = `${run.id || "run"}-${this.block.id || "figure"}`;
      const options = { format, filename, scale: format === "png" ? 2 : 1, width, height: layout.height };
      window.Plotly.downloadImage({ data: this.plot.data, layout }, options);
    }
  }

  panels.plot = (root, tools) => new Plot(root, tools);
})();
