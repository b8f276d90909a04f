"""A toy language pair with known alignments: "anna sees the brown dog" -> "anna lo hundo brun viru".

Every word of the source has one translation, of one or two words; articles agree with the gender of their noun. The
order of words differs by four rules:

    noun phrase  the kind brown dog                 ->  article noun brown kind  (adjectives follow, the nearest first)
    place        in the garden                      ->  article noun in          (postpositions)
    clause       subject adverb verb object place   ->  adverb subject place object verb
    sentence     clauses stay in order, with their conjunctions between them

The source determines the target, so that the best exact match is 1, and every word knows where it came from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import ClassVar

from regard.data.example import Pair
from regard.data.worlds.base import ExampleWorld
from regard.errors import UsageError

# A word of the source and its translation.
Word = tuple[str, str]
Phrase = list[Word]


def table(entries: str) -> tuple[Word, ...]:
    """Words and translations from "dog=hundo sees=viru"; an underscore is the space between the two words of one."""
    pairs = (entry.partition("=") for entry in entries.split(" "))
    return tuple((word, translation.replace("_", " ")) for word, _, translation in pairs)


NAMES = table("anna=anna ben=ben clara=klara david=davo emma=ema felix=felo")
# A noun that ends in -a is of one gender, one in -o of the other.
NOUNS = table(
    "dog=hundo cat=mica house=doma garden=zarda book=libro letter=brifa river=fluvo bridge=ponto pear=pera "
    "teacher=lera friend=amo child=kindo bird=vola ship=navo town=stada railway=fera_voja"
)
ARTICLES = (("the", "lo", "la"), ("a", "un", "una"), ("every", "kado", "kada"))
ADJECTIVES = table(
    "kind=bon new=nov small=pet big=gran red=ruj green=verd brown=brun quiet=tish happy=glad faraway=lonta_viz"
)
STANDING = table("sleeps=dormi waits=vardi sings=kanti laughs=ridi returns=veni_rika arrives=torni")
ACTING = table(
    "sees=viru finds=truvu likes=amu paints=farbu reads=leju carries=portu follows=segu remembers=tenu_mens "
    "sells=vendu draws=desu"
)
ADVERBS = table("often=sovent now=nun quickly=rapide never=neniam today=hodi_je")
PREPOSITIONS = table("in=en near=prok behind=dor under=sub")
CONJUNCTIONS = table("and=i but=ma because=par_ke while=dum")

# Adjectives of a noun phrase; a name counts as a phrase of one word.
NAME = -1
SIZES = {NAME: 1, 0: 2, 1: 3, 2: 4}
LONGEST_CLAUSE = 8


@dataclass(frozen=True)
class Shape:
    """The parts of a clause: noun phrases by their number of adjectives, None where there is none."""

    subject: int
    adverb: bool
    thing: int | None
    place: int | None

    @property
    def length(self) -> int:
        """Words of the source."""
        objects = SIZES[self.thing] if self.thing is not None else 0
        places = 1 + SIZES[self.place] if self.place is not None else 0
        return SIZES[self.subject] + self.adverb + 1 + objects + places


def shapes() -> dict[int, list[Shape]]:
    """All shapes of a clause by their length. Places are no names."""
    found: dict[int, list[Shape]] = defaultdict(list)
    for parts in product(SIZES, (False, True), (None, *SIZES), (None, 0, 1, 2)):
        shape = Shape(*parts)
        if shape.length <= LONGEST_CLAUSE:
            found[shape.length].append(shape)
    return dict(found)


SHAPES = shapes()


@dataclass(frozen=True)
class Translation(ExampleWorld[Pair]):
    """Sentences of `min_length` to `max_length` words, every length equally likely, with translation and alignment."""

    min_length: int = 4
    max_length: int = 12

    name: ClassVar[str] = "translation"
    task: ClassVar[str] = "pairs"
    tokens: ClassVar[str] = "words"
    best: ClassVar[dict[str, float]] = {"exact_match": 1.0, "alignment_accuracy": 1.0}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.min_length <= self.max_length <= 1000:
            raise UsageError(
                f"world:translation needs 2 <= min_length <= max_length <= 1000, "
                f"found {self.min_length} and {self.max_length}"
            )

    def example(self, seed: int) -> Pair:
        random = Random(seed)
        source: Phrase = []
        target: list[int] = []
        for length in _clauses(random.randint(self.min_length, self.max_length), random):
            if source:
                target.append(len(source))
                source.append(random.choice(CONJUNCTIONS))
            words, order = _clause(random.choice(SHAPES[length]), random)
            target += [len(source) + place for place in order]
            source += words
        return _pair(source, target)


def _clauses(length: int, random: Random) -> Iterator[int]:
    """Lengths of clauses that fill a sentence of `length` words, with one word between two of them."""
    while length > LONGEST_CLAUSE:
        # What is left must have room for a conjunction and the shortest clause.
        part = random.randint(2, min(LONGEST_CLAUSE, length - 3))
        yield part
        length -= part + 1
    yield length


def _clause(shape: Shape, random: Random) -> tuple[Phrase, list[int]]:
    """The words of a clause, and their places in the order of the translation."""
    words: Phrase = []

    def say(part: Phrase, order: list[int] | None = None) -> list[int]:
        start = len(words)
        words.extend(part)
        return [start + place for place in (range(len(part)) if order is None else order)]

    subject = say(*_noun_phrase(shape.subject, random))
    adverb = say([random.choice(ADVERBS)]) if shape.adverb else []
    verb = say([random.choice(STANDING if shape.thing is None else ACTING)])
    thing = say(*_noun_phrase(shape.thing, random)) if shape.thing is not None else []
    place: list[int] = []
    if shape.place is not None:
        before = say([random.choice(PREPOSITIONS)])
        place = say(*_noun_phrase(shape.place, random)) + before
    return words, adverb + subject + place + thing + verb


def _noun_phrase(n_adjectives: int, random: Random) -> tuple[Phrase, list[int]]:
    if n_adjectives == NAME:
        return [random.choice(NAMES)], [0]
    noun = random.choice(NOUNS)
    article, in_o, in_a = random.choice(ARTICLES)
    agreeing = in_a if noun[1].endswith("a") else in_o
    adjectives = random.sample(ADJECTIVES, n_adjectives)
    return [(article, agreeing), *adjectives, noun], [0, *range(n_adjectives + 1, 0, -1)]


def _pair(source: Phrase, order: list[int]) -> Pair:
    """The pair whose translation says the words of the source in this order."""
    target: list[str] = []
    links: list[tuple[int, int]] = []
    for place in order:
        for word in source[place][1].split(" "):
            links.append((place, len(target)))
            target.append(word)
    return Pair(" ".join(word for word, _ in source), " ".join(target), tuple(sorted(links)))
