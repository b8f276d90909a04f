"""Short reviews with a rating: each sentence praises or blames, "not" turns its word around, and chance is added.

    rating = 3 + mean of the sentences' strengths + noise        noise ~ N(0, 0.3)

The strength of a word is told by the word, and "not" takes half of its opposite: "not superb" is -1, "superb" is 2. A
model that knows all this misses the noise alone, so that the best mean absolute error is 0.3 sqrt(2 / pi).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from regard.data.example import Rated
from regard.data.worlds.base import ExampleWorld

NOISE = 0.3
STRENGTHS = {
    -2: ("awful", "terrible", "unbearable"),
    -1: ("weak", "dull", "clumsy"),
    1: ("good", "clever", "fresh"),
    2: ("superb", "brilliant", "gripping"),
}
PARTS = ("film", "plot", "acting", "music", "ending", "dialogue")


@dataclass(frozen=True)
class Ratings(ExampleWorld[Rated]):
    """Reviews of one to four sentences."""

    name: ClassVar[str] = "ratings"
    task: ClassVar[str] = "regression"
    tokens: ClassVar[str] = "words"
    best: ClassVar[dict[str, float]] = {"mae": NOISE * math.sqrt(2 / math.pi), "rmse": NOISE}

    def example(self, seed: int) -> Rated:
        random = Random(seed)
        said = [_sentence(random) for _ in range(random.randint(1, 4))]
        rating = 3 + sum(strength for _, strength in said) / len(said) + random.gauss(0, NOISE)
        return Rated(" ".join(sentence for sentence, _ in said), round(rating, 3))


def _sentence(random: Random) -> tuple[str, float]:
    strength = random.choice(list(STRENGTHS))
    is_turned = random.random() < 0.3
    word = random.choice(STRENGTHS[strength])
    told = f"the {random.choice(PARTS)} is {'not ' if is_turned else ''}{word} ."
    return told, -strength / 2 if is_turned else float(strength)
