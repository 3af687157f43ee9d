/* Links: what a point of a figure stands for, and marks over the figure for what is lit elsewhere. */
(() => {
  "use strict";
  const { h, follow, emit, framed, run } = window.Scope;

  /** Kinds a figure can be linked by. positions: of the generation; step: of the run on show; watched: a step
   * of the run without a cache; age: steps since a token's commit, at the step on show. A link says where its
   * kind stands: on an axis, or in customdata, either plus an offset. */
  const NOTHING = { positions: null, step: null, watched: null };
  const MOST = 48;

  const at = (row, index) => (Array.isArray(row) ? row[index] : row);
  const unique = (values) => [...new Set(values)].filter((value) => value >= 0).slice(0, MOST);

  class Links {
    constructor(plot, frame) {
      this.plot = plot;
      this.frame = frame;
      this.links = [];
      this.lane = 0;
      this.hovered = this.pinned = NOTHING;
      this.shown = [];
      this.pool = [];
      const mark = framed(() => this.mark());
      follow("cursor", ({ shown }) => { this.shown = shown; mark(); });
      follow("hover", (where) => { this.hovered = { ...NOTHING, ...where }; mark(); });
      follow("pin", (where) => { this.pinned = { ...NOTHING, ...where }; mark(); });
      // Told, not asked: asking in each frame makes the browser lay out the page once for every figure.
      this.visible = false;
      new ResizeObserver(([{ contentRect }]) => {
        this.visible = contentRect.width > 0;
        mark();
      }).observe(frame);
    }

    /** Follow the figure's own pointer events; once for the life of the plot. */
    listen() {
      this.plot.on("plotly_hover", ({ points }) => emit("hover", this.meaning(points[0])));
      this.plot.on("plotly_unhover", () => emit("hover"));
      this.plot.on("plotly_click", ({ points }) => {
        const meaning = this.meaning(points[0]);
        if (meaning.step !== null && this.links.some((link) => link.seek)) emit("seek", { step: meaning.step });
        emit("pin", meaning);
      });
    }

    get shownStep() {
      return (this.shown[this.lane] || 0) - 1;
    }

    meaning(point) {
      const meaning = { ...NOTHING };
      const lane = run.lanes[this.lane];
      for (const link of this.links) {
        const raw = link.custom === undefined ? point[link.axis] : at(point.customdata, link.custom);
        const value = Math.round(raw - (link.offset || 0));
        if (!Number.isFinite(value) || value < 0) continue;
        if (link.kind === "positions") meaning.positions = [value];
        else if (link.kind === "age") meaning.positions = this.ofAge(value);
        else meaning[link.kind] = value;
        if (link.positions) meaning.positions = link.positions[value] || null;
      }
      const step = meaning.step !== null && lane && lane.steps[meaning.step];
      if (step && !meaning.positions) meaning.positions = step.c.map(([position]) => position);
      return meaning;
    }

    /** Positions committed `age` steps before the one on show. */
    ofAge(age) {
      const lane = run.lanes[this.lane];
      const wanted = this.shownStep - age;
      return lane ? [...lane.decodedAt.keys()].filter((position) => lane.decodedAt[position] === wanted) : null;
    }

    /** What a place in the page is in a link's kind; several where it stands for several tokens. */
    valuesOf(link, { positions, step, watched }) {
      if (link.kind === "positions") return positions ? unique(positions) : [];
      if (link.kind === "watched") {
        if (watched !== null || !link.positions || !positions) return watched === null ? [] : [watched];
        return unique(positions.map((position) => link.positions.findIndex((all) => all.includes(position))));
      }
      const lane = run.lanes[this.lane];
      if (link.kind === "step" && step !== null) return [step];
      if (!positions || !lane) return [];
      const decoded = positions.filter((position) => lane.isDecoded(position, lane.steps.length));
      const steps = decoded.map((position) => lane.decodedAt[position]);
      return unique(link.kind === "age" ? steps.map((at) => this.shownStep - at) : steps);
    }

    /** Draw the marks over the figure, without touching it. */
    mark() {
      const layout = this.plot._fullLayout;
      const marks = [];
      if (layout && layout.xaxis && this.plot.data && this.visible) {
        for (const link of this.links) {
          if (link.kind === "step") marks.push(this.place(layout, link, this.shownStep, "now"));
          for (const value of this.valuesOf(link, this.pinned)) marks.push(this.place(layout, link, value, "pinned"));
          for (const value of this.valuesOf(link, this.hovered)) marks.push(this.place(layout, link, value, "hovered"));
        }
      }
      this.show(marks.filter(Boolean));
    }

    show(marks) {
      while (this.pool.length < marks.length) {
        const element = h("i", { class: "es-mark", hidden: true });
        this.pool.push(element);
        this.frame.append(element);
      }
      this.pool.forEach((element, index) => {
        element.hidden = index >= marks.length;
        if (element.hidden) return;
        const { kind, why, x, y, width, height } = marks[index];
        element.className = `es-mark ${kind} ${why}`;
        element.style.transform = `translate(${x}px, ${y}px)`;
        element.style.width = width ? `${width}px` : "";
        element.style.height = height ? `${height}px` : "";
      });
    }

    /** Where a value's mark goes, null outside the figure: a line down or across it, or a ring on a point. */
    place({ _size: { l, t, w, h: height }, xaxis, yaxis }, link, value, why) {
      if (value < 0) return null;
      const shown = value + (link.offset || 0);
      if (link.axis === "x") {
        const x = xaxis.d2p(shown);
        return x >= 0 && x <= w ? { kind: "es-cursor", why, x: l + x, y: t, height } : null;
      }
      if (link.axis === "y") {
        const y = yaxis.d2p(shown);
        return y >= 0 && y <= height ? { kind: "es-across", why, x: l, y: t + y, width: w } : null;
      }
      for (const trace of this.plot._fullData) {
        const index = Array.from(trace.customdata || []).findIndex((row) => at(row, link.custom) === shown);
        if (index < 0) continue;
        const [x, y] = [l + xaxis.d2p(trace.x[index]), t + yaxis.d2p(trace.y[index])];
        return Number.isFinite(x) && Number.isFinite(y) ? { kind: "es-spot", why, x, y } : null;
      }
      return null;
    }
  }

  window.Scope.Links = Links;
})();
