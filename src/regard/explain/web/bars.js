// A value for each name, as bars from zero on; negative ones go to the left.

import { make, token } from "./element.js";
import { four } from "./number.js";

/** The body of a panel of bars. */
export function drawBars(panel) {
  const unit = panel.unit ? make("p", { class: "unit" }, panel.unit) : null;
  const entries = panel.names.map((name, place) => ({ name, value: panel.values[place] }));
  const list = entries.length ? barList(entries) : make("p", { class: "unit" }, "no values");
  return make("div", { class: "bars" }, list, unit);
}

/** A list of bars. entries: name and value, and isMarked for one to look at. */
export function barList(entries) {
  const values = entries.map(({ value }) => value ?? NaN).filter(Number.isFinite);
  const most = Math.max(...values, 0);
  const least = Math.min(...values, 0);
  const span = most - least || 1;
  const rows = entries.map(({ name, value, isMarked }) => {
    const bar = make("span", { class: value < 0 ? "bar negative" : "bar", hidden: !value });
    const [from, to] = value < 0 ? [value, 0] : [0, value ?? 0];
    bar.style.left = `${(100 * (from - least)) / span}%`;
    bar.style.width = `${(100 * (to - from)) / span}%`;
    const number = make("span", { class: "number", title: String(value ?? "none") }, four(value));
    const track = make("span", { class: "track", "aria-hidden": "true" }, bar);
    return make("li", { class: isMarked ? "marked" : null }, token(name, { title: String(name) }), track, number);
  });
  return make("ul", { class: "barlist" }, ...rows);
}
