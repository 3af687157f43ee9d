/* Corner: which model answers, and the switch between light and dark, kept for the next visit. */
(() => {
  "use strict";
  const { h, panels, dark } = window.Scope;
  const KEY = "entropyscope-theme";

  function remember(theme) {
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // A frame without storage: the switch holds for this visit only.
    }
  }

  function remembered() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  }

  panels.corner = (root, { drawn }) => {
    const model = h("span", { class: "es-model" });
    const button = h("button", { type: "button", class: "es-chip" });
    const label = () => {
      button.textContent = dark() ? "☀ light" : "☾ dark";
      button.setAttribute("aria-label", dark() ? "switch to the light theme" : "switch to the dark theme");
    };
    button.addEventListener("click", () => {
      document.body.classList.toggle("dark");
      remember(dark() ? "dark" : "light");
      label();
    });
    const asked = new URLSearchParams(location.search).get("__theme");
    const theme = asked || remembered();
    if (theme === "dark" || theme === "light") document.body.classList.toggle("dark", theme === "dark");
    label();
    root.append(model, button);
    return {
      update({ text }) {
        model.textContent = text;
        drawn();
      },
    };
  };
})();
