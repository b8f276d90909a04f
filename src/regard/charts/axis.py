"""Axes of pictures: what a side stands for, where a value lies on it, round values beside it, and colours of lines.

Colours are those of Okabe and Ito, which people who see colours differently can tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8a8a", "#b8a800")
MOST_NAMES = 8


@dataclass(frozen=True)
class Axis:
    """What is shown along one side. names: of the values 0, 1, 2 and so on, where they are no numbers."""

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None
    names: tuple[str, ...] = ()

    @property
    def full_label(self) -> str:
        """The label, and how the axis is divided where that is unusual."""
        return f"{self.label} (logarithmic)" if self.log else self.label

    @property
    def ticks(self) -> dict[float, str]:
        """Where the names stand; every so many of them where they are many."""
        every = math.ceil(len(self.names) / MOST_NAMES)
        return {float(place): name for place, name in enumerate(self.names) if place % every == 0}


def short(value: float) -> str:
    """A number in few letters.

    >>> short(1234567.0), short(0.0712), short(1000), short(0.5)
    ('1.23M', '0.0712', '1k', '0.5')
    """
    if not math.isfinite(value):
        return str(value)
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def value_range(values: Sequence[float], axis: Axis) -> tuple[float, float]:
    """Lowest and highest value shown, never the same."""
    fit = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)]
    low = axis.low if axis.low is not None else min(fit, default=1.0 if axis.log else 0.0)
    high = axis.high if axis.high is not None else max(fit, default=low + 1.0)
    if high > low:
        return low, high
    return (low / 2, low * 2) if axis.log else (low - 0.5, low + 0.5)


def share_of(value: float, ends: tuple[float, float], log: bool) -> float:
    low, high = (math.log(end) for end in ends) if log else ends
    value = math.log(value) if log else value
    return min(1.0, max(0.0, (value - low) / (high - low)))


def ticks(ends: tuple[float, float], log: bool) -> list[float]:
    """Round values within the range, about five.

    >>> ticks((0.0, 10.0), False)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    >>> ticks((1.0, 1000.0), True)
    [1.0, 10.0, 100.0, 1000.0]
    """
    low, high = ends
    if log and high / low >= 10:
        powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
        every = max(1, math.ceil(len(powers) / 6))
        return [10.0**power for power in powers if power % every == 0]
    rough = (high - low) / 5
    size = 10 ** math.floor(math.log10(rough))
    step = min((size * factor for factor in (1, 2, 5, 10)), key=lambda one: abs(one - rough))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(round(number * step, 12)) for number in range(first, last + 1)]
