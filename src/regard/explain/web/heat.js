// A map of weights: the large map, the small one, the row that is pointed at, and how weights become shades.

import { isDark, rampOf, whenTurned } from "./colour.js";
import { freshName, make, token, whenSized } from "./element.js";
import { largestOf, unpacked } from "./matrix.js";
import { four } from "./number.js";
import { Overview } from "./overview.js";
import { Plane } from "./plane.js";
import { rowBox, spokenRow } from "./row.js";
import { shadesOf } from "./shade.js";

const WIDE = 48; // columns from which on a weight of an even row would be too faint to see
const MOST_IN_TABLE = 1024;
const MOST_NAMED = 20;
const REST = 150; // milliseconds on a row before its exact weights are asked for
const READ = 6; // pixels of a cell from which on the rows that are seen are asked for
const MOST_AT_ONCE = 256 * 256; // weights of rows that are asked for together

/**
 * The body of a panel of shades.
 * memory: what the reader chose before. exactRows(first, count): weights in full. hidesSink: whether it offers to do so.
 */
export function drawHeat(panel, given) {
  return new HeatMap(panel, given).element;
}

class HeatMap {
  constructor(panel, { memory = {}, exactRows = null, hidesSink = true } = {}) {
    this.panel = { low: 0, high: 1, scale: "weight", rows: [], columns: [], ...panel };
    this.memory = memory;
    this.exactRows = exactRows;
    this.given = unpacked(panel.weights);
    this.mayHide = hidesSink && this.given.columns > 1 && this.panel.low >= 0 && this.given.sumsToOne;
    this.build();
    this.reshade();
    whenSized(this.element, (width) => this.resize(width));
    whenTurned(this.element, () => this.reshade());
  }

  /** How weights become shades: as the reader chose, or by the size of this map. */
  get range() {
    return this.memory.range ?? (this.given.columns > WIDE ? "row" : "given");
  }

  build() {
    const help = "Arrow keys move, Space adds a row to the sum, Escape clears it, plus and minus zoom.";
    const { row_name: down, column_name: across, title } = this.panel;
    this.plane = new Plane({
      label: `${title || "Map"}, ${this.given.rows} rows and ${this.given.columns} columns. ${help}`,
      onmove: (row, column, byKey) => this.look(byKey),
      onpick: (row) => this.pick(row),
      onclear: () => this.clear(),
      onscroll: () => {
        this.overview.frame();
        this.refine();
      },
    });
    this.overview = new Overview(this.plane);
    this.box = make("div", { class: "row" }, this.hint());
    this.live = make("p", { class: "spoken", role: "status" });
    this.side = make("div", { class: "side" }, this.overview.canvas, this.box);
    const sides = [down ? `↓ ${down}` : "", across ? `→ ${across}` : ""].filter(Boolean).join("   ");
    const axes = sides ? make("span", { class: "axes" }, sides) : null;
    this.legend = make("span", { class: "legend" });
    this.element = make(
      "div",
      { class: "heat" },
      make("div", { class: "bar-of-tools" }, axes, this.legend, ...this.tools()),
      make("div", { class: "map" }, this.plane.element, this.side),
      this.live,
      this.given.rows * this.given.columns <= MOST_IN_TABLE ? this.table() : null,
    );
  }

  tools() {
    const pick = (event) => this.choose("range", event.target.value);
    const ranges = make("select", { id: freshName("range"), onchange: pick });
    const given = `${four(this.panel.low)} to ${four(this.panel.high)}`;
    const told = { given, largest: "up to the largest", row: "each row to its largest" };
    for (const [name, label] of Object.entries(told)) {
      ranges.append(make("option", { value: name, selected: name === this.range }, label));
    }
    const hide = make("input", {
      type: "checkbox",
      checked: this.memory.hidesSink,
      onchange: (event) => this.choose("hidesSink", event.target.checked),
    });
    const zoom = (name, label, step) =>
      make("button", { type: "button", "aria-label": label, title: label, onclick: () => this.plane.zoom(step) }, name);
    this.zooms = make(
      "span",
      { class: "zooms", role: "group", "aria-label": "Zoom" },
      zoom("−", "Smaller cells", -1),
      zoom("+", "Larger cells", 1),
      zoom("whole", "The whole map", 0),
    );
    return [
      make("label", { for: ranges.id }, "shades ", ranges),
      this.mayHide ? make("label", { title: "Drop the first column; rows sum to 1 again" }, hide, " hide sink") : null,
      this.zooms,
    ];
  }

  choose(name, value) {
    this.memory[name] = value;
    this.reshade();
    this.look(false);
  }

  /** Weights, labels and shades as they are to be shown now. */
  reshade() {
    const hides = this.mayHide && this.memory.hidesSink;
    const matrix = hides ? this.given.withoutFirst() : this.given;
    const { low, rows, columns } = this.panel;
    this.largest = largestOf(matrix.values);
    const shades = this.shades(matrix);
    this.ramp = rampOf(low < 0, isDark(this.element.isConnected ? this.element : document.body));
    this.plane.cursor = null;
    this.plane.show({ matrix, shades, ramp: this.ramp, rows, columns: hides ? columns.slice(1) : columns });
    this.plane.repaint();
    this.overview.whole = null;
    this.explain();
    if (this.plane.width) this.arrange();
  }

  resize(width) {
    const isNarrow = width < 620;
    this.element.classList.toggle("narrow", isNarrow);
    this.ramp = rampOf(this.panel.low < 0, isDark(this.element));
    this.plane.map.ramp = this.ramp;
    this.plane.fit(isNarrow ? width : width - 280);
    this.explain();
    this.arrange();
  }

