"""The lines of a worked calculation of an n-gram probability.

It goes from the shortest order that takes part to the longest, two lines an order: what was seen, and what it makes of
the probability. Every p on the right of a line stands on the left of one before it. Letters are those of
`regard.explain.ngram`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from regard.decoding.scored_text import shown
from regard.ngram.shares import Rules

DIVISORS = {"add_k": "the counts after h + k x n", "witten_bell": "the counts after h + the different tokens after h"}


@dataclass(frozen=True)
class OrderStep:
    """What one order makes of p(w | h).

    context       the tokens of h.
    seen          whether h w was seen.
    context_seen  whether anything was seen after h; where not, p(w | h) is p(w | h').
    count         c, None where the model keeps no counts; `continuation` says of which kind.
    discount      D(c), None without a count.
    divisor       N, None where it is not known.
    alpha         0 where h w was not seen.
    gamma         the weight of `lower`.
    lower         p(w | h'), or the uniform 1/n below the shortest order; None where it plays no part.
    probability   p(w | h).
    """

    order: int
    context: tuple[str, ...]
    seen: bool
    context_seen: bool
    count: int | None
    continuation: bool
    discount: float | None
    divisor: float | None
    alpha: float
    gamma: float
    lower: float | None
    probability: float


@dataclass(frozen=True)
class TokenExplanation:
    """One token of a text. orders: the steps that take part, from the shortest order to the longest."""

    position: int
    id: int
    text: str
    orders: tuple[OrderStep, ...]
    path: tuple[int, ...]

    @property
    def matched(self) -> int:
        return self.path[-1]

    @property
    def probability(self) -> float:
        return self.orders[-1].probability

    @property
    def log_prob(self) -> float:
        return math.log(self.probability) if self.probability > 0 else -math.inf

    @property
    def shown_path(self) -> str:
        return " -> ".join(map(str, self.path))


def worked(token: TokenExplanation, rules: Rules, n_base: int) -> list[str]:
    """What matched, the formula, two lines an order, and p with log p."""
    lines = [
        f"{_named(token, token.orders[-1])}: longest match of order {token.matched}, path {token.shown_path}",
        _formula(rules),
    ]
    below = f"1/{n_base}"
    for step in token.orders:
        lines += [f"order {step.order}: {_found(step, token)}", f"  {_calculation(step, token, below)}"]
        below = _named(token, step)
    return [*lines, f"p = {_number(token.probability)}, log p = {_number(token.log_prob)}"]


def _formula(rules: Rules) -> str:
    """The formula that all lines follow."""
    kind = "interpolated" if rules.interpolate else "back-off"
    alpha = "alpha" if rules.smoothing == "given" else "(c - D) / N"
    lower = "1/n" if rules.smoothing == "add_k" else "p(w | h')"
    form = f"{alpha} + gamma x {lower}" if rules.interpolate else f"{alpha} where h w was seen, else beta x {lower}"
    divisor = "" if alpha == "alpha" else f", N = {DIVISORS.get(rules.smoothing, 'the counts after h')}"
    return f"{rules.smoothing}, {kind}: p(w | h) = {form}{divisor}"


def _calculation(step: OrderStep, token: TokenExplanation, below: str) -> str:
    """p(w | h) = the calculation = its terms in numbers = the result. `below` is the name of what gamma weighs."""
    terms = [(_alpha(step), _number(step.alpha))] if step.seen else []
    given_whole = step.seen and step.count is None and step.gamma == 0
    if step.lower is not None and not given_whole:
        lower = below if step.lower else "0"
        weighted = f"{_number(step.gamma)} x {lower}" if step.context_seen else lower
        terms.append((weighted, _number(step.gamma * step.lower)))
    sums = [" + ".join(column) for column in zip(*terms, strict=True)]
    # Where a sum has one term, its number is the result: said once.
    return " = ".join(dict.fromkeys([_named(token, step), *sums, _number(step.probability)]))


def _named(token: TokenExplanation, step: OrderStep) -> str:
    """Such as p(great | is a)."""
    given = f" | {_shown(step.context)}" if step.context else ""
    return f"p({shown(token.text)}{given})"


def _found(step: OrderStep, token: TokenExplanation) -> str:
    """What was seen, in words."""
    if not step.context_seen:
        return f"nothing was seen after {_shown(step.context)}"
    if not step.seen:
        after = f" after {_shown(step.context)}" if step.context else ""
        return f"{shown(token.text)} was not seen{after}"
    n_gram = _shown((*step.context, token.text))
    if step.count is None:
        return f"{n_gram} was seen; its counts are not kept"
    kind = "continuation count" if step.continuation else "count"
    return f"{n_gram} has {kind} c = {step.count}, D = {_number(step.discount)}, N = {_number(step.divisor)}"


def _alpha(step: OrderStep) -> str:
    """(c - D) / N where there are counts."""
    if step.count is None:
        return _number(step.alpha)
    count = f"({step.count} - {_number(step.discount)})" if step.discount else str(step.count)
    return f"{count} / {_number(step.divisor)}"


def _shown(tokens: tuple[str, ...]) -> str:
    return " ".join(shown(token) for token in tokens)


def _number(value: float | None) -> str:
    """Four significant digits; whole numbers, which counts are, in full."""
    if value is None:
        return "?"
    return str(int(value)) if float(value).is_integer() else f"{value:.4g}"
