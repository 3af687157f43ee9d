/* Pictures: a figure as it stands on the page, saved as PNG or SVG with its title, reading and source in it. */
(() => {
  "use strict";
  const { css } = window.Scope;

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

  function savePicture(plot, { title, words, filename, format }) {
    const { _size: size } = plot._fullLayout;
    const width = Math.max(640, plot.clientWidth);
    const lines = wrap(words, Math.round(width / 6.2));
    const caption = {
      text: lines.join("<br>"), showarrow: false, align: "left", font: { size: 10 },
      xref: "paper", yref: "paper", x: 0, y: 0, xanchor: "left", yanchor: "top", yshift: -size.b - 6, xshift: 8 - size.l,
    };
    const layout = {
      ...plot.layout, width, autosize: false, paper_bgcolor: css("--es-surface"),
      height: plot.clientHeight + 40 + 14 * lines.length,
      margin: { l: size.l, r: Math.max(16, size.r), t: size.t + 28, b: size.b + 12 + 14 * lines.length },
      title: { text: title, x: 0.01, xanchor: "left", yref: "container", y: 0.985, yanchor: "top", font: { size: 16 } },
      annotations: [...(plot.layout.annotations || []), caption],
    };
    const options = { format, filename, scale: format === "png" ? 2 : 1, width, height: layout.height };
    window.Plotly.downloadImage({ data: plot.data, layout }, options);
  }

  window.Scope.savePicture = savePicture;
})();
