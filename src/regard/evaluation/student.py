"""Student's t: how wide the interval of a mean is that was taken from a few numbers (Student 1908).

    P(|T| <= t) = 1 - I_x(n / 2, 1 / 2)        x = n / (n + t^2)
    interval    = mean +- t s / sqrt(n + 1)    s the deviation of n + 1 numbers

Glossary
n  degrees of freedom        I_x(a, b)  the regularised incomplete beta function
"""

from __future__ import annotations

import math
from functools import cache

LEVEL = 0.95
MOST_TERMS = 10_000
TINY = 1e-300


@cache
def t_quantile(degrees: float, level: float = LEVEL) -> float:
    """The t that a variable of so many degrees of freedom stays within, on both sides, with probability `level`.

    >>> round(t_quantile(1), 4), round(t_quantile(11), 4), round(t_quantile(1000), 4)
    (12.7062, 2.201, 1.9623)
    """
    if degrees < 1 or not 0 < level < 1:
        raise ValueError(f"no quantile of {degrees} degrees of freedom at a level of {level}")
    low, high = 0.0, 1.0
    while _within(high, degrees) < level:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return high


def outside(t: float, degrees: float) -> float:
    """P(|T| > t) of a variable of so many degrees of freedom, which need not be whole.

    >>> round(outside(12.7062, 1), 4), round(outside(2.5, 4.5), 4)
    (0.05, 0.0599)
    """
    return 1 - _within(abs(t), degrees)


def _within(t: float, degrees: float) -> float:
    """P(|T| <= t)."""
    square = t * t / degrees
    # Of the two forms the one whose fraction converges fast; the other is its complement.
    if square < 1 / max(1, degrees - 1):
        return _incomplete_beta(square / (1 + square), 0.5, degrees / 2)
    return 1 - _incomplete_beta(1 / (1 + square), degrees / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b) by its continued fraction (Abramowitz and Stegun 26.5.8), evaluated as Lentz did (1976)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )
    above, below = 1.0, 1 / _off_zero(1 - (a + b) * x / (a + 1))
    found = below
    for m in range(1, MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            below = 1 / _off_zero(1 + term * below)
            above = _off_zero(1 + term / above)
            change = above * below
            found *= change
        if abs(change - 1) < 1e-15:
            return front * found
    raise ArithmeticError(f"the incomplete beta function of {x}, {a}, {b} does not converge")


def _off_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
