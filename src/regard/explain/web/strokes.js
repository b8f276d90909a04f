// What a diagram is painted with: pictures of matrices and the ways of ribbons.

import { rampOf } from "./colour.js";
import { largestOf } from "./matrix.js";

// A canvas knows no custom colours: those of style.css once more.
export const PAGE = {
  light: {
    ground: "#ffffff", raised: "#f5f7f9", ink: "#1a1f26", soft: "#56606c", line: "#cdd4dc", accent: "#0a62a8", mark: "#d55e00",
  },
  dark: {
    ground: "#14171c", raised: "#1d2129", ink: "#e7eaee", soft: "#a3adb9", line: "#3c4551", accent: "#79bdf7", mark: "#ff9f4a",
  },
};

/** The ends of shades of a matrix: from zero on, or both ways from it. */
export function rangeOf(matrix, node) {
  const high = node.kind === "weights" ? 1 : largestOf(matrix.values) || 1;
  return { low: matrix.values.some((value) => value < 0) ? -high : 0, high };
}

/** A matrix as a picture of a pixel a number; several that came one below the other stand side by side. */
export function painted(matrix, node, isDark) {
  const { low, high } = rangeOf(matrix, node);
  const ramp = rampOf(low < 0, isDark);
  const { columns } = matrix;
  const [width, height] = [columns * (node.parts ?? 1), matrix.rows / (node.parts ?? 1)];
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  matrix.values.forEach((value, cell) => {
    const share = Math.min(1, Math.max(0, (value - low) / (high - low)));
    const row = Math.floor(cell / columns);
    const place = (row % height) * width + Math.floor(row / height) * columns + (cell % columns);
    if (!Number.isNaN(value)) pixels[place] = ramp.packed[1 + Math.round(254 * share)];
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

/** From the right of one box to the left of another. */
export function forthPath(from, to) {
  const start = [from.x + from.width, middle(from)];
  const end = [to.x, middle(to)];
  const bend = Math.max(24, (end[0] - start[0]) / 2);
  return [start, [start[0] + bend, start[1]], [end[0] - bend, end[1]], end];
}

/** From a step before: below the boxes, to the left. */
export function backPath(from, to) {
  const start = [from.x + from.width * 0.6, from.y + from.height];
  const end = [to.x + to.width * 0.4, to.y + to.height];
  const deep = from === to ? 26 : 34;
  return [start, [start[0] + 8, start[1] + deep], [end[0] - 8, end[1] + deep], end];
}

function middle(box) {
  return box.y + Math.min(box.height, 104) / 2;
}

/** A point of a curve. */
export function bezier([a, b, c, d], t) {
  const s = 1 - t;
  return [0, 1].map((axis) => s ** 3 * a[axis] + 3 * s * s * t * b[axis] + 3 * s * t * t * c[axis] + t ** 3 * d[axis]);
}
