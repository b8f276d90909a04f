"""The interval of a share of rights among so many (Wilson 1927).

    (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

It stays between 0 and 1, and of nothing but rights it is not of no width. Where the error of the share was measured,
as of sentences whose words are right together, n is how many single answers have that error (Korn and Graubard 1998):

    n = p (1 - p) / error^2 . (t of the n - 1 there are / t of the degrees of freedom)^2, and no more than there are

Glossary
p  the share        n  how many it is of        z  1.96, for 95%
"""

from __future__ import annotations

import math
from statistics import NormalDist

from regard.evaluation.student import LEVEL, t_quantile

Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


def share_interval(share: float, count: float) -> tuple[float, float]:
    """Low and high.

    >>> [round(end, 3) for end in share_interval(1.0, 19)]
    [0.832, 1.0]
    """
    square = Z * Z / count
    middle = share + square / 2
    half = math.sqrt(share * (1 - share) * square + square * square / 4)
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def effective_count(share: float, error: float, degrees: float, drawn: int, answers: float) -> float:
    """How many single answers have the error of the share; of none of it, as of rights alone, as many as were drawn.

    drawn  examples, at least two. answers: single ones, of which an example may have several.
    """
    if error == 0 or not 0 < share < 1:
        return float(drawn)
    lost = t_quantile(drawn - 1) / t_quantile(degrees)
    # A variance that was measured on n is that of n - 1.
    return min(answers, share * (1 - share) / error**2 * lost**2 * drawn / (drawn - 1))
