"""How often chance alone would give paired differences a sum as far from zero (Fisher 1935, section 21).

Of two models that are the same each difference is as likely with the other sign. With m differences that are not zero
there are 2^m ways, of which those count whose sum is as far away or further: never fewer than two of them, so that
fewer than six examples make no difference certain, however alike they are.
"""

from __future__ import annotations

from functools import cache

import numpy as np

MOST = 14  # differences of which every way is counted
ROUNDING = 1e-9


def by_signs(differences: np.ndarray) -> float:
    """p of paired differences; of many of them the least that it can be, 2 / 2^m.

    >>> by_signs(np.array([1.0, 1.0, 0.0])), by_signs(np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0]))
    (0.5, 0.21875)
    """
    largest = float(np.abs(differences).max(initial=0.0))
    differ = differences[np.abs(differences) > ROUNDING * largest]
    if len(differ) == 0:
        return 1.0
    if len(differ) > MOST:
        return 2.0 * 0.5 ** len(differ)
    least = abs(float(differ.sum())) - ROUNDING * largest
    return float((np.abs(_ways(len(differ)) @ differ) >= least).mean())


@cache
def _ways(count: int) -> np.ndarray:
    """All signs of so many differences, (2^count, count)."""
    bits = np.arange(2**count)[:, None] >> np.arange(count)
    return 1.0 - 2.0 * (bits & 1)
