// A matrix with every number written out.

import { make, reachable, token } from "./element.js";
import { drawFormula } from "./note.js";
import { counted, four } from "./number.js";

const MANY = 8; // columns from which on four are enough to follow a calculation
const FEW = 4;
const MOST_ROWS = 32;

/** The body of a panel of numbers. memory: whether the reader wanted all columns or rows. */
export function drawNumbers(panel, { memory = {} } = {}) {
  const values = panel.values ?? [];
  const width = values.reduce((most, row) => Math.max(most, row.length), 0);
  const holder = reachable(make("div", { class: "wide" }));
  const element = make("div", { class: "numbers" });
  if (panel.math) element.append(drawFormula(panel.math));
  else if (panel.equation) element.append(make("p", { class: "equation" }, panel.equation));
  const show = () => {
    const columns = width > MANY && !memory.allColumns ? FEW : width;
    const rows = values.length > MOST_ROWS && !memory.allRows ? MOST_ROWS : values.length;
    holder.replaceChildren(table(panel, rows, columns, width));
  };
  const what = panel.columns ? "columns" : "dimensions";
  const tools = [];
  const offer = (name, ...labels) => tools.push(choice(labels, memory, name, show));
  if (width > MANY) offer("allColumns", `${FEW} ${what}`, `all ${width}`);
  if (values.length > MOST_ROWS) offer("allRows", `${MOST_ROWS} rows`, `all ${values.length}`);
  if (tools.length) element.append(make("div", { class: "bar-of-tools" }, ...tools));
  element.append(holder);
  show();
  return element;
}

/** Two buttons, for few and for all, of which one is pressed. */
function choice(labels, memory, name, show) {
  const press = (isAll) => {
    memory[name] = isAll;
    mark();
    show();
  };
  const button = (label, place) => make("button", { type: "button", onclick: () => press(place === 1) }, label);
  const buttons = labels.map(button);
  const mark = () => {
    const pressed = memory[name] ? 1 : 0;
    buttons.forEach((one, place) => one.setAttribute("aria-pressed", String(place === pressed)));
  };
  mark();
  return make("span", { class: "switch", role: "group" }, ...buttons);
}

function table(panel, rows, columns, width) {
  const marked = new Set((panel.marked ?? []).map((cell) => cell.join(" ")));
  const hasNames = Boolean(panel.rows);
  const lines = panel.values.slice(0, rows).map((row, number) => {
    const cells = row.slice(0, columns).map((value, column) => {
      const kind = ["number", marked.has(`${number} ${column}`) ? "marked" : "", value === null ? "masked" : ""];
      const title = value === null ? "masked" : String(value);
      return make("td", { class: kind.filter(Boolean).join(" "), title }, four(value));
    });
    const name = hasNames ? [make("th", { scope: "row" }, token(panel.rows[number] ?? ""))] : [];
    return make("tr", {}, ...name, ...cells, columns < width ? make("td", { class: "masked" }, "…") : null);
  });
  const rest = columns < width ? make("th", { class: "unit" }, `${width - columns} more`) : null;
  const names = (panel.columns ?? []).slice(0, columns).map((name) => make("th", { scope: "col" }, token(name)));
  const head = panel.columns ? make("tr", {}, hasNames ? make("td") : null, ...names, rest) : null;
  const size = `${counted(panel.values.length, "row")}, ${counted(width, "column")}`;
  const label = `${panel.title ?? ""} (${size})`;
  return make("table", { class: "matrix", "aria-label": label }, make("thead", {}, head), make("tbody", {}, ...lines));
}
