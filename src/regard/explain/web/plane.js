// A map on a canvas that scrolls: as large as its cells make it, of which only what can be seen is drawn.

import { letterScale, make } from "./element.js";
import { gutters, paint } from "./paint.js";
import { tell, whenTold } from "./shared.js";

const TALLEST = 560;
const SMALLEST_READ = 13; // pixels of a cell whose label can still be read
const LARGEST = 44;
const ZOOM = 1.5;
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * The part of a map that can be seen, with its labels.
 * onmove(row, column, byKey) and onpick(row) are called when the reader points at a row and when one is chosen.
 */
export class Plane {
  constructor({ label, onmove, onpick, onclear, onscroll }) {
    this.calls = { onmove, onpick, onclear, onscroll };
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.space = make("div", { class: "space" }, this.canvas);
    const roles = { role: "application", "aria-roledescription": "map of weights", "aria-label": label };
    this.element = make("div", { class: "plane", tabindex: 0, ...roles }, this.space);
    this.cursor = null;
    this.selected = new Set();
    this.cell = null;
    this.waits = false;
    this.listen();
    whenTold(this.element, (change) => this.take(change));
  }

  /** Shows other weights. map: matrix, shades, ramp, rows and columns (labels). */
  show(map) {
    this.map = map;
    if (this.width) this.fit(this.width);
  }

  /** Whether the whole map can be read at once. */
  get isWhole() {
    return this.least >= SMALLEST_READ * this.scale;
  }

  /** Makes the map as wide as there is room. */
  fit(width) {
    this.width = width;
    this.scale = letterScale();
    this.largest = LARGEST * this.scale;
    this.tallest = TALLEST * this.scale;
    this.gutter = gutters(this.map, width, this.largest, this.scale);
    const { rows, columns } = this.map.matrix;
    const across = (width - this.gutter.left - 2) / columns;
    const down = (this.tallest - this.gutter.top - 2) / rows;
    this.least = Math.min(this.largest, across, down);
    if (this.cell === null || this.isWhole) this.cell = Math.max(this.least, SMALLEST_READ * this.scale);
    this.cell = Math.min(this.largest, Math.max(this.least, this.cell));
    this.resize();
  }

  /** Makes cells larger (1) or smaller (-1) and keeps the middle where it is; 0 shows the whole map. */
  zoom(direction) {
    if (!this.width) return;
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.element;
    const middle = {
      row: (scrollTop + (clientHeight - this.gutter.top) / 2) / this.cell,
      column: (scrollLeft + (clientWidth - this.gutter.left) / 2) / this.cell,
    };
    const wanted = direction === 0 ? this.least : this.cell * ZOOM ** direction;
    this.cell = Math.min(this.largest, Math.max(this.least, wanted));
    this.resize();
    this.centre(middle.row, middle.column);
  }

  /** Scrolls so that a cell is in the middle. */
  centre(row, column) {
    this.element.scrollTop = row * this.cell - (this.element.clientHeight - this.gutter.top) / 2;
    this.element.scrollLeft = column * this.cell - (this.element.clientWidth - this.gutter.left) / 2;
    this.repaint();
  }

  /** The cells that can be seen: first row and column, and how many of each; all while there is no room yet. */
  get seen() {
    if (!this.width) return { row: 0, column: 0, rows: this.map.matrix.rows, columns: this.map.matrix.columns };
    return {
      row: this.element.scrollTop / this.cell,
      column: this.element.scrollLeft / this.cell,
      rows: (this.element.clientHeight - this.gutter.top) / this.cell,
      columns: (this.element.clientWidth - this.gutter.left) / this.cell,
    };
  }

