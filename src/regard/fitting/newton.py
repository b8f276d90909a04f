"""Newton's method with conjugate gradients: the minimum of a smooth convex function, exactly, without a learning rate.

    H d = -g        solved by conjugate gradients until |H d + g| <= eta |g|     (Dembo, Eisenstat, Steihaug 1982)
    x <- x + a d    a = 1, 1/2, 1/4, ... the first that lowers f enough           (Armijo 1966)

    f     the function, g its gradient, H its second derivatives, of which only products H v are asked for
    d     the step, a its length
    eta   how exactly the step is solved for: the nearer the minimum, the better, min(1/2, sqrt(|g| / |g_0|))

It ends where |g| <= tolerance |g_0|, g_0 the gradient at the beginning. Every sum is in the same order, so that the
same data gives the same numbers. Of the linear models that it is for, see Lin, Weng, Keerthi 2008, and Galli, Lin 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

MOST_PRODUCTS = 250  # H v for one step
SUFFICIENT, SHORTEST = 1e-4, 2.0**-40


class Point(Protocol):
    """A function at one place."""

    def value(self) -> float: ...

    def gradient(self) -> Tensor: ...

    def curvature(self, v: Tensor) -> Tensor:
        """H v."""
        ...

    def along(self, direction: Tensor) -> Callable[[float], Point]:
        """The function at x + a d, by a."""
        ...


@dataclass(frozen=True)
class Minimum:
    """What was found.

    steps     of Newton's method; products: of second derivatives with a vector, over all of them.
    gradient  |g| / |g_0| at the end.
    """

    point: Point
    steps: int
    products: int
    gradient: float
    converged: bool


def minimise(start: Point, tolerance: float, most: int, tell: Callable[[float], None] = lambda _: None) -> Minimum:
    """The minimum from `start` on, in at most so many steps. tell: how much of the way to the tolerance is done."""
    point, products = start, 0
    first = now = float(start.gradient().norm())
    for step in range(most + 1):
        share = now / first if first > 0 else 0.0
        if share <= tolerance or step == most:
            return Minimum(point, step, products, share, share <= tolerance)
        tell(min(1.0, abs(math.log(share) / math.log(tolerance))))
        d, used = _direction(point, min(0.5, math.sqrt(share)))
        products += used
        after = _lower(point, d)
        if after is None:  # no step lowers the function by what numbers can tell
            return Minimum(point, step, products, share, False)
        point, now = after, float(after.gradient().norm())
    raise AssertionError("a loop that returns")


def _direction(point: Point, eta: float) -> tuple[Tensor, int]:
    """About -H^-1 g, and how many products it took."""
    g = point.gradient()
    d, r = torch.zeros_like(g), -g
    p, rr = r.clone(), float((r * r).sum())
    enough = (eta * math.sqrt(rr)) ** 2
    for used in range(MOST_PRODUCTS):
        if rr <= enough:
            return d, used
        hp = point.curvature(p)
        bend = float((p * hp).sum())
        if bend <= 0:  # flat: steepest descent from the beginning, else what was found so far
            return (d if used else -g), used + 1
        a = rr / bend
        d += a * p
        r -= a * hp
        rr, before = float((r * r).sum()), rr
        p = r + (rr / before) * p
    return d, MOST_PRODUCTS


def _lower(point: Point, d: Tensor) -> Point | None:
    """The first point along d that is low enough."""
    slope = float((point.gradient() * d).sum())
    at, a = point.along(d), 1.0
    while a >= SHORTEST:
        there = at(a)
        if there.value() <= point.value() + SUFFICIENT * a * slope:
            return there
        a /= 2
    return None
