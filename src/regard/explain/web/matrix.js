// Matrices as a page gets them: numbers in base64, four bytes each, or one byte each with a scale for every row.

/**
 * A matrix of weights. NaN is what was masked. error: how far a weight may be off, where it came in eight bits.
 * block: where only a smaller map came, cells of block x block hold the largest of their weights.
 */
export class Matrix {
  constructor(rows, columns, values, error = 0, block = 1) {
    this.rows = rows;
    this.columns = columns;
    this.values = values;
    this.error = error;
    this.block = block;
    this.exact = new Set(); // rows that came in full since
  }

  /** Whether the weights of a row are its own, and not those of a block. */
  knows(number) {
    return this.block === 1 || this.exact.has(number);
  }

  /** Takes rows in full, from `first` on. */
  learn(first, rows) {
    this.values.set(rows.values, first * this.columns);
    for (let number = first; number < first + rows.rows; number += 1) this.exact.add(number);
  }

  /** The weights of one row. */
  row(number) {
    return this.values.subarray(number * this.columns, (number + 1) * this.columns);
  }

  /** The sum of several rows; what is masked counts as nothing, unless it is masked in all of them. */
  sum(numbers) {
    const total = new Float32Array(this.columns).fill(NaN);
    for (const number of numbers) {
      this.row(number).forEach((value, column) => {
        if (!Number.isNaN(value)) total[column] = (Number.isNaN(total[column]) ? 0 : total[column]) + value;
      });
    }
    return total;
  }

  /** Whether every row is a distribution, as weights of attention are. */
  get sumsToOne() {
    for (let number = 0; number < this.rows; number += 1) {
      let total = 0;
      for (const value of this.row(number)) {
        if (value < 0) return false;
        if (!Number.isNaN(value)) total += value;
      }
      if (Math.abs(total - 1) > 0.01 + this.error * this.columns) return false;
    }
    return this.rows > 0 && this.block === 1;
  }

  /** Without the first column, and every row summing to one again. A row that had nothing else is left empty. */
  withoutFirst() {
    const columns = this.columns - 1;
    const values = new Float32Array(this.rows * columns);
    for (let number = 0; number < this.rows; number += 1) {
      const kept = this.row(number).subarray(1);
      const total = kept.reduce((sum, value) => (Number.isNaN(value) ? sum : sum + value), 0);
      kept.forEach((value, column) => {
        values[number * columns + column] = total > 0 ? value / total : NaN;
      });
    }
    return new Matrix(this.rows, columns, values, this.error);
  }
}

/** The largest size of a weight. */
export function largestOf(values) {
  let found = 0;
  for (let place = 0; place < values.length; place += 1) {
    const size = Math.abs(values[place]);
    if (size > found) found = size;
  }
  return found;
}

/** The matrix that `View.to_page` packed; a smaller map is spread over the blocks that it stands for. */
export function unpacked(given) {
  if (given instanceof Matrix) return given;
  const { shape, type, data, low, high, block = 1 } = given;
  if (block > 1) {
    const [rows, columns] = shape;
    const few = unpacked({ shape: shape.map((count) => Math.ceil(count / block)), type, data, low, high });
    const values = new Float32Array(rows * columns);
    for (let number = 0; number < rows; number += 1) {
      const row = few.row(Math.floor(number / block));
      const begin = number * columns;
      for (let column = 0; column < columns; column += 1) values[begin + column] = row[Math.floor(column / block)];
    }
    return new Matrix(rows, columns, values, few.error, block);
  }
  const [rows, columns] = shape;
  const bytes = decoded(data);
  if (type === "float32") {
    return new Matrix(rows, columns, new Float32Array(bytes.buffer, bytes.byteOffset, rows * columns));
  }
  const values = new Float32Array(rows * columns);
  let error = 0;
  for (let number = 0; number < rows; number += 1) {
    const step = (high[number] - low[number]) / 255;
    error = Math.max(error, step / 2);
    const end = (number + 1) * columns;
    for (let place = number * columns; place < end; place += 1) values[place] = low[number] + step * bytes[place];
  }
  return new Matrix(rows, columns, values, error);
}

/** The bytes of base64. */
export function decoded(data) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(data);
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
  return bytes;
}
