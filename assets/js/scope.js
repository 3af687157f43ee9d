/* Scope: what every panel of the page shares: a bus for linked views, safe DOM building, themes, numbers. */
(() => {
  "use strict";
  if (window.Scope) return;

  const bus = new EventTarget();
  const panels = {};
  const latest = {};

  /** Build an element. Text only ever enters as a text node: model output can't become markup. */
  function h(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "class") element.className = value;
      else element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  /** Set text only where it changed, so that nothing is laid out again for nothing. */
  function say(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  const on = (name, callback) => bus.addEventListener(name, (event) => callback(event.detail));
  const emit = (name, detail = {}) => {
    latest[name] = detail;
    bus.dispatchEvent(new CustomEvent(name, { detail }));
  };

  /** Like `on`, and told at once what was last said: for panels that are opened later than others. */
  const follow = (name, callback) => {
    on(name, callback);
    if (name in latest) callback(latest[name]);
  };

  /** Call at most once a frame, with the latest arguments. */
  function framed(callback) {
    let waiting = null;
    return (...args) => {
      if (waiting === null) {
        requestAnimationFrame(() => {
          const latest = waiting;
          waiting = null;
          callback(...latest);
        });
      }
      waiting = args;
    };
  }

  function parse(text) {
    try {
      return text ? JSON.parse(text) : null;
    } catch {
      return null;
    }
  }

  /** Start the panel `kind` in `element` and count its draws in data-ready, on it and on its block. */
  function mount(kind, element, props, watch, trigger, spec) {
    const root = element.querySelector("[data-panel]") || element;
    const block = element.closest("[id]:not([id^='html-'])") || element;
    let draws = 0;
    const drawn = () => {
      draws += 1;
      root.setAttribute("data-ready", draws);
      block.setAttribute("data-ready", draws);
    };
    const panel = panels[kind](root, { props, trigger, drawn, block, spec });
    if (!panel.update) return;
    const update = () => {
      const value = parse(props.value);
      if (value !== null) panel.update(value);
    };
    watch("value", update);
    update();
  }

  const dark = () => document.body.classList.contains("dark");
  const css = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

  let wasDark = null;
  function watchTheme() {
    const look = () => {
      if (dark() === wasDark) return;
      wasDark = dark();
      emit("theme");
    };
    new MutationObserver(look).observe(document.body, { attributes: true, attributeFilter: ["class"] });
    look();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    emit("hover");
    emit("pin");
  });
  if (document.body) watchTheme();
  else document.addEventListener("DOMContentLoaded", watchTheme);

  const LETTERS = ["A", "B", "C", "D"];

  window.Scope = { panels, h, say, on, follow, emit, framed, parse, mount, dark, css, LETTERS };
})();
