/* Links: what a point of a figure stands for, and marks over the figure for what is lit elsewhere. */
(() => {
  "use strict";
  const { h, on, emit, framed, run } = window.Scope;

  /** Kinds a figure can be linked by. positions: of the generation; step: of the run on show; watched: of the
   * run without a cache. A link says where its kind stands: on an axis, less an offset, or in customdata. */
  const NOTHING = { positions: null, step: null, watched: null };

  const at = (row, index) => (Array.isArray(row) ? row[index] : row);

  class Links {
    constructor(plot, frame) {
      this.plot = plot;
      this.links = [];
      this.lane = 0;
      this.hovered = this.pinned = NOTHING;
      this.shown = [];
      this.cursor = h("i", { class: "es-cursor", hidden: true });
      this.across = h("i", { class: "es-across", hidden: true });
      this.spot = h("i", { class: "es-spot", hidden: true });
      frame.append(this.cursor, this.across, this.spot);
      const mark = framed(() => this.mark());
      on("cursor", ({ shown }) => { this.shown = shown; mark(); });
      on("hover", (where) => { this.hovered = { ...NOTHING, ...where }; mark(); });
      on("pin", (where) => { this.pinned = { ...NOTHING, ...where }; mark(); });
      on("clear", () => { this.hovered = this.pinned = NOTHING; mark(); });
    }

    /** Follow the figure's own pointer events; once for the life of the plot. */
    listen() {
      this.plot.on("plotly_hover", ({ points }) => emit("hover", this.meaning(points[0])));
      this.plot.on("plotly_unhover", () => emit("hover", NOTHING));
      this.plot.on("plotly_click", ({ points }) => {
        const meaning = this.meaning(points[0]);
        if (meaning.step !== null && this.links.some((link) => link.seek)) emit("seek", { step: meaning.step });
        emit("pin", meaning);
      });
    }

    meaning(point) {
      const meaning = { ...NOTHING };
      for (const link of this.links) {
        const raw = link.custom === undefined ? point[link.axis] - (link.offset || 0) : at(point.customdata, link.custom);
        const value = Math.round(raw);
        if (!Number.isFinite(value) || value < 0) continue;
        if (link.kind === "positions") meaning.positions = [value];
        else meaning[link.kind] = value;
        if (link.positions) meaning.positions = link.positions[value] || null;
      }
      const step = meaning.step !== null && run.lanes[this.lane] && run.lanes[this.lane].steps[meaning.step];
      if (step && !meaning.positions) meaning.positions = step.c.map(([position]) => position);
      return meaning;
    }

    /** The value of a link's kind that is hovered, else pinned, else (a step) on show. */
    wanted(link) {
      for (const where of [this.hovered, this.pinned]) {
        const value = this.valueOf(link, where);
        if (value !== null && value !== undefined) return value;
      }
      if (link.kind === "step" && link.axis === "x") return (this.shown[this.lane] || 0) - 1;
      return null;
    }

    valueOf(link, { positions, step, watched }) {
      if (link.kind === "positions") return positions && positions.length === 1 ? positions[0] : null;
      if (link.kind === "watched") {
        if (watched !== null || !link.positions || !positions) return watched;
        const found = link.positions.findIndex((committed) => committed.includes(positions[0]));
        return found < 0 ? null : found;
      }
      const lane = run.lanes[this.lane];
      if (step !== null || !positions || positions.length !== 1 || !lane) return step;
      return lane.isDecoded(positions[0], lane.steps.length) ? lane.decodedAt[positions[0]] : null;
    }

    /** Draw the marks over the figure, without touching it. */
    mark() {
      const layout = this.plot._fullLayout;
      this.cursor.hidden = this.across.hidden = this.spot.hidden = true;
      if (!layout || !layout.xaxis || !this.plot.data) return;
      for (const link of this.links) {
        const value = this.wanted(link);
        if (value === null || value < 0) continue;
        if (link.axis === "x") this.line(layout, value);
        else if (link.axis === "y") this.row(layout, value + (link.offset || 0));
        else this.point(layout, link, value);
      }
    }

    line({ _size: { l, t, w, h: height }, xaxis }, value) {
      const x = xaxis.d2p(value);
      if (!(x >= 0 && x <= w)) return;
      this.cursor.hidden = false;
      this.cursor.style.transform = `translate(${l + x}px, ${t}px)`;
      this.cursor.style.height = `${height}px`;
    }

    row({ _size: { l, t, w, h: height }, yaxis }, value) {
      const y = yaxis.d2p(value);
      if (!(y >= 0 && y <= height)) return;
      this.across.hidden = false;
      this.across.style.transform = `translate(${l}px, ${t + y}px)`;
      this.across.style.width = `${w}px`;
    }

    point({ _size: { l, t }, xaxis, yaxis }, link, value) {
      for (const trace of this.plot._fullData) {
        const index = Array.from(trace.customdata || []).findIndex((row) => at(row, link.custom) === value);
        if (index < 0) continue;
        const [x, y] = [l + xaxis.d2p(trace.x[index]), t + yaxis.d2p(trace.y[index])];
        if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
        this.spot.hidden = false;
        this.spot.style.transform = `translate(${x}px, ${y}px)`;
        return;
      }
    }
  }

  window.Scope.Links = Links;
})();
