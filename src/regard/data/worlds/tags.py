"""Sentences of the stories and their parts of speech, with words that only their neighbours tell apart.

Half of the sentences come from the stories, where `to` is the one word with two tags; half are made of words that have
two or three (a light lamp, to light a lamp; that cat, that the cat slept; the old man, the old man the boats). Tags are
those of Universal Dependencies. The sentence determines them, so that the best accuracy is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import ClassVar

from regard.data.example import Tagged
from regard.data.worlds.base import ExampleWorld
from regard.data.worlds.grammar import Choose, Node, one_of, sample
from regard.data.worlds.stories import COLOURS, PEOPLE, PLACES, SLOTS, THINGS, Stories, sentence
from regard.errors import UsageError

WORDS_BY_TAG = {
    "PROPN": PEOPLE,
    "NOUN": f"{THINGS} {PLACES} boy girl house cat dog fox horse goose rabbit morning evening summer winter night day "
    "bread cheese milk honey soup birds boats stars clouds trees dinner music home end sun wind sea tree song cup "
    "tea clock door",
    "ADJ": f"{COLOURS} happy tired hungry curious sad proud brave clever quiet funny young small large narrow good "
    "Good cold old last long",
    "VERB": "had lived called went asked said say bought came counted gave hid knew looked looking played raining ran "
    "sang sat shining slept struck thought walked wanted waved",
    "AUX": "was is",
    "PRON": "He he She she It it They they Everyone Nobody Who there that my",
    "DET": "A a The the some",
    "ADP": "At In After in from near under of about after for until",
    "ADV": "Once Then still now so too Where why",
    "NUM": "One two three four five six",
    "CCONJ": "And and but",
    "SCONJ": "because",
    "INTJ": "hello",
    "PUNCT": '. , ? ! "',
}
LEXICON = {word: tag for tag, words in WORDS_BY_TAG.items() for word in words.split(" ")}

AMBIGUOUS = SLOTS | {
    "walk": one_of("play/VERB walk/VERB rest/VERB dance/VERB talk/VERB"),
    "a-walk": one_of("play/NOUN walk/NOUN rest/NOUN dance/NOUN talk/NOUN"),
    "clean": one_of("light/VERB clean/VERB dry/VERB open/VERB"),
    "a-clean": one_of("light/ADJ clean/ADJ dry/ADJ open/ADJ"),
}
# A word with a stroke carries its tag; the others are in the lexicon.
SENTENCES = (
    "{anyone} wanted to {walk} in the {place} .",
    "In the {time} they {walk} near the {place} .",
    "They {walk} and {walk} until the {time} .",
    "The {a-walk} in the {place} was long .",
    "After the {a-walk} {anyone} was {mood} .",
    "{anyone} wanted to {clean} the {colour} {object} .",
    "In the {time} they {clean} the {object} .",
    "{anyone} had a {a-clean} {object} .",
    "The {a-clean} {object} was in the {place} .",
    "{anyone} saw/VERB a {animal} near the {place} .",
    "{anyone} had a saw/NOUN and a {object} .",
    "The saw/NOUN was near the {object} .",
    "{anyone} knew that/SCONJ the {animal} was {mood} .",
    "{anyone} saw/VERB that/DET {animal} in the {place} .",
    "That/DET {animal} was {mood} .",
    "That/PRON was the end of the {a-walk} .",
    "The {animal} ran like/ADP the wind .",
    "They like/VERB the {animal} in the {place} .",
    "{anyone} came back/ADV to the {place} .",
    "{anyone} sat near the back/ADJ door .",
    "The back/NOUN of the {object} was {colour} .",
    "The old/ADJ man/NOUN sang a song .",
    "The old/ADJ man/NOUN the {animal} knew was {mood} .",
    "The old/NOUN man/VERB the boats near the {place} .",
)


@dataclass(frozen=True)
class Tags(ExampleWorld[Tagged]):
    """`sentences` sentences after each other, drawn apart, with a tag for every word."""

    sentences: int = 2

    name: ClassVar[str] = "tags"
    task: ClassVar[str] = "tagged"
    tokens: ClassVar[str] = "words"
    best: ClassVar[dict[str, float]] = {"accuracy": 1.0, "macro_f1": 1.0}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.sentences <= 1000:
            raise UsageError(f"world:tags needs sentences in 1 .. 1000, found {self.sentences}")

    @cached_property
    def grammars(self) -> tuple[Node, Node]:
        """Of short stories, and of single sentences with ambiguous words."""
        return Stories(facts=1, events=4).grammar, Choose([(1, sentence(words, AMBIGUOUS)) for words in SENTENCES])

    def example(self, seed: int) -> Tagged:
        random = Random(seed)
        words: list[str] = []
        for _ in range(self.sentences):
            text, _ = sample(random.choice(self.grammars), random)
            words += random.choice(cut(text))
        return tagged(words)


def cut(words: list[str]) -> list[list[str]]:
    """A text cut after each full stop, question or exclamation mark outside of quotation marks."""
    found: list[list[str]] = [[]]
    for word in words:
        if found[-1] and found[-1][-1] in (".", "?", "!") and found[-1].count('"') % 2 == 0:
            found.append([])
        found[-1].append(word)
    return found


def tagged(words: list[str]) -> Tagged:
    """Words with the tags they carry, else those of the lexicon. `to` is a particle before a verb, else it is not."""
    bare, tags = [], []
    for item in reversed(words):
        word, _, tag = item.partition("/")
        before_verb = bool(tags) and tags[-1] == "VERB"
        bare.append(word)
        tags.append(tag or (("PART" if before_verb else "ADP") if word == "to" else LEXICON[word]))
    return Tagged(tuple(reversed(bare)), tuple(reversed(tags)))
