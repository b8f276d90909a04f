"""What is held out of the examples of an estimator, by which the best weights are chosen while a network learns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.data.split import chosen, places

SHARE = 0.1


def held_out(keys: Sequence[str], targets: Sequence[set[int]]) -> np.ndarray:
    """About a tenth, (n,) bool, chosen by the hash of each key so that duplicates fall on one side.

    targets  of each example its class, or those of its words: one that has a class which no other has is learnt from.
    """
    found = places(keys)
    if found.min() == found.max():
        return np.zeros(len(keys), bool)
    held = chosen(found, "hash", SHARE)
    known: set[int] = set().union(*(own for own, is_held in zip(targets, held, strict=True) if not is_held))
    for number in np.flatnonzero(held).tolist():
        if not targets[number] <= known:
            held[number] = False
            known |= targets[number]
    return held
