// What a line does beneath its noise, and fewer points of it.

/**
 * The exponential mean of the points before each and of itself: m = a m + (1 - a) y, over what its weights sum to, so
 * that the first point is itself (Kingma and Ba 2015, section 3, of moments).
 */
export function smoothed(points, strength) {
  if (!strength) return points;
  let [mean, weight] = [0, 0];
  return points.map(([x, y]) => {
    mean = strength * mean + (1 - strength) * y;
    weight = strength * weight + (1 - strength);
    return [x, mean / weight];
  });
}

/** At most so many points, evenly apart, the first and the last among them. */
export function thinned(points, most) {
  const every = Math.max(1, Math.ceil((points.length - 1) / (most - 1)));
  return every === 1 ? points : points.filter((_, place) => place % every === 0 || place === points.length - 1);
}
