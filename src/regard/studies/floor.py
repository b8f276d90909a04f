"""The information floor: how much a model has to carry to recall what a world asks for, whatever it is made of.

    H = mean over documents of  sum over words that are asked for again  -log2 p(word | it is one that may be asked for)

with p that of the world where the word is first said. A state of fewer than H bits cannot hold all of it; how far above
it a model lies is what its form costs.
"""

from __future__ import annotations

import math
from typing import Any

DOCUMENTS = 40


def recall_bits(world: Any) -> float | None:
    """H of a world, in bits; None where nothing is recalled."""
    documents = world.documents("valid")[:DOCUMENTS]
    split = [world.split(document) for document in documents]
    points = [dict(world.recall_points(document)) for document in documents]
    asked = {words[index] for words, found in zip(split, points, strict=True) for index in found}
    if not asked:
        return None
    total = 0.0
    for words, found in zip(split, points, strict=True):
        # A word that is itself recalled, as a name said a third time, was told before.
        told = {index - distance for index, distance in found.items()} - found.keys()
        for place in told:
            chances = world.next_distribution(words[:place])
            among = sum(chance for word, chance in chances.items() if word in asked)
            total -= math.log2(chances[words[place]] / among)
    return total / len(documents)
