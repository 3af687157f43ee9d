/* Cards: the figures of each run, what they are of, and a way to measure what is not measured yet. */
(() => {
  "use strict";
  const { h, follow, panels, run, LETTERS } = window.Scope;

  function number(entry, trigger) {
    const value = h("dd", { class: entry.value === null ? "es-number none" : "es-number" });
    if (entry.value !== null) value.append(entry.value, h("small", {}, entry.unit || ""));
    else if (entry.action) {
      value.append(
        h("button", {
          type: "button", class: "es-chip", "data-action": entry.action,
          onclick: () => trigger("click", { action: entry.action }), "aria-label": `measure ${entry.label}`,
        }, "measure")
      );
    } else value.append("not measured");
    return h("div", { class: "es-figure", title: entry.help }, h("dt", {}, entry.label), value,
      entry.note ? h("dd", { class: "es-note" }, entry.note) : null);
  }

  function card(lane, index, single, trigger) {
    const letter = single ? null : h("b", { class: `es-letter lane-${index}` }, LETTERS[index]);
    const verdict = lane.verdict ? h("span", { class: `es-verdict ${lane.verdict}`, "data-lane": index }, lane.verdict) : null;
    return h("article", { class: "es-run" }, h("h3", {}, letter, h("span", {}, lane.label), verdict),
      h("dl", {}, lane.numbers.map((entry) => number(entry, trigger))));
  }

  panels.cards = (root, { trigger, drawn }) => {
    const list = h("div", { class: "es-runs" });
    const about = h("p", { class: "es-about" });
    const words = h("dl", { class: "es-words" });
    const help = h("details", { class: "es-help" }, h("summary", {}, "What these figures mean"), words);
    root.append(list, about, help);

    /** What a verdict was judged by, which the run itself knows: by pointer, and in words below. */
    let terms = [];
    const judge = () => {
      const verdicts = [...list.querySelectorAll(".es-verdict")];
      verdicts.forEach((verdict) => (verdict.title = run.lanes[verdict.dataset.lane]?.judged || ""));
      const judged = [...new Set(verdicts.filter(({ title }) => title).map((verdict) => `${verdict.textContent}: ${verdict.title}`))];
      words.replaceChildren(...[...judged.map((text) => ["verdict", text]), ...terms].flatMap(([term, meaning]) => [h("dt", {}, term), h("dd", {}, meaning)]));
    };
    follow("run", judge);
    return {
      update(value) {
        const focused = document.activeElement && document.activeElement.dataset.action;
        const single = value.lanes.length < 2;
        list.className = `es-runs n${value.lanes.length}`;
        list.replaceChildren(...value.lanes.map((lane, index) => card(lane, index, single, trigger)));
        about.textContent = value.about;
        const told = new Map(value.lanes.flatMap((lane) => lane.numbers.map((entry) => [entry.label, entry.help])));
        terms = [...told];
        judge();
        if (focused) list.querySelector(`[data-action="${focused}"]`)?.focus();
        drawn();
      },
    };
  };
})();
