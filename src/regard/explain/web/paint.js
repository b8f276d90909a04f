// What a map looks like: cells, numbers in cells that are large enough, labels, the cursor and what is selected.

import { inkOn } from "./colour.js";
import { asToken } from "./element.js";
import { tiny } from "./number.js";

const FAMILY = "system-ui, sans-serif";
const BOLD = `600 12px ${FAMILY}`;
const WIDEST_LABEL = { left: 130, top: 96 };
const LINE = 13; // pixels between two labels
const GRID = 12; // cells from this size on stand apart
const THIN = 5; // rows below this size are marked by a line
const NUMBERED = 30; // and from this size on hold their number
const ruler = document.createElement("canvas").getContext("2d");
const scratch = document.createElement("canvas");

/** Room for the labels of both sides of a map. isFlat: those of the columns fit above cells without being turned. */
export function gutters({ rows, columns }, width, largest, scale) {
  const left = room(rows, WIDEST_LABEL.left) * scale;
  const top = room(columns, WIDEST_LABEL.top) * scale;
  const cell = Math.min(largest, (width - left) / (columns.length || 1));
  const isFlat = columns.length > 0 && top - 10 <= cell;
  return { left, top: isFlat ? 22 * scale : top, isFlat };
}

/** Draws what can be seen of a plane. */
export function paint(plane) {
  const context = plane.canvas.getContext("2d");
  const ratio = window.devicePixelRatio || 1;
  const style = getComputedStyle(plane.element);
  const look = { ink: style.color, ground: style.backgroundColor, accent: style.caretColor };
  const [width, height] = [plane.canvas.width / ratio, plane.canvas.height / ratio];
  const frame = { context, ratio, width, height, look, plane, left: plane.gutter.left, top: plane.gutter.top };
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.save();
  clipTo(context, frame.left, frame.top, width - frame.left, height - frame.top);
  cells(frame);
  if (plane.cell >= GRID) grid(frame);
  if (plane.cell >= NUMBERED * plane.scale) numbers(frame);
  outlines(frame);
  context.restore();
  labels(frame);
}

/** A map of shades in one pixel a cell, as large as `area`, on a canvas to be enlarged. */
export function pixels({ bytes, columns }, ramp, area) {
  if (scratch.width < area.columns) scratch.width = area.columns;
  if (scratch.height < area.rows) scratch.height = area.rows;
  const image = new ImageData(area.columns, area.rows);
  const words = new Uint32Array(image.data.buffer);
  let place = 0;
  for (let row = area.row; row < area.row + area.rows; row += 1) {
    const begin = row * columns + area.column;
    for (let byte = begin; byte < begin + area.columns; byte += 1) words[place++] = ramp.packed[bytes[byte]];
  }
  scratch.getContext("2d").putImageData(image, 0, 0);
  return scratch;
}

/** The visible cells; where one is smaller than a pixel, the largest of a block. */
function cells({ context, ratio, width, height, plane, left, top }) {
  const { cell, element, map } = plane;
  const level = Math.max(0, Math.ceil(Math.log2(1 / (cell * ratio))));
  const shades = map.shades.level(level);
  const size = cell * 2 ** level;
  const area = { row: Math.floor(element.scrollTop / size), column: Math.floor(element.scrollLeft / size) };
  area.rows = Math.min(shades.rows, Math.ceil((element.scrollTop + height - top) / size)) - area.row;
  area.columns = Math.min(shades.columns, Math.ceil((element.scrollLeft + width - left) / size)) - area.column;
  if (area.rows <= 0 || area.columns <= 0) return;
  const image = pixels(shades, map.ramp, area);
  context.imageSmoothingEnabled = false;
  const x = left + area.column * size - element.scrollLeft;
  const y = top + area.row * size - element.scrollTop;
  context.drawImage(image, 0, 0, area.columns, area.rows, x, y, area.columns * size, area.rows * size);
}

/** The visible rows or columns with where each begins. */
function* along({ plane, width, height, left, top }, isRow) {
  const { cell, element, map } = plane;
  const [scrolled, start, end] = isRow ? [element.scrollTop, top, height] : [element.scrollLeft, left, width];
  const count = isRow ? map.matrix.rows : map.matrix.columns;
  const last = Math.min(count, Math.ceil((scrolled + end - start) / cell));
  for (let number = Math.floor(scrolled / cell); number < last; number += 1) {
    yield [number, start + number * cell - scrolled];
  }
}

