// Chances of answers at a temperature and with a cut: of those that are named, and of all others together.

/**
 * What is answered at a place: names with their chances, and the chance of all others.
 * Scores are logarithms of chances. Of the others groups of like ones are known (count, mean, variance), from which
 * exp(s / T) sums to count exp(mean / T) (1 + variance / 2 T^2), up to the third power.
 */
export function chancesAt(answers, place, { temperature = 1, topK = 0 } = {}) {
  const at = Math.min(place, answers.scores.length - 1);
  const names = answers.names[at];
  const scores = answers.scores[at].map((score) => score ?? -Infinity);
  if (answers.kind === "number") return { names, values: scores, others: null };
  const best = scores[0];
  const count = topK || names.length;
  const powers = scores.map((score, number) => (number < count ? Math.exp((score - best) / temperature) : 0));
  const rest = topK ? 0 : restOf(answers.rest[at], best, temperature);
  const total = powers.reduce((sum, power) => sum + power, 0) + rest;
  return { names, values: powers.map((power) => power / total), others: rest / total };
}

function restOf(groups, best, temperature) {
  return groups.reduce(
    (sum, [count, mean, variance]) =>
      sum + count * Math.exp((mean - best) / temperature) * (1 + variance / (2 * temperature ** 2)),
    0,
  );
}
