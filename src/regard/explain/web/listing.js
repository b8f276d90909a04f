// A table of texts and numbers, in the order of any of its columns.

import { make, reachable, token } from "./element.js";
import { counted, four } from "./number.js";

const MOST = 200;
const TIME = /^\d{4}-\d\d-\d\d[ T\d:.]*$/;

/** The body of a panel with a table. memory: the order the reader chose, and whether all rows were wanted. */
export function drawListing(panel, { memory = {} } = {}) {
  const holder = reachable(make("div", { class: "wide" }));
  const element = make("div", { class: "listing" }, holder);
  const show = (focus = null) => {
    holder.replaceChildren(table(panel, memory, show));
    if (focus !== null) holder.querySelectorAll("th button")[focus].focus();
  };
  show();
  return element;
}

function table(panel, memory, show) {
  const rows = panel.rows ?? [];
  const order = sorted(rows, memory);
  const shown = memory.allRows ? order : order.slice(0, MOST);
  const isNumber = panel.columns.map((name) => name.endsWith("#"));
  const heads = panel.columns.map((name, place) => {
    const isIt = memory.column === place;
    const direction = isIt ? (memory.down ? "descending" : "ascending") : null;
    const press = () => {
      memory.down = isIt ? !memory.down : isNumber[place];
      memory.column = place;
      show(place);
    };
    const sign = isIt ? (memory.down ? "↓" : "↑") : "";
    const order = make("span", { class: "order", "aria-hidden": "true" }, sign);
    const given = { type: "button", onclick: press, title: "Put in this order" };
    const label = name.replace(/#$/, "");
    // Before the name of a column of numbers, so that name and numbers end at the same place.
    const button = make("button", given, ...(isNumber[place] ? [order, label] : [label, order]));
    return make("th", { scope: "col", class: isNumber[place] ? "number" : null, "aria-sort": direction }, button);
  });
  const line = (number) => make("tr", {}, ...rows[number].map((cell, place) => cellOf(cell, isNumber[place])));
  const parts = [make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...shown.map(line))];
  const body = [make("table", { "aria-label": panel.title ?? "table" }, ...parts)];
  if (shown.length < rows.length) {
    const more = () => {
      memory.allRows = true;
      show();
    };
    body.push(make("button", { type: "button", onclick: more }, counted(rows.length - shown.length, "more row")));
  }
  return make("div", {}, ...body);
}

function cellOf(cell, isNumber) {
  if (cell === null) return make("td", { class: "masked" }, "");
  if (typeof cell === "number") return make("td", { class: "number", title: String(cell) }, four(cell));
  return make("td", { class: isNumber ? "number" : TIME.test(cell) ? "time" : null }, token(cell));
}

function sorted(rows, { column, down }) {
  const order = [...rows.keys()];
  if (column === undefined) return order;
  const areNumbers = (...cells) => cells.every((cell) => typeof cell === "number");
  const byText = (a, b) => String(a).localeCompare(String(b), "en", { numeric: true });
  const compare = (a, b) => (areNumbers(a, b) ? a - b : byText(a, b));
  return order.sort((first, second) => {
    const [a, b] = [rows[first][column], rows[second][column]];
    if (a === null || b === null) return (a === null) - (b === null);
    return (down ? -1 : 1) * compare(a, b) || first - second;
  });
}