function grid(frame) {
  const { context, width, height, look, left, top } = frame;
  context.strokeStyle = look.ground;
  context.lineWidth = 1;
  context.beginPath();
  for (const [, y] of along(frame, true)) line(context, left, y, width, y);
  for (const [, x] of along(frame, false)) line(context, x, top, x, height);
  context.stroke();
}

function line(context, a, b, c, d) {
  context.moveTo(a, b);
  context.lineTo(c, d);
}

function numbers(frame) {
  const { context, plane } = frame;
  const { cell, map } = plane;
  const shades = map.shades.level(0).bytes;
  context.font = `${(cell >= 38 * plane.scale ? 12 : 11) * plane.scale}px ${FAMILY}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [row, y] of along(frame, true)) {
    if (!map.matrix.knows(row)) continue;
    for (const [column, x] of along(frame, false)) {
      const place = row * map.matrix.columns + column;
      context.fillStyle = inkOn(map.ramp.colours[shades[place]]);
      context.fillText(tiny(map.matrix.values[place]), x + cell / 2, y + cell / 2 + 1);
    }
  }
}

/** A frame around the row of the cursor, and a thicker one around rows that are selected. */
function outlines(frame) {
  const { context, plane, look, left } = frame;
  const { cell, element, map } = plane;
  const across = Math.min(frame.width - left, map.matrix.columns * cell - element.scrollLeft);
  for (const [row, y] of along(frame, true)) {
    const isSelected = plane.selected.has(row);
    if (!isSelected && plane.cursor?.row !== row) continue;
    context.strokeStyle = isSelected ? look.accent : look.ink;
    context.lineWidth = cell < THIN ? 1 : isSelected ? 2.5 : 1.5;
    context.strokeRect(left + 0.5, y + 0.5, across - 1, cell < THIN ? 0 : cell - 1);
  }
  const { cursor } = plane;
  if (!cursor || cursor.column < 0) return;
  context.strokeStyle = look.ink;
  context.lineWidth = 2.5;
  const x = left + cursor.column * cell - element.scrollLeft;
  const y = frame.top + cursor.row * cell - element.scrollTop;
  context.strokeRect(x + 1, y + 1, Math.max(2, cell - 2), Math.max(2, cell - 2));
}

function labels(frame) {
  const { context, plane, look, left, top } = frame;
  const { cell, cursor, map, scale } = plane;
  const { isFlat } = plane.gutter;
  const every = Math.max(1, Math.ceil((LINE * plane.scale) / cell));
  context.fillStyle = look.ink;
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.save();
  clipTo(context, 0, top, left, frame.height - top);
  for (const [row, y] of along(frame, true)) {
    if (row % every !== 0 && row !== cursor?.row) continue;
    const isBold = row === cursor?.row || plane.selected.has(row);
    write(context, map.rows[row], { x: left - 8, y: y + cell / 2, isBold, most: left - 12, scale });
  }
  context.restore();
  context.save();
  clipTo(context, left, 0, frame.width - left, top);
  context.textAlign = isFlat ? "center" : "left";
  for (const [column, x] of along(frame, false)) {
    if (column % every !== 0 && column !== cursor?.column) continue;
    const place = { x: x + cell / 2, y: top - (isFlat ? 9 * scale : 7), isBold: column === cursor?.column, scale };
    write(context, map.columns[column], { ...place, most: isFlat ? cell : top - 12, turn: isFlat ? 0 : -Math.PI / 2 });
  }
  context.restore();
}

function clipTo(context, ...box) {
  context.beginPath();
  context.rect(...box);
  context.clip();
}

function write(context, label, { x, y, isBold, most, scale, turn = 0 }) {
  if (label === undefined) return;
  context.save();
  context.translate(x, y);
  context.rotate(turn);
  context.font = `${isBold ? "600 " : ""}${12 * scale}px ${FAMILY}`;
  context.fillText(shortened(label, most / scale), 0, 0);
  context.restore();
}

function room(labels, widest) {
  if (!labels.length) return 4;
  let found = 0;
  for (const label of labels.slice(0, 3000)) found = Math.max(found, widthOf(label));
  return Math.min(widest, Math.ceil(found) + 14);
}

const widths = new Map();
function widthOf(label) {
  if (!widths.has(label)) {
    if (widths.size > 20000) widths.clear();
    ruler.font = BOLD;
    widths.set(label, ruler.measureText(asToken(label)).width);
  }
  return widths.get(label);
}

function shortened(label, most) {
  let told = asToken(label);
  if (widthOf(label) <= most + 2) return told;
  told = told.slice(0, 60);
  ruler.font = BOLD;
  while (told.length > 1 && ruler.measureText(`${told}…`).width > most) told = told.slice(0, -1);
  return `${told}…`;
}
