"""The information floor: the least that a state must hold to recall what a world asks for, whatever it is made of.

    bits of a told word   -log2 p(word | it is one that may be asked for), p that of the world where it is said
    H                     mean over documents of the most bits that are told and still to be asked for at one time

A state of fewer bits cannot answer everything; how far above it a model lies is what its form costs.
"""

from __future__ import annotations

import math
from typing import Any

DOCUMENTS = 40
# With two answers, as in parity, an answer may be a function of many tokens instead of one that was told.
FEWEST = 3


def recall_bits(world: Any) -> float | None:
    """H of a world, in bits; None where no word that was told is asked for."""
    documents = world.documents("valid")[:DOCUMENTS]
    split = [world.split(document) for document in documents]
    points = [dict(world.recall_points(document)) for document in documents]
    asked = {words[index] for words, found in zip(split, points, strict=True) for index in found}
    if len(asked) < FEWEST:
        return None
    peaks = [_peak(world, words, found, asked) for words, found in zip(split, points, strict=True)]
    return sum(peaks) / len(peaks) if any(peaks) else None


def _peak(world: Any, words: list[str], found: dict[int, int], asked: set[str]) -> float:
    """The most bits that one document has outstanding at any word."""
    last: dict[int, int] = {}
    for index, distance in sorted(found.items()):
        place = index - distance
        # A name said a third time was recalled the second time: it is still what the first one told.
        while place in found:
            place -= found[place]
        if words[place] == words[index]:
            last[place] = index
    changes = [0.0] * (len(words) + 1)
    for place, index in last.items():
        chances = world.next_distribution(words[:place])
        among = sum(chance for word, chance in chances.items() if word in asked)
        bits = -math.log2(chances[words[place]] / among)
        changes[place] += bits
        changes[index] -= bits
    held, peak = 0.0, 0.0
    for change in changes:
        held += change
        peak = max(peak, held)
    return peak
