// Where values lie along a side of a chart, and where its ticks stand.

/** The ends of an axis that holds all values; never the same. */
export function endsOf(values, isLog) {
  const fit = values.filter((value) => Number.isFinite(value) && (value > 0 || !isLog));
  if (!fit.length) return isLog ? [1, 10] : [0, 1];
  const low = fit.reduce((least, value) => Math.min(least, value));
  const high = fit.reduce((most, value) => Math.max(most, value));
  if (high > low) return [low, high];
  return isLog ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
}

/** How far along its axis a value lies, from 0 to 1. */
export function shareOf(value, [low, high], isLog) {
  if (isLog) return Math.log(value / low) / Math.log(high / low);
  return (value - low) / (high - low);
}

/** Round values within the ends, about five. */
export function ticksOf([low, high], isLog) {
  if (isLog && high / low >= 10) {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const powers = Array.from({ length: Math.floor(Math.log10(high) + 1e-9) - first + 1 }, (_, place) => first + place);
    const every = Math.max(1, Math.ceil(powers.length / 6));
    return powers.filter((power) => power % every === 0).map((power) => 10 ** power);
  }
  const rough = (high - low) / 5;
  const size = 10 ** Math.floor(Math.log10(rough));
  const near = (step) => Math.abs(step - rough);
  const steps = [1, 2, 5, 10].map((factor) => size * factor);
  const step = steps.reduce((best, one) => (near(one) < near(best) ? one : best));
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, place) => Number(((first + place) * step).toPrecision(12)));
}
