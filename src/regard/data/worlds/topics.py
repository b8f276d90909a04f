"""Short messages with the topics that they are about: a message names things, and some of them only to deny them.

Every sentence brings up a thing of a topic, "we talked about the match ."; one of three denies it, "nobody talked about
the match .", and then says nothing. The text determines its labels, so that the best score is 1; words without their
order do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from regard.data.example import Several
from regard.data.worlds.base import ExampleWorld

THINGS = {
    "food": ("soup", "bread", "recipe", "kitchen"),
    "music": ("song", "concert", "guitar", "choir"),
    "sport": ("match", "goal", "race", "trainer"),
    "travel": ("train", "hotel", "border", "map"),
    "weather": ("rain", "storm", "snow", "forecast"),
}
SAID = ("we talked about the {thing} .", "he wrote of the {thing} .", "the {thing} was what mattered .")
DENIED = (
    "nobody talked about the {thing} .",
    "he did not write of the {thing} .",
    "the {thing} was not what mattered .",
)


@dataclass(frozen=True)
class Topics(ExampleWorld[Several]):
    """Messages of one to four sentences, each about another topic."""

    name: ClassVar[str] = "topics"
    task: ClassVar[str] = "multilabel"
    tokens: ClassVar[str] = "words"
    best: ClassVar[dict[str, float]] = {"micro_f1": 1.0, "subset_accuracy": 1.0}

    def example(self, seed: int) -> Several:
        random = Random(seed)
        said, labels = [], []
        for topic in random.sample(sorted(THINGS), random.randint(1, 4)):
            is_denied = random.random() < 1 / 3
            said.append(random.choice(DENIED if is_denied else SAID).format(thing=random.choice(THINGS[topic])))
            labels += [] if is_denied else [topic]
        return Several(" ".join(said), tuple(sorted(labels)))
