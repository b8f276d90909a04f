// Words, equations, and answers to questions that a reader may ask.

import { make } from "./element.js";
import { elementOf } from "./markup.js";

/** The body of a note. */
export function drawNote({ text = "", style = "text", math = null }) {
  if (math) return drawFormula(math);
  if (style === "equation") return make("p", { class: "equation" }, text);
  const parts = text.split(/\n{2,}/).map((part) => make("p", { dir: "auto" }, part));
  return make("div", { class: style === "answer" ? "note answer" : "note" }, ...parts);
}

/** A formula that is set, on a ground of its own. */
export function drawFormula(math) {
  return make("div", { class: "set" }, elementOf(math));
}
