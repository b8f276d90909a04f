"""L-BFGS: the minimum of a smooth convex function of very many numbers, from gradients alone, without a learning rate.

    d = -H g        H from the last m changes of x and of g                      (Nocedal 1980; Liu, Nocedal 1989)
    x <- x + a d    a = 1 first, then halved or doubled until f falls enough and its slope has flattened enough
                    (Armijo 1966; Wolfe 1969)

    f, g   the function and its gradient
    d, a   the step and its length
    m      MEMORY, changes that are remembered

It ends where the last PERIOD steps together have lowered f by at most tolerance |f|, or where |g| is nothing beside x.
Every sum is in the same order, so that the same data gives the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

MEMORY = 6
PERIOD = 10
FLAT = 1e-6  # |g| / max(1, |x|) that no step needs
SUFFICIENT, FLATTENED = 1e-4, 0.9
MOST_TRIES = 30  # lengths of one step
Function = Callable[[Tensor], tuple[float, Tensor]]


@dataclass(frozen=True)
class Lowest:
    """What was found.

    steps     that were made; calls: of the function.
    gradient  |g| / max(1, |x|) at the end. fallen: by how much of itself f fell in the last PERIOD steps.
    """

    x: Tensor
    value: float
    steps: int
    calls: int
    gradient: float
    fallen: float
    converged: bool


@dataclass
class _Place:
    x: Tensor
    value: float
    g: Tensor

    @property
    def share(self) -> float:
        return float(self.g.norm()) / max(1.0, float(self.x.norm()))


def minimise(
    function: Function, start: Tensor, tolerance: float, most: int, tell: Callable[[float], None] = lambda _: None
) -> Lowest:
    """The minimum from `start` on, in at most so many steps. tell: how much of the way to the tolerance is done."""
    here = _Place(start, *function(start))
    values, calls = [here.value], 1
    changes: list[tuple[Tensor, Tensor, float]] = []
    while (fallen := _fallen(values)) > tolerance and here.share > FLAT and len(values) <= most:
        tell(min(1.0, abs(math.log(min(1.0, fallen)) / math.log(tolerance))))
        d = _direction(here.g, changes)
        # Before anything is known of the curvature a step is as long as a unit.
        there, used = _lower(function, here, d, 1.0 if changes else 1 / max(1.0, float(d.norm())))
        calls += used
        if there is None:  # no step lowers the function by what numbers can tell
            break
        s, y = there.x - here.x, there.g - here.g
        bend = float(s @ y)
        if bend > 0:
            changes = [*changes[-(MEMORY - 1) :], (s, y, bend)]
        here = there
        values.append(here.value)
    converged = fallen <= tolerance or here.share <= FLAT
    return Lowest(here.x, here.value, len(values) - 1, calls, here.share, fallen, converged)


def _fallen(values: list[float]) -> float:
    """By how much of itself the function fell in the last steps; 1 before there were so many."""
    if len(values) <= PERIOD:
        return 1.0
    return (values[-1 - PERIOD] - values[-1]) / max(abs(values[-1]), 1e-12)


def _direction(g: Tensor, changes: list[tuple[Tensor, Tensor, float]]) -> Tensor:
    """-H g by the two loops over the changes, newest first and oldest first."""
    d, shares = -g, []
    for s, y, bend in reversed(changes):
        shares.append(float(s @ d) / bend)
        d.add_(y, alpha=-shares[-1])
    if changes:
        _, y, bend = changes[-1]
        d.mul_(bend / float(y @ y))
    for (s, y, bend), share in zip(changes, reversed(shares), strict=True):
        d.add_(s, alpha=share - float(y @ d) / bend)
    return d


def _lower(function: Function, here: _Place, d: Tensor, length: float) -> tuple[_Place | None, int]:
    """The first place along d that is low and flat enough; else the lowest that was tried, None if none was lower."""
    slope = float(here.g @ d)
    shortest, longest, best, tried = 0.0, math.inf, None, 0
    if slope >= 0:
        return None, tried
    for tried in range(1, MOST_TRIES + 1):
        x = torch.add(here.x, d, alpha=length)
        there = _Place(x, *function(x))
        falls = there.value <= here.value + SUFFICIENT * length * slope
        if not falls or not math.isfinite(there.value):
            longest = length
        else:
            best = there
            if float(there.g @ d) >= FLATTENED * slope:
                return there, tried
            shortest = length
        if best is not None and longest - shortest <= 1e-6 * longest:
            break
        length = (shortest + longest) / 2 if longest < math.inf else 2 * length
    return best, tried
