// The answers of a diagram at a position, as the temperature and the cut make them.

import { barList } from "./bars.js";
import { chancesAt } from "./chances.js";
import { asToken, freshName, make } from "./element.js";
import { four } from "./number.js";

/** Bars and sliders. told: the names and values that are shown now. onturn: called when a slider changed them. */
export class Answers {
  constructor(answers, onturn) {
    this.answers = answers;
    this.onturn = onturn;
    this.chance = { temperature: 1, topK: 0 };
    this.told = { names: [], values: [] };
    this.place = 0;
    this.bars = make("div");
    this.element = make("div", { class: "answers" }, ...(answers ? this.sliders() : []), this.bars);
  }

  /** Shows what is answered at a place. */
  show(place) {
    const { answers } = this;
    if (!answers) return;
    this.place = place;
    this.told = chancesAt(answers, place, this.chance);
    const { names, values, others } = this.told;
    const entries = names.map((name, number) => ({ name, value: values[number] }));
    const left = answers.count - entries.length;
    const rest = others === null || left <= 0 ? "" : `all ${left.toLocaleString("en")} others ${four(others)}`;
    const { places } = answers;
    const at = places.length ? ` at ${asToken(places[Math.min(place, places.length - 1)])}` : "";
    const heading = make("h4", {}, `${answers.kind === "chance" ? "Chances" : "Numbers"}${at}`);
    this.bars.replaceChildren(heading, barList(entries), make("p", { class: "unit" }, rest));
  }

  sliders() {
    if (this.answers.kind !== "chance") return [];
    const most = this.answers.names[0]?.length ?? 0;
    return [
      this.slider("temperature", "temperature", { min: 0.1, max: 2, step: 0.05, value: 1 }),
      this.slider("top k", "topK", { min: 0, max: most, step: 1, value: 0 }),
    ];
  }

  slider(label, name, given) {
    const shown = () => (name === "topK" && !this.chance.topK ? "all" : four(this.chance[name]));
    const told = make("output", {}, shown());
    const turn = ({ target }) => {
      this.chance[name] = Number(target.value);
      told.textContent = shown();
      this.show(this.place);
      this.onturn();
    };
    const input = make("input", { type: "range", id: freshName(name), oninput: turn, ...given });
    return make("label", { class: "control", for: input.id }, label, input, told);
  }
}
