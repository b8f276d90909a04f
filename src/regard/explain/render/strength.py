"""Which links of many are drawn: those that count as aligned, or the strong ones."""

from __future__ import annotations

import numpy as np

from regard.explain.view import Links

LEAST = 0.25


def strongest(panel: Links, most: int) -> tuple[list[tuple[int, int, float]], list[str]]:
    """(lower, upper, weight), the strongest first, and what was left out in words.

    The pairs of the panel where it has any; else of each lower token its strongest link and those of a quarter or more.
    """
    weights = np.nan_to_num(np.asarray(panel.weights, dtype=np.float64))
    if panel.pairs:
        places = list(dict.fromkeys((int(i), int(j)) for i, j in panel.pairs))
    elif weights.size:
        chosen = weights >= LEAST
        chosen[np.arange(len(weights)), weights.argmax(1)] |= weights.max(1) > 0
        places = [(int(i), int(j)) for i, j in np.argwhere(chosen)]
    else:
        places = []
    found = sorted(((i, j, float(weights[i, j])) for i, j in places), key=lambda link: (-link[2], link[0], link[1]))
    if len(found) <= most:
        return found, []
    return found[:most], [f"{most} of {len(found)} links, the strongest"]
