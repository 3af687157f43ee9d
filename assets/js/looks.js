/* Looks: a figure's colours, margins and letters, fitted to the theme and to the room there is. */
(() => {
  "use strict";
  const { css, dark } = window.Scope;

  const NARROW = 500;
  /** Colours that are too dim on a dark ground, and what stands for them there. */
  const ON_DARK = {
    "#0072b2": "#56b4e9", "#d55e00": "#ff8c42", "#009e73": "#2fc79c", "#cc79a7": "#e29bc2",
    "#e69f00": "#f2b84b", "#000000": "#e8eaed", "#2a3f5f": "#d5dae0", "#444": "#b4bcc6",
    "#1f2933": "#d5dae0", "#d9dee4": "#3a444f", "#ffffff": "#171b21", "#fff": "#171b21", "#f0e442": "#efe15a",
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

  function dataOf(figure) {
    const data = dark() ? themed(figure.data) : figure.data;
    const ink = css("--es-ink");
    return data.map((trace) => (trace.colorbar ? merge(trace, { colorbar: { tickfont: { color: ink }, title: { font: { color: ink } }, outlinewidth: 0 } }) : trace));
  }

  function layoutOf(figure, width) {
    const ink = css("--es-ink");
    const line = css("--es-grid");
    const small = width < NARROW ? 11 : 12;
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true, tickfont: { size: small } };
    const layout = merge(dark() ? themed(figure.layout) : figure.layout, {
      autosize: true, width: undefined, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: css("--font"), size: 12, color: ink },
      hoverlabel: { bgcolor: css("--es-surface"), bordercolor: css("--es-line"), align: "left", font: { color: ink, family: css("--font") } },
      uirevision: "keep", title: { text: "" },
    });
    for (const key of Object.keys(layout)) {
      if (!/^[xy]axis\d*$/.test(key)) continue;
      const decades = layout[key].type === "log" ? { dtick: 1, tickfont: { size: 10 } } : {};
      layout[key] = merge(layout[key], { ...axis, ...decades, title: { font: { size: small }, standoff: 6 } });
    }
    const notes = (layout.annotations || []).map((note) => merge(note, { font: { size: small } }));
    if (notes.length) layout.annotations = notes;
    // Titles of subplots are notes above the plot, which no automatic margin makes room for.
    const above = notes.some((note) => note.yref === "paper" && note.yanchor === "bottom");
    layout.margin = { l: 8, r: 12, t: above ? 30 : 12, b: 8 };
    delete layout.height;
    if (layout.legend) layout.legend = merge(layout.legend, { font: { size: small, color: ink } });
    return layout;
  }

  Object.assign(window.Scope, { dataOf, layoutOf });
})();
