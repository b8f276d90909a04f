"""What a head of attention does on one text: figures of its map, and a name where one place has most of its weight.

    entropy   -sum_j a_ij log2 a_ij, the mean over rows, in bits: low is sharp
    distance  sum_j a_ij |i - j|: how far it looks on average
    first     a_i1: what the first position gets, a sink where a head looks for want of anything else
    itself    a_ii; `before` a_i,i-1; `after` a_i,i+1
    last      a_iS, and `diagonal` the weight within one place of the line from the first to the last corner, of a map
              between two sides

Rows that can see one place only say nothing of a head, and are left out. A head is called by that share which has most
of its weight, where it has at least 0.4; broad where its entropy is at least 0.85 of the largest that there could be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.explain.habits import ENOUGH, HABITS

BROAD = 0.85
BROADLY = "broad"
OF_CONTENT = ("induction", "same token")  # told on tokens that come twice, where a text may have none that do
# What a head with most of its weight there is called, and in few letters.
NAMES = {"first": "first token", "itself": "itself", "before": "previous token", "after": "next token"}
BETWEEN = {"first": "first token", "last": "last token", "diagonal": "diagonal"}
SHORT = {
    "induction": "ind",
    "previous token": "prev",
    "next token": "next",
    "same token": "same",
    "first token": "first",
    "last token": "last",
    "itself": "self",
    "diagonal": "diag",
    BROADLY: "broad",
}


def figures(weights: np.ndarray, is_own: bool) -> dict[str, np.ndarray]:
    """What was measured of weights (H, T, S), a value for each head. is_own: whether both sides are the same."""
    rows, columns = np.arange(weights.shape[1]), np.arange(weights.shape[2])
    kept = _several(weights)
    logs = np.log2(np.where(weights > 0, weights, 1.0))
    entropy = -(weights * logs).sum(2)
    if is_own:
        after = np.zeros(weights.shape[:2])
        before = after.copy()
        before[:, 1:], after[:, :-1] = weights[:, rows[1:], rows[:-1]], weights[:, rows[:-1], rows[1:]]
        far = (weights * np.abs(rows[:, None] - rows)).sum(2)
        itself = weights[:, rows, rows]
        found = {"distance": far, "first": weights[:, :, 0], "itself": itself, "before": before, "after": after}
    else:
        line = rows * (len(columns) - 1) / max(1, len(rows) - 1)
        near = np.abs(columns - line[:, None]) <= 1
        found = {"first": weights[:, :, 0], "last": weights[:, :, -1], "diagonal": (weights * near).sum(2)}
    return {name: part[:, kept].mean(1) for name, part in ({"entropy": entropy} | found).items()}


def named_here(weights: np.ndarray, measured: dict[str, np.ndarray], is_own: bool) -> list[str]:
    """What each head of weights (H, T, S) is called by what it does in this map; empty where nothing stands out."""
    kept = _several(weights)
    if weights.shape[2] < 2:
        return [""] * len(weights)
    most = np.log2(np.maximum(1, (weights > 0).any(0).sum(1)[kept])).mean()
    names = dict(NAMES if is_own else BETWEEN)
    if not is_own and weights.shape[2] * ENOUGH <= 6:  # three places in a row are a large part of so few
        del names["diagonal"]
    found = []
    for head in range(len(weights)):
        best = max(names, key=lambda name: float(measured[name][head]))
        is_broad = most > 0 and measured["entropy"][head] >= BROAD * most
        found.append(names[best] if measured[best][head] >= ENOUGH else BROADLY if is_broad else "")
    return found


def called(tried: Sequence[str], here: Sequence[str]) -> list[str]:
    """The name of each head: by content where it was tried, else by this text, else by any habit.

    tried  the habits of each on random tokens that come twice, "none" for none; nothing where it could not be tried.
    """
    pairs = zip(tried or ["none"] * len(here), here, strict=True)
    return [habit if habit in OF_CONTENT or (not name and habit in HABITS) else name for habit, name in pairs]


def _several(weights: np.ndarray) -> np.ndarray:
    """Rows (T,) in which any head could choose; all of them where none could."""
    seen = (weights > 0).any(0).sum(1) > 1
    return seen if seen.any() else np.ones_like(seen)