  /** The small map and the zoom are there only for a map too large to be read at once. */
  arrange() {
    const isLarge = !this.plane.isWhole;
    this.overview.canvas.hidden = this.zooms.hidden = !isLarge;
    if (isLarge) this.overview.paint();
  }

  /** The legend: a strip of all shades with what its ends mean. */
  explain() {
    const { low, high, scale } = this.panel;
    const strip = make("canvas", { width: 254, height: 1, class: "strip", "aria-hidden": "true" });
    const context = strip.getContext("2d");
    for (let shade = 1; shade < 256; shade += 1) {
      context.fillStyle = this.ramp.css(shade);
      context.fillRect(shade - 1, 0, 1, 1);
    }
    const span = { given: four(Math.max(high, -low)), largest: four(this.largest), row: "largest of its row" }[this.range];
    const start = low < 0 ? `-${span}` : this.range === "given" ? four(low) : "0";
    this.legend.replaceChildren(`${scale} `, start, " ", strip, ` ${span}`);
  }

  pick(row) {
    const { selected } = this.plane;
    if (!selected.delete(row)) selected.add(row);
    this.plane.repaint();
    this.plane.share();
    this.look(true);
  }

  clear() {
    this.plane.selected.clear();
    this.plane.repaint();
    this.plane.share();
    this.look(true);
  }

  /** Shows the row of the cursor, or the sum of those that are selected. */
  look(byKey) {
    const { cursor, selected, map } = this.plane;
    const numbers = selected.size ? [...selected].sort((a, b) => a - b) : cursor ? [cursor.row] : [];
    if (!numbers.length) {
      this.box.replaceChildren(this.hint());
      return;
    }
    const missing = numbers.filter((number) => !this.given.exact.has(number));
    if (map.matrix.error && this.exactRows) this.fetchSoon(missing);
    if (!numbers.every((number) => map.matrix.knows(number))) {
      this.box.replaceChildren(this.hint("The weights of this row are on their way."), this.chosen());
      return;
    }
    const told = {
      numbers,
      weights: numbers.length === 1 ? map.matrix.row(numbers[0]) : map.matrix.sum(numbers),
      names: map.rows,
      columns: map.columns,
      column: cursor?.column ?? -1,
      error: missing.length ? map.matrix.error * numbers.length : 0,
    };
    this.box.replaceChildren(...rowBox(told), this.chosen());
    if (byKey) this.live.textContent = spokenRow(told);
  }

  fetchSoon(numbers) {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      for (const number of numbers) if (!(await this.fetch(number, 1))) return;
      const isAwaited = this.given.block > 1 && this.element.contains(document.activeElement);
      if (numbers.length) this.look(isAwaited);
    }, REST);
  }

  /** Of a map that came smaller, the rows that are seen in cells large enough to be told apart. */
  refine() {
    if (this.given.block === 1 || !this.exactRows || this.plane.cell < READ) return;
    clearTimeout(this.refining);
    this.refining = setTimeout(async () => {
      const { row, rows } = this.plane.seen;
      const last = Math.min(this.given.rows, Math.ceil(row + rows));
      const most = Math.max(1, Math.floor(MOST_AT_ONCE / this.given.columns));
      for (let first = Math.floor(row); first < last; first += 1) {
        if (this.given.knows(first)) continue;
        let count = 1;
        while (count < most && first + count < last && !this.given.knows(first + count)) count += 1;
        if (!(await this.fetch(first, count))) return;
      }
    }, REST);
  }

  /** Asks for rows in full, and shows them. */
  async fetch(first, count) {
    const rows = await this.exactRows(first, count).then(unpacked, () => null);
    if (!rows || !this.element.isConnected) return false;
    this.given.learn(first, rows);
    const { matrix, shades } = this.plane.map;
    if (matrix !== this.given) matrix.learn(first, rows.withoutFirst());
    else if (this.given.block > 1) {
      shades.learn(first, this.shades(rows));
      this.plane.repaint();
    }
    return true;
  }

  shades(matrix) {
    const { low, high } = this.panel;
    return shadesOf(matrix, { low, high, range: this.range, largest: this.largest });
  }

  chosen() {
    const { selected } = this.plane;
    if (!selected.size) return "";
    const rows = [...selected].sort((a, b) => a - b).slice(0, MOST_NAMED);
    const names = rows.map((row) => token(this.panel.rows[row] ?? `row ${row + 1}`));
    const clear = make("button", { type: "button", onclick: () => this.clear() }, "Clear");
    return make("p", { class: "chosen" }, ...names, clear);
  }

  hint(text = "Point at a row to read its weights. Click rows to sum them.") {
    return make("p", { class: "hint" }, text);
  }

  table() {
    const { rows, columns } = this.panel;
    const details = make("details", { class: "as-table" }, make("summary", {}, "as a table"));
    details.addEventListener("toggle", () => {
      if (details.childElementCount > 1) return;
      const head = make("tr", {}, make("td"), ...columns.map((name) => make("th", { scope: "col" }, token(name))));
      const lines = Array.from({ length: this.given.rows }, (_, number) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, token(rows[number] ?? number + 1)),
          ...Array.from(this.given.row(number), (value) => make("td", { class: "number" }, four(value))),
        ),
      );
      const table = make("table", { "aria-label": this.panel.title ?? "weights" }, head, ...lines);
      details.append(make("div", { class: "wide" }, table));
    });
    return details;
  }
}
