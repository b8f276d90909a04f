// Numbers for people.

/** Four significant digits; a whole number in full; a dot where there is none. */
export function four(value) {
  return digits(value, 4);
}

/** A number in so many significant digits, without zeros that say nothing. */
export function digits(value, count) {
  if (value === null || value === undefined || Number.isNaN(value)) return "·";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  if (value === 0) return "0";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e6) return value.toExponential(count - 1).replace(/\.?0+e/, "e").replace("e+", "e");
  return String(Number(value.toPrecision(count)));
}

/** A weight in so few letters that it fits a cell of a map; nothing for nothing. */
export function tiny(value) {
  if (Number.isNaN(value) || value === 0) return "";
  const size = Math.abs(value);
  const told = size >= 9.95 ? size.toFixed(0) : size.toFixed(size >= 0.995 ? 1 : 2).replace(/^0/, "");
  return (value < 0 ? "-" : "") + told;
}

/** A number of an axis, such as 1.23M. */
export function short(value) {
  for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return digits(value / size, 3) + letter;
  }
  return digits(value, 3);
}

/** A count with its noun: 1 row, 3 rows. */
export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
