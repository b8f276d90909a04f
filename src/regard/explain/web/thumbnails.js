// The maps of all heads at once, each small: sorted, named, and opened large by a click.

import { SERIES, isDark, rampOf, whenTurned } from "./colour.js";
import { freshName, make } from "./element.js";
import { drawHeat } from "./heat.js";
import { Matrix } from "./matrix.js";
import { counted, digits } from "./number.js";
import { canvasOf } from "./png.js";

const LAYER = "layer";
const NAME = "name";
const RISING = ["entropy", "distance"]; // the least first; of a share of the weight the most
const ERROR = 1 / 255; // of a weight whose root came in eight bits, at most

/** The body of a panel of small maps. memory: the order, the name and the head that the reader chose. */
export function drawThumbnails(panel, given) {
  return new Grid(panel, given).element;
}

class Grid {
  constructor(panel, { memory = {}, exactRows = null, onask = null } = {}) {
    Object.assign(this, { panel, memory, exactRows: panel.has_rows ? exactRows : null, onask });
    const hint = "Point at a head to read its figures; click opens it.";
    this.told = make("p", { class: "unit told", role: "status" }, hint);
    this.across = Math.max(1, ...panel.places.map(([, head]) => head));
    this.cells = panel.places.map((_, number) => this.cell(number));
    const label = `${panel.title || "Heads"}: ${counted(panel.count, "map")}. Arrow keys move, Enter opens.`;
    this.grid = make("div", { class: "thumbs", role: "group", "aria-label": label });
    this.grid.style.setProperty("--across", this.across);
    this.grid.addEventListener("keydown", (event) => this.press(event));
    this.opened = make("div", { class: "opened", hidden: true });
    this.element = make("div", { class: "thumbnails" }, this.tools(), this.told, this.grid, this.opened);
    this.arrange();
    whenTurned(this.element, () => this.paint());
    this.ready = panel.count ? canvasOf(panel.sheet).then((sheet) => this.read(sheet)) : Promise.resolve();
  }

  get sort() {
    return this.memory.sort ?? this.panel.sort ?? LAYER;
  }

  /** The name whose heads are shown alone; what was chosen of another text may be none here. */
  get name() {
    return this.names.includes(this.memory.name) ? this.memory.name : null;
  }

  tools() {
    const choose = (event) => this.choose({ sort: event.target.value });
    const sorts = make("select", { id: freshName("sort"), onchange: choose });
    for (const name of [LAYER, NAME, ...Object.keys(this.panel.figures)]) {
      const told = name === LAYER ? "layer and head" : name;
      sorts.append(make("option", { value: name, selected: name === this.sort }, told));
    }
    const often = new Map();
    for (const name of this.panel.names.filter(Boolean)) often.set(name, (often.get(name) ?? 0) + 1);
    this.names = [...often.keys()].sort((a, b) => often.get(b) - often.get(a) || (a < b ? -1 : 1));
    this.chips = this.names.map((name) => this.chip(name, often.get(name)));
    const chips = make("span", { class: "chips", role: "group", "aria-label": "Heads of a name alone" }, ...this.chips);
    return make("div", { class: "bar-of-tools" }, make("label", { for: sorts.id }, "sorted by ", sorts), chips);
  }

  chip(name, count) {
    const press = () => this.choose({ name: this.name === name ? null : name });
    const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = this.colour(name);
    return make("button", { type: "button", "data-name": name, onclick: press }, swatch, ` ${name} ${count}`);
  }

  colour(name) {
    return SERIES[this.names.indexOf(name) % SERIES.length];
  }

  choose(change) {
    Object.assign(this.memory, change);
    this.arrange();
  }

  cell(number) {
    const { labels, short } = this.panel;
    const canvas = make("canvas", { "aria-hidden": "true" });
    const tell = () => (this.told.textContent = this.words(number));
    const given = { type: "button", class: "thumb", "aria-label": this.words(number), title: this.words(number) };
    const acts = { onpointerenter: tell, onfocus: tell, onclick: () => this.open(number) };
    const caption = make("small", {}, labels[number], short[number] ? make("i", {}, ` ${short[number]}`) : null);
    return make("button", { ...given, ...acts, tabindex: -1 }, canvas, caption);
  }

  /** A head in words: its place, its name and its figures. */
  words(number) {
    const { places, labels, names, figures } = this.panel;
    const [layer, head] = places[number];
    const told = Object.entries(figures).map(([name, values]) => `${name} ${digits(values[number], 3)}`);
    const back = labels[number].includes("b") ? ", backward" : "";
    return `Layer ${layer}, head ${head}${back}${names[number] ? `: ${names[number]}` : ""}. ${told.join(", ")}`;
  }

  /** The numbers of the maps in the order that was chosen. */
  get order() {
    const { places, labels, names, figures } = this.panel;
    const order = [...places.keys()];
    const isBack = (number) => labels[number].includes("b");
    const byPlace = (a, b) => places[a][0] - places[b][0] || isBack(a) - isBack(b) || places[a][1] - places[b][1];
    if (this.sort === LAYER) return order.sort(byPlace);
    const rank = (number) => (names[number] ? this.names.indexOf(names[number]) : this.names.length);
    if (this.sort === NAME) return order.sort((a, b) => rank(a) - rank(b) || byPlace(a, b));
    const [values, sign] = [figures[this.sort], RISING.includes(this.sort) ? 1 : -1];
    return order.sort((a, b) => sign * (values[a] - values[b]) || byPlace(a, b));
  }

