"""Film reviews in which one sentence gives the writer's opinion, and negation decides which: "not dull at all".

The label is the polarity of the adjective in the writer's own sentence, turned around by each negation whose scope it
is in. The other sentences tell what happened or what somebody else thinks, with negations and adjectives of their
own, and mean nothing. The text determines the label, so that the best accuracy is 1; the words without their order do
not, since "not" may stand in this sentence or in that one.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from regard.data.example import Labelled
from regard.data.worlds.base import ExampleWorld
from regard.errors import UsageError

LABELS = ("negative", "positive")
ADJECTIVES = (
    ("bad", "dull", "boring", "silly", "shallow", "weak", "tired", "clumsy"),
    ("good", "clever", "funny", "moving", "brilliant", "charming", "fresh", "gripping"),
)
PARTS = ("film", "plot", "acting", "music", "ending", "dialogue")
PEOPLE = ("my sister", "my neighbour", "a critic")

# The writer's sentence, and whether the label is the polarity of {a}. {b} is of the other polarity than {a}.
OPINIONS = (
    ("the {part} is {a}", True),
    ("the {part} is not {a}", False),
    ("the {part} is not {a} at all", False),
    ("the {part} is never {a}", False),
    ("the {part} is anything but {a}", False),
    ("nobody would call the {part} {a}", False),
    ("i think the {part} is {a}", True),
    ("i do not think the {part} is {a}", False),
    ("i do not think the {part} is not {a}", True),
    ("it is not true that the {part} is {a}", False),
    ("it is not true that the {part} is not {a}", True),
    ("the {part} is {a} , not {b}", True),
    ("the {part} is not {a} , it is {b}", False),
)
DISTRACTIONS = (
    "it was raining that day",
    "it was not raining that day",
    "the cinema was full",
    "the cinema was not full",
    "the tickets were cheap",
    "the tickets were not cheap",
    "i had read the book",
    "i had not read the book",
    "{person} said it is {any}",
    "{person} said it is not {any}",
    "{person} called the {part} {any}",
    "nobody told me that {person} called the {part} {any}",
)


@dataclass(frozen=True)
class Reviews(ExampleWorld[Labelled]):
    """Reviews of `min_sentences` to `max_sentences` sentences, one of which counts; both labels equally likely."""

    min_sentences: int = 2
    max_sentences: int = 5

    name: ClassVar[str] = "reviews"
    task: ClassVar[str] = "labelled"
    tokens: ClassVar[str] = "words"
    best: ClassVar[dict[str, float]] = {"accuracy": 1.0, "macro_f1": 1.0}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.min_sentences <= self.max_sentences <= 1000:
            raise UsageError(
                f"world:reviews needs 1 <= min_sentences <= max_sentences <= 1000, "
                f"found {self.min_sentences} and {self.max_sentences}"
            )

    def example(self, seed: int) -> Labelled:
        random = Random(seed)
        label = random.randrange(2)
        sentences = [_distraction(random) for _ in range(random.randint(self.min_sentences, self.max_sentences) - 1)]
        sentences.insert(random.randint(0, len(sentences)), _opinion(label, random))
        return Labelled(" ".join(f"{sentence} ." for sentence in sentences), LABELS[label])


def _opinion(label: int, random: Random) -> str:
    template, is_plain = random.choice(OPINIONS)
    polarity = label if is_plain else 1 - label
    words = {"a": random.choice(ADJECTIVES[polarity]), "b": random.choice(ADJECTIVES[1 - polarity])}
    return template.format(part=random.choice(PARTS), **words)


def _distraction(random: Random) -> str:
    words = {"person": random.choice(PEOPLE), "part": random.choice(PARTS)}
    return random.choice(DISTRACTIONS).format(any=random.choice(ADJECTIVES[random.randrange(2)]), **words)
