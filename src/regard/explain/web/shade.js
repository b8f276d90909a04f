// From weights to shades, and to smaller maps in which a block keeps its largest weight.

import { MASKED } from "./colour.js";
import { largestOf } from "./matrix.js";

/** A map of shades with its smaller versions, each half as large as the one before. */
export class Shades {
  constructor(rows, columns, bytes, diverging) {
    this.levels = [{ rows, columns, bytes }];
    this.diverging = diverging;
  }

  /** Takes other shades for rows from `first` on; smaller versions are made again when they are needed. */
  learn(first, { levels: [{ bytes, columns }] }) {
    this.levels.length = 1;
    this.levels[0].bytes.set(bytes, first * columns);
  }

  /** The map whose every cell stands for a block of 2^level x 2^level. */
  level(number) {
    while (this.levels.length <= number) {
      this.levels.push(halved(this.levels[this.levels.length - 1], this.diverging));
    }
    return this.levels[number];
  }
}

/**
 * Shades of a matrix.
 * range: "given" from low to high, "largest" to the largest of all, "row" to the largest of each row.
 */
export function shadesOf(matrix, { low, high, range, largest }) {
  const diverging = low < 0;
  const bytes = new Uint8Array(matrix.rows * matrix.columns);
  const given = diverging ? Math.max(high, -low) : high;
  const top = range === "largest" ? largest || 1 : given;
  for (let number = 0; number < matrix.rows; number += 1) {
    const row = matrix.row(number);
    const end = range === "row" ? largestOf(row) || 1 : top;
    const start = diverging ? -end : range === "given" ? low : 0;
    const span = end - start || 1;
    const begin = number * matrix.columns;
    for (let column = 0; column < row.length; column += 1) {
      bytes[begin + column] = shadeOf(row[column], start, span);
    }
  }
  return new Shades(matrix.rows, matrix.columns, bytes, diverging);
}

function shadeOf(value, start, span) {
  if (value !== value) return MASKED; // NaN is the only value that differs from itself
  const share = (value - start) / span;
  return 1 + Math.round(254 * (share < 0 ? 0 : share > 1 ? 1 : share));
}

function halved({ rows, columns, bytes }, diverging) {
  const fewer = { rows: Math.ceil(rows / 2), columns: Math.ceil(columns / 2) };
  const kept = new Uint8Array(fewer.rows * fewer.columns);
  for (let row = 0; row < fewer.rows; row += 1) {
    const upper = 2 * row * columns;
    const lower = 2 * row + 1 < rows ? upper + columns : upper;
    for (let column = 0; column < fewer.columns; column += 1) {
      const left = 2 * column;
      const right = left + 1 < columns ? left + 1 : left;
      const above = larger(bytes[upper + left], bytes[upper + right], diverging);
      const below = larger(bytes[lower + left], bytes[lower + right], diverging);
      kept[row * fewer.columns + column] = larger(above, below, diverging);
    }
  }
  return { ...fewer, bytes: kept };
}

/** The shade of the larger weight; where zero is in the middle, of the one farther from it. */
function larger(first, second, diverging) {
  if (!diverging) return first > second ? first : second;
  if (first === MASKED) return second;
  if (second === MASKED) return first;
  return Math.abs(first - 128) >= Math.abs(second - 128) ? first : second;
}
