"""Numbers to be read: four significant digits, points below each other, and which of many are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

MISSING = "."
MOST_WHOLE = 1_000_000


def four(value: float) -> str:
    """Four significant digits; fewer where they are exact, whole numbers in full, and a dot for none.

    >>> four(1 / 3), four(12.0), four(0.5), four(float("nan")), four(-0.0), four(1.5e-7), four(65536.0)
    ('0.3333', '12', '0.5', '.', '0', '1.5e-07', '65536')
    >>> four(2.00004), four(0.50001)
    ('2.000', '0.5000')
    >>> four(1345.2), four(-1345.2)
    ('1345', '-1345')
    """
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < MOST_WHOLE:
        return str(int(value))
    short = f"{value:.4g}"
    # float32 holds no more than seven digits: what differs after them is no difference.
    return short if abs(float(short) - value) <= 1e-6 * abs(value) else f"{value:#.4g}".rstrip(".")


def before_point(text: str) -> int:
    """Letters of a number that stand before its point.

    >>> before_point("12.5"), before_point("12"), before_point("."), before_point("1e-07")
    (2, 2, 1, 1)
    """
    return len(text.split("e")[0].split(".")[0]) or 1


def aligned_numbers(values: Sequence[float] | np.ndarray) -> list[str]:
    """A column of numbers, all of one width, point below point.

    >>> aligned_numbers([0.25, 12.0, float("nan")])
    [' 0.25', '12   ', ' .   ']
    """
    texts = [four(float(value)) for value in values]
    most = max((before_point(text) for text in texts), default=0)
    texts = [" " * (most - before_point(text)) + text for text in texts]
    longest = max((len(text) for text in texts), default=0)
    return [text.ljust(longest) for text in texts]


def first_and_last(count: int, most: int) -> list[int | None]:
    """Places that are shown of `count`: all, or the first few, None for those left out, and the last.

    >>> first_and_last(3, 4), first_and_last(9, 4)
    ([0, 1, 2], [0, 1, None, 8])
    """
    if count <= most:
        return list(range(count))
    return [*range(max(1, most - 2)), None, count - 1] if most > 1 else [0]
