// What can be asked for otherwise: a layer, a head, a temperature.

import { freshName, make } from "./element.js";
import { four } from "./number.js";

const PAUSE = 150; // milliseconds after a slider moved

/** The controls of a view. onchange(values) gets the values of those that the reader changed. */
export class Controls {
  constructor(onchange) {
    this.onchange = onchange;
    const stay = (event) => event.preventDefault();
    this.element = make("form", { class: "controls", "aria-label": "Controls", onsubmit: stay });
    this.fields = new Map();
    this.changed = {};
  }

  /** Shows controls; those that are there already keep their place and focus. */
  show(controls) {
    const told = JSON.stringify(controls.map((control) => ({ ...control, value: null })));
    if (told !== this.told) {
      const field = (control) => fieldOf(control, () => this.change(control));
      this.fields = new Map(controls.map((control) => [control.name, field(control)]));
      this.element.replaceChildren(...[...this.fields.values()].map(({ element }) => element));
      this.element.hidden = controls.length === 0;
      this.told = told;
    }
    for (const { name, value } of controls) this.fields.get(name).set(value);
  }

  /** What was left alone is not asked for, so that it goes on following the text. */
  change({ name, kind }) {
    this.changed[name] = this.fields.get(name).get();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), kind === "range" ? PAUSE : 0);
  }

  tell() {
    const values = this.changed;
    this.changed = {};
    this.onchange(values);
  }
}

function fieldOf(control, act) {
  const id = freshName(control.name);
  const label = make("label", { for: id }, control.label);
  const field = (FIELDS[control.kind] ?? FIELDS.text)(control, id, act);
  const parts = control.kind === "toggle" ? [...field.parts, label] : [label, ...field.parts];
  return { ...field, element: make("span", { class: `control ${control.kind}` }, ...parts) };
}

const FIELDS = {
  choice({ values }, id, act) {
    const label = (value) => (value === null ? "none" : String(value));
    const options = values.map((value, place) => make("option", { value: place }, label(value)));
    const select = make("select", { id, onchange: act }, ...options);
    const place = (value) => values.findIndex((one) => one === value);
    const set = (value) => (select.selectedIndex = place(value));
    return { parts: [select], get: () => values[select.selectedIndex], set };
  },

  range({ low, high, step }, id, act) {
    const told = make("output", { for: id });
    const slider = make("input", { id, type: "range", min: low, max: high, step });
    const tell = () => (told.textContent = four(Number(slider.value)));
    slider.addEventListener("input", () => {
      tell();
      act();
    });
    const set = (value) => {
      if (document.activeElement !== slider || Number(slider.value) === value) slider.value = value;
      tell();
    };
    return { parts: [slider, told], get: () => Number(slider.value), set };
  },

  toggle(control, id, act) {
    const box = make("input", { id, type: "checkbox", onchange: act });
    return { parts: [box], get: () => box.checked, set: (value) => (box.checked = Boolean(value)) };
  },

  text(control, id, act) {
    const field = make("input", { id, type: "text", dir: "auto", spellcheck: "false", onchange: act });
    const set = (value) => {
      if (document.activeElement !== field) field.value = value ?? "";
    };
    return { parts: [field], get: () => field.value, set };
  },
};
