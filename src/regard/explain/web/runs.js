// The runs whose curves can be drawn: filtered by task, model and what was typed, newest first, ticked and coloured.

import { draw, fill, freshName, make, visible } from "./element.js";
import { filtered } from "./filter.js";
import { counted } from "./number.js";

const FEW = 5; // runs that are drawn before the reader chooses
const EXAMPLE = "lr>0.001 gpt";

/** Newest first, as far as it is known when each began. */
export function newest(runs) {
  return [...runs].sort((a, b) => (b.began ?? 0) - (a.began ?? 0));
}

/** The newest run with curves, and those before it that learnt the same from the same data: few. */
export function comparable(runs) {
  const measured = newest(runs).filter(({ error, has_curves: hasCurves = true }) => !error && hasCurves);
  const isLike = (one) => one.task === measured[0].task && one.data?.[0] === measured[0].data?.[0];
  return measured.filter(isLike).slice(0, FEW).map(({ name }) => name);
}

/** onchoose(names) is called when other runs are ticked. looks: the colours of runs by their names. */
export class RunList {
  constructor(looks, onchoose) {
    Object.assign(this, { looks, onchoose, runs: [], chosen: [], items: new Map() });
    const id = freshName("filter");
    const act = () => this.arrange();
    this.text = make("input", { type: "text", id, spellcheck: "false", placeholder: EXAMPLE, oninput: act });
    this.task = make("select", { "aria-label": "Task", onchange: act });
    this.model = make("select", { "aria-label": "Model", onchange: act });
    this.said = make("p", { class: "unit", role: "status" });
    const none = make("button", { type: "button", onclick: () => onchoose([]) }, "Untick all");
    this.boxes = make("ul", { class: "boxes" });
    const fields = [make("label", { for: id }, "Filter"), this.text, this.task, this.model];
    const filters = make("div", { class: "filters" }, ...fields);
    this.element = make("div", { class: "run-list" }, filters, this.said, this.boxes, none);
  }

  list(runs) {
    this.runs = newest(runs);
    for (const [select, key, all] of [[this.task, "task", "all tasks"], [this.model, "model", "all models"]]) {
      const names = [...new Set(runs.map((run) => run[key]).filter(Boolean))].sort();
      const before = select.value;
      const option = (value, told) => make("option", { value, selected: value === before }, told);
      select.replaceChildren(option("", all), ...names.map((name) => option(name, visible(name))));
      select.hidden = names.length < 2;
    }
    this.arrange();
  }

  mark(chosen) {
    this.chosen = chosen;
    this.arrange();
  }

  /** What is said of runs, such as how fast one goes, by their names. */
  tell(states) {
    for (const [name, { state }] of this.items) state.textContent = states.get(name) ?? "";
  }

  /** The list again, as far as it has changed: what has the focus keeps it. */
  arrange() {
    const isLike = ({ value }, own) => !value || own === value;
    const fits = ({ task, model }) => isLike(this.task, task) && isLike(this.model, model);
    const { found, wrong } = filtered(this.runs.filter(fits), this.text.value);
    const count = found.length === this.runs.length ? "" : `${found.length} of ${counted(this.runs.length, "run")}`;
    this.said.textContent = [wrong, count].filter(Boolean).join("; ");
    this.said.classList.toggle("over", Boolean(wrong));
    const items = found.map((run) => this.item(run));
    for (const { name, box, sample } of items) {
      box.checked = this.chosen.includes(name);
      sample.replaceChildren(...(box.checked ? [swatchOf(this.looks.of(name))] : []));
    }
    fill(this.boxes, items.map(({ element }) => element));
  }

  /** The line of a run, made once for what is known of it. */
  item({ name, label, model, task, error }) {
    const told = JSON.stringify([label, model, task, error]);
    const there = this.items.get(name);
    if (there?.told === told) return there;
    const given = { type: "checkbox", value: name, disabled: Boolean(error), onchange: () => this.turn(name) };
    const box = make("input", given);
    const about = make("small", {}, error ? visible(error) : `${model ?? ""}${task ? `, ${task}` : ""}`);
    const [state, sample] = [make("small", { class: "state" }), make("i", { class: "sample" })];
    const words = make("label", {}, box, sample, make("span", {}, visible(label)));
    const element = make("li", { "data-name": name }, words, about, state);
    const item = { name, told, box, state, sample, element };
    this.items.set(name, item);
    return item;
  }

  turn(name) {
    const others = this.chosen.filter((one) => one !== name);
    this.onchoose(others.length < this.chosen.length ? others : [...this.chosen, name]);
  }
}

/** A sample of a line. */
export function swatchOf({ colour, dash }) {
  const line = draw("path", { d: "M0 4H18", stroke: colour, "stroke-width": 3, "stroke-dasharray": dash });
  return draw("svg", { width: 18, height: 8, "aria-hidden": "true", class: "line-sample" }, line);
}
