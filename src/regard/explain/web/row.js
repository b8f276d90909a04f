// The exact weights of one row of a map, or of several summed, in a box beside it.

import { barList } from "./bars.js";
import { asToken, make, token } from "./element.js";
import { counted, four } from "./number.js";

const MOST = 16;
const SPOKEN = 5;

/** What the box says. numbers: the rows, one or several. column: the one pointed at, or -1. */
export function rowBox({ numbers, weights, names, columns, column, error }) {
  const isLong = weights.length > MOST;
  const order = isLong ? largestFirst(weights).filter((place) => weights[place]).slice(0, MOST) : [...weights.keys()];
  if (column >= 0 && !order.includes(column)) order.splice(MOST - 1, 1, column);
  const entries = order.map((place) => ({
    name: columns[place] ?? String(place + 1),
    value: missing(weights[place]),
    isMarked: place === column,
  }));
  const rest = weights.length - order.length;
  const others = rest > 0 ? `and ${counted(rest, "other")}, in all ${four(restOf(weights, order))}` : null;
  return [
    make("h4", {}, ...heading(numbers, names)),
    barList(entries),
    others ? make("p", { class: "unit" }, others) : null,
    error ? make("p", { class: "unit" }, `to within ${four(error)}`) : null,
  ].filter(Boolean);
}

/** The same for somebody who listens. */
export function spokenRow({ numbers, weights, names, columns, column }) {
  const told = largestFirst(weights)
    .slice(0, SPOKEN)
    .map((place) => `${asToken(columns[place] ?? place + 1)} ${four(weights[place])}`);
  const [first] = numbers;
  const one = `Row ${first + 1}, ${asToken(names[first] ?? "no label")}`;
  const what = numbers.length === 1 ? one : `Sum of ${numbers.length} rows`;
  const here = column >= 0 ? ` At ${asToken(columns[column] ?? column + 1)} ${four(missing(weights[column]))}.` : "";
  return `${what}:${here} Largest: ${told.join(", ")}.`;
}

function heading(numbers, names) {
  if (numbers.length > 1) return [`sum of ${numbers.length} rows`];
  const [number] = numbers;
  const small = make("span", { class: "unit" }, ` row ${number + 1}`);
  return names[number] === undefined ? [`row ${number + 1}`] : [token(names[number]), small];
}

function largestFirst(weights) {
  const places = [...weights.keys()].filter((place) => !Number.isNaN(weights[place]));
  return places.sort((a, b) => Math.abs(weights[b]) - Math.abs(weights[a]) || a - b);
}

function restOf(weights, order) {
  const kept = new Set(order);
  return weights.reduce((sum, value, place) => (kept.has(place) || Number.isNaN(value) ? sum : sum + value), 0);
}

function missing(value) {
  return Number.isNaN(value) ? null : value;
}
