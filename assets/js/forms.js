/* Forms: settings drawn from the fields of a dataclass, so that a new policy brings its own form. */
(() => {
  "use strict";
  const { h, on, panels, LETTERS } = window.Scope;

  const PARTS = { decides: "decides by", recomputes: "recomputes", cost: "deciding costs", source: "source", differs: "differs from it" };
  const SYMBOLS = "L positions of prompt and generation, N layers, Y generated tokens, b block length, V vocabulary, d width, H heads of D.";
  let unfolded = window.matchMedia("(min-width: 861px) and (min-height: 1080px)").matches;

  let serial = 0;

  /** One input a field. A number stays text: `inf` and `none` are values too, and the server judges. */
  function control(field, value, changed) {
    const id = `es-field-${(serial += 1)}`;
    const name = field.symbol ? `${field.label} ${field.symbol}` : field.label;
    let input;
    if (field.kind === "bool") {
      input = h("input", { type: "checkbox", id, "data-name": field.name });
      input.checked = value === true || value === "true";
      input.addEventListener("change", () => changed(input.checked));
      return h("div", { class: "es-field check", title: field.help }, input, h("label", { for: id }, name));
    }
    if (field.choices) {
      const options = field.choices.map((choice) => h("option", { value: choice }, choice));
      input = h("select", { id, "data-name": field.name }, options);
      input.value = value;
      input.addEventListener("change", () => changed(input.value));
    } else {
      input = h("input", { type: "text", id, "data-name": field.name, autocomplete: "off", spellcheck: "false" });
      if (field.kind !== "text") input.inputMode = "decimal";
      input.value = value;
      input.addEventListener("input", () => changed(input.value.trim()));
    }
    return h("div", { class: "es-field", title: field.help }, h("label", { for: id }, name), input);
  }

  /** Inputs for `fields`, calling changed(name, value); the first ones at hand, the rest folded away. */
  function inputs(fields, values, changed) {
    const make = (field) => control(field, values[field.name] ?? field.default, (value) => changed(field.name, value));
    const main = fields.filter((field) => !field.extra).map(make);
    const extra = fields.filter((field) => field.extra).map(make);
    const parts = fields.length ? [h("div", { class: "es-fields" }, main)] : [];
    if (extra.length) {
      parts.push(h("details", { class: "es-more" }, h("summary", {}, "more settings"), h("div", { class: "es-fields" }, extra)));
    }
    return parts;
  }

  const meanings = (fields) => fields.flatMap((field) => [h("dt", {}, field.label), h("dd", {}, prose(field.help))]);

  /** Inputs and what they mean. */
  function fieldset(fields, values, changed) {
    const words = h("dl", { class: "es-words" }, meanings(fields));
    return [...inputs(fields, values, changed), h("details", { class: "es-help" }, h("summary", {}, "what these mean"), words)];
  }

  /** Text whose `quoted` names are set apart. */
  function prose(text) {
    return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
  }

  /** A policy: what it does, its settings, and unfolded, how it decides, at what cost, and what they mean. */
  function policyForm({ about, fields }, values, changed) {
    const parts = Object.entries(PARTS).flatMap(([name, label]) => [h("dt", {}, label), h("dd", {}, prose(about[name]))]);
    const fold = h("details", { class: "es-help es-policy-card", open: unfolded },
      h("summary", {}, fields.length ? "about the policy and its settings" : "about the policy"),
      h("dl", { class: "es-words" }, parts, meanings(fields)), h("p", { class: "es-about" }, SYMBOLS));
    fold.addEventListener("toggle", () => (unfolded = fold.open));
    return [h("p", { class: "es-policy-about" }, prose(about.summary)), ...inputs(fields, values, changed), fold];
  }

  /** Mark the input that an error in the status line speaks of. */
  function blame(root) {
    on("status", ({ text }) => {
      const wrong = text.startsWith("error:") ? text : "";
      for (const input of root.querySelectorAll("[data-name]")) {
        const named = new RegExp(`\\b${input.dataset.name} is\\b`).test(wrong);
        if (named) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
        const fold = input.closest("details");
        if (named && fold) fold.open = true;
      }
    });
  }

  /** Settings of one dataclass. value: {"name": value as text or bool}. */
  panels.settings = (root, { props, spec, drawn }) => {
    blame(root);
    return {
      update(values) {
        const own = { ...values };
        root.replaceChildren(...fieldset(spec.fields, own, (name, value) => {
          own[name] = value;
          props.value = JSON.stringify(own);
        }));
        drawn();
      },
    };
  };

  /** A policy's settings. value: {"policy": name, "config": {...}}; the policy is chosen elsewhere. */
  panels.policy = (root, { props, spec, drawn }) => {
    blame(root);
    return {
      update(value) {
        const own = { policy: value.policy, config: { ...value.config } };
        const policy = spec.policies[own.policy];
        root.dataset.policy = own.policy;
        root.replaceChildren(...policyForm(policy, own.config, (name, entered) => {
          own.config[name] = entered;
          props.value = JSON.stringify(own);
        }));
        drawn();
      },
    };
  };

  /** Up to three more lanes to compare with. value: [{"policy", "config"}, ...]. */
  panels.lanes = (root, { props, spec, drawn }) => {
    blame(root);
    let lanes = [];
    const names = Object.keys(spec.policies);

    const store = () => (props.value = JSON.stringify(lanes));

    function row(lane, index) {
      const letter = LETTERS[index + 1];
      const options = names.map((name) => h("option", { value: name }, name));
      const select = h("select", { "aria-label": `policy of run ${letter}` }, options);
      select.value = lane.policy;
      select.addEventListener("change", () => {
        lanes[index] = { policy: select.value, config: {} };
        store();
        draw();
      });
      const remove = h("button", {
        type: "button", class: "es-chip", "aria-label": `remove run ${letter}`,
        onclick: () => {
          lanes.splice(index, 1);
          store();
          draw();
        },
      }, "remove");
      const head = h("div", { class: "es-lane-choice" }, h("b", { class: `es-letter lane-${index + 1}` }, letter), select, remove);
      return h("div", { class: "es-other" }, head, ...policyForm(spec.policies[lane.policy], lane.config, (name, value) => {
        lane.config[name] = value;
        store();
      }));
    }

    function draw() {
      const full = lanes.length >= LETTERS.length - 1;
      const add = h("button", {
        type: "button", class: "es-add", disabled: full,
        onclick: () => {
          const unused = names.find((name) => !lanes.some((lane) => lane.policy === name)) || names[0];
          lanes.push({ policy: unused, config: {} });
          store();
          draw();
          [...root.querySelectorAll(".es-lane-choice select")].pop()?.focus();
        },
      }, full ? "four runs at most" : "+ compare with another policy");
      root.replaceChildren(...lanes.map(row), add);
      drawn();
    }

    return {
      update(value) {
        lanes = value.map((lane) => ({ policy: lane.policy, config: { ...lane.config } }));
        draw();
      },
    };
  };
})();
