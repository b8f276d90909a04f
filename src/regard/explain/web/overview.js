// A whole map in a small box, with a frame around the part that the large one shows. Dragging moves the frame.

import { make } from "./element.js";
import { pixels } from "./paint.js";

const BOX = 190;
const THINNEST = 28;

/** The small map of a plane. */
export class Overview {
  constructor(plane) {
    this.plane = plane;
    this.canvas = make("canvas", { class: "overview", "aria-hidden": "true" });
    const go = (event) => event.buttons === 1 && this.go(event);
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      go(event);
    });
    this.canvas.addEventListener("pointermove", go);
  }

  /** Draws the map; `frame` alone is drawn again when the large one scrolls. */
  paint() {
    const { matrix, shades, ramp } = this.plane.map;
    const longest = Math.max(matrix.rows, matrix.columns);
    const ratio = window.devicePixelRatio || 1;
    const side = (count) => Math.max(THINNEST, Math.round((BOX * count) / longest));
    const [width, height] = [side(matrix.columns), side(matrix.rows)];
    const level = Math.max(0, Math.ceil(Math.log2(longest / (BOX * ratio))));
    const map = shades.level(level);
    this.whole = make("canvas", { width: width * ratio, height: height * ratio });
    const context = this.whole.getContext("2d");
    context.imageSmoothingEnabled = false;
    const area = { row: 0, column: 0, rows: map.rows, columns: map.columns };
    const image = pixels(map, ramp, area);
    context.drawImage(image, 0, 0, map.columns, map.rows, 0, 0, width * ratio, height * ratio);
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.frame();
  }

  frame() {
    if (!this.whole) return;
    const context = this.canvas.getContext("2d");
    const { matrix } = this.plane.map;
    const [across, down] = [this.canvas.width / matrix.columns, this.canvas.height / matrix.rows];
    const { row, column, rows, columns } = this.plane.seen;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.whole, 0, 0);
    context.strokeStyle = getComputedStyle(this.plane.element).caretColor;
    context.lineWidth = 2 * (window.devicePixelRatio || 1);
    const [wide, tall] = [Math.min(columns, matrix.columns) * across, Math.min(rows, matrix.rows) * down];
    context.strokeRect(column * across + 1, row * down + 1, Math.max(4, wide - 2), Math.max(4, tall - 2));
  }

  go(event) {
    const box = this.canvas.getBoundingClientRect();
    const { matrix } = this.plane.map;
    const row = ((event.clientY - box.top) / box.height) * matrix.rows;
    this.plane.centre(row, ((event.clientX - box.left) / box.width) * matrix.columns);
  }
}