  /** Draws before the next frame, once however often it is asked for. */
  repaint() {
    if (this.waits || !this.width) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      paint(this);
      this.calls.onscroll();
    });
  }

  resize() {
    const { rows, columns } = this.map.matrix;
    const size = { width: this.gutter.left + columns * this.cell + 1, height: this.gutter.top + rows * this.cell + 1 };
    const bar = size.width > this.width + 1 || size.height > this.tallest + 1 ? 16 : 0; // room for scroll bars
    this.space.style.width = `${size.width}px`;
    this.space.style.height = `${size.height}px`;
    this.element.style.width = `${Math.min(this.width, size.width + bar)}px`;
    this.element.style.height = `${Math.min(this.tallest, size.height + bar)}px`;
    const ratio = window.devicePixelRatio || 1;
    const [wide, tall] = [this.element.clientWidth, this.element.clientHeight];
    const shown = { width: Math.min(wide, Math.ceil(size.width)), height: Math.min(tall, Math.ceil(size.height)) };
    this.canvas.width = Math.round(shown.width * ratio);
    this.canvas.height = Math.round(shown.height * ratio);
    this.canvas.style.width = `${shown.width}px`;
    this.canvas.style.height = `${shown.height}px`;
    this.repaint();
  }

  listen() {
    this.element.addEventListener("scroll", () => this.repaint(), { passive: true });
    this.element.addEventListener("pointermove", (event) => this.move(this.under(event), false));
    this.element.addEventListener("click", (event) => {
      const cell = this.under(event);
      if (cell) this.calls.onpick(cell.row);
    });
    this.element.addEventListener("keydown", (event) => this.press(event));
    this.element.addEventListener("focus", () => {
      if (this.cursor === null && this.element.matches(":focus-visible")) this.move({ row: 0, column: 0 }, true);
    });
  }

  /** The cell under the pointer, or null over labels. */
  under(event) {
    if (!this.width) return null;
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - this.gutter.top + this.element.scrollTop) / this.cell);
    const column = Math.floor((event.clientX - box.left - this.gutter.left + this.element.scrollLeft) / this.cell);
    const { rows, columns } = this.map.matrix;
    const isBelowLabels = event.clientY - box.top >= this.gutter.top;
    if (!isBelowLabels || row < 0 || row >= rows || column >= columns) return null;
    // Over the label of a row the row counts, and no column.
    return { row, column: event.clientX - box.left < this.gutter.left ? -1 : column };
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { rows, columns } = this.map.matrix;
    const at = this.cursor ?? { row: 0, column: -1 };
    const page = Math.max(1, Math.floor(this.seen.rows) - 1);
    const jumps = { PageUp: [-page, 0], PageDown: [page, 0], Home: [-rows, 0], End: [rows, 0] };
    const step = STEPS[event.key] ?? jumps[event.key];
    const held = (value, count) => Math.min(count - 1, Math.max(0, value));
    if (step) this.move({ row: held(at.row + step[0], rows), column: held(at.column + step[1], columns) }, true);
    else if (event.key === " " || event.key === "Enter") this.calls.onpick(at.row);
    else if (event.key === "Escape") this.calls.onclear();
    else if (event.key === "+" || event.key === "=") this.zoom(1);
    else if (event.key === "-") this.zoom(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  move(cell, byKey) {
    if (cell === null || (this.cursor?.row === cell.row && this.cursor?.column === cell.column)) return;
    this.cursor = cell;
    if (byKey) this.reveal(cell);
    this.calls.onmove(cell.row, cell.column, byKey);
    this.repaint();
    this.share();
  }

  /** Tells a second window where the cursor is, and what is selected. */
  share() {
    tell(this.element, { cursor: this.cursor, selected: [...this.selected] });
  }

  /** Takes the cursor and the selection of a second window. */
  take({ cursor, selected }) {
    this.cursor = cursor;
    this.selected = new Set(selected);
    if (cursor) this.calls.onmove(cursor.row, cursor.column, false);
    this.repaint();
  }

  /** Scrolls as little as shows a cell. */
  reveal({ row, column }) {
    const { seen, cell, element } = this;
    if (row < seen.row) element.scrollTop = row * cell;
    if (row + 1 > seen.row + seen.rows) element.scrollTop = (row + 1 - seen.rows) * cell;
    if (column < seen.column) element.scrollLeft = Math.max(0, column) * cell;
    if (column + 1 > seen.column + seen.columns) element.scrollLeft = (column + 1 - seen.columns) * cell;
  }
}