  arrange() {
    const { name } = this;
    const order = this.order.filter((number) => !name || this.panel.names[number] === name);
    this.shown = order;
    const isByLayer = this.sort === LAYER && !name;
    for (const [number, cell] of this.cells.entries()) {
      cell.style.gridColumn = isByLayer ? this.panel.places[number][1] : "auto";
      cell.style.borderBottomColor = this.panel.names[number] ? this.colour(this.panel.names[number]) : "transparent";
    }
    this.grid.replaceChildren(...order.map((number) => this.cells[number]));
    for (const chip of this.chips) chip.setAttribute("aria-pressed", String(chip.dataset.name === name));
    this.rove(order.includes(this.memory.open) ? this.memory.open : order[0]);
  }

  /** The one head that Tab leads to. */
  rove(number) {
    for (const [place, cell] of this.cells.entries()) cell.tabIndex = place === number ? 0 : -1;
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.shown.findIndex((number) => this.cells[number] === document.activeElement);
    const across = getComputedStyle(this.grid).gridTemplateColumns.split(" ").length;
    const last = this.shown.length - 1;
    const keys = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across, Home: -at, End: last - at };
    const step = keys[event.key];
    if (at < 0 || step === undefined) return;
    const number = this.shown[Math.min(last, Math.max(0, at + step))];
    this.rove(number);
    this.cells[number].focus();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Takes the maps out of the sheet that they came on. */
  read(sheet) {
    const [rows, columns] = this.panel.shape;
    const pixels = sheet.getContext("2d").getImageData(0, 0, sheet.width, sheet.height).data;
    this.maps = this.cells.map((_, number) => {
      const [top, left] = [Math.floor(number / this.panel.across) * rows, (number % this.panel.across) * columns];
      const values = new Float32Array(rows * columns);
      for (let place = 0; place < values.length; place += 1) {
        const pixel = (top + Math.floor(place / columns)) * sheet.width + left + (place % columns);
        values[place] = (pixels[4 * pixel] / 255) ** 2;
      }
      return values;
    });
    this.paint();
    if ((this.memory.open ?? Infinity) < this.panel.count) this.open(this.memory.open, false);
  }

  paint() {
    if (!this.maps) return;
    const [rows, columns] = this.panel.shape;
    const { packed } = rampOf(false, isDark(this.element.isConnected ? this.element : document.body));
    this.cells.forEach((cell, number) => {
      const canvas = cell.firstChild;
      [canvas.width, canvas.height] = [columns, rows];
      const image = new ImageData(columns, rows);
      const words = new Uint32Array(image.data.buffer);
      const high = this.panel.highs[number] || 1;
      this.maps[number].forEach((value, place) => {
        words[place] = packed[1 + Math.round(254 * Math.min(1, value / high))];
      });
      canvas.getContext("2d").putImageData(image, 0, 0);
    });
  }

  /** Shows a head large below the grid; once more, and it is closed. */
  open(number, mayClose = true) {
    if (!this.maps) return;
    const isClosed = mayClose && this.memory.open === number && !this.opened.hidden;
    this.memory.open = isClosed ? null : number;
    this.opened.hidden = isClosed;
    this.cells.forEach((cell, place) => cell.setAttribute("aria-pressed", String(!isClosed && place === number)));
    this.rove(number);
    if (isClosed) {
      this.opened.replaceChildren();
      return;
    }
    const close = () => {
      this.open(number);
      this.cells[number].focus();
    };
    const buttons = [this.alone(number), make("button", { type: "button", onclick: close }, "Close")];
    const head = make("div", { class: "bar-of-tools" }, make("h4", {}, this.words(number)), ...buttons);
    this.opened.replaceChildren(head, drawHeat(this.large(number), this.given(number)));
    if (mayClose) this.opened.scrollIntoView({ block: "nearest" });
  }

  /** Leads to the view of this head alone, where somebody can make it. */
  alone(number) {
    if (!this.onask) return null;
    const [view, side] = this.panel.alone;
    const [layer, head] = this.panel.places[number];
    const options = { layer, head, ...(side ? { side } : {}) };
    return make("button", { type: "button", onclick: () => this.onask({ view, options }) }, "Its own view");
  }

  given(number) {
    const memory = (this.memory.map ??= {});
    return { memory, exactRows: this.exactRows && ((first, count) => this.exactRows(first, count, { map: number })) };
  }

  /** A map as a panel of shades: every weight where rows can be had or all of them came, else a cell for each block. */
  large(number) {
    const { shape, step, rows, columns, row_name, column_name, title, highs } = this.panel;
    const [tall, wide] = shape;
    const values = this.maps[number];
    const panel = { row_name, column_name, high: highs[number], title: `${title}, ${this.panel.labels[number]}` };
    if (step === 1) return { ...panel, rows, columns, weights: new Matrix(tall, wide, values, ERROR) };
    if (!this.exactRows) {
      const scale = `largest weight of ${step} x ${step}`;
      const spans = { rows: spansOf(rows, step), columns: spansOf(columns, step) };
      return { ...panel, ...spans, scale, weights: new Matrix(tall, wide, values, ERROR) };
    }
    const whole = new Float32Array(rows.length * columns.length);
    for (let place = 0; place < whole.length; place += 1) {
      const [row, column] = [Math.floor(place / columns.length), place % columns.length];
      whole[place] = values[Math.floor(row / step) * wide + Math.floor(column / step)];
    }
    return { ...panel, rows, columns, weights: new Matrix(rows.length, columns.length, whole, ERROR, step) };
  }
}

/** The first and the last label of each block. */
function spansOf(labels, step) {
  const found = [];
  for (let first = 0; first < labels.length; first += step) {
    found.push(`${labels[first]} … ${labels[Math.min(labels.length, first + step) - 1]}`);
  }
  return found;
}
