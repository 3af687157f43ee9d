/* History: the runs of this visit, to be shown again alone or side by side. */
(() => {
  "use strict";
  const { h, panels } = window.Scope;
  const MOST = 4;

  panels.history = (root, { trigger, drawn }) => {
    let ticked = [];

    function row(entry, refresh) {
      const key = `${entry.run}/${entry.lane}`;
      const box = h("input", { type: "checkbox", "aria-label": `pick ${entry.label}` });
      box.checked = ticked.some((pick) => pick.key === key);
      box.addEventListener("change", () => {
        ticked = ticked.filter((pick) => pick.key !== key);
        if (box.checked) ticked.push({ key, run: entry.run, lane: entry.lane });
        refresh();
      });
      const text = h("span", {}, h("b", {}, entry.label), h("small", {}, entry.summary), h("small", {}, entry.prompt));
      return h("label", { class: "es-past" }, box, text);
    }

    return {
      update(entries) {
        const known = new Set(entries.map((entry) => `${entry.run}/${entry.lane}`));
        ticked = ticked.filter((pick) => known.has(pick.key));
        const show = h("button", {
          type: "button", class: "es-chip",
          onclick: () => trigger("click", { action: "show", picks: ticked.map(({ run, lane }) => ({ run, lane })) }),
        });
        const refresh = () => {
          show.disabled = ticked.length < 1 || ticked.length > MOST;
          show.textContent = ticked.length > 1 ? `show ${ticked.length} side by side` : "show again";
        };
        refresh();
        const empty = h("p", { class: "es-about" }, "Your runs are listed here, the latest first, until you close the page.");
        root.replaceChildren(...(entries.length ? [h("div", { class: "es-pasts" }, entries.map((entry) => row(entry, refresh))), show] : [empty]));
        drawn();
      },
    };
  };
})();
