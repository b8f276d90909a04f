"""Short English stories in which something said early must be known many words later.

A person is introduced; one to three facts are told about them (what they had, whom they wanted to greet, what they gave
to whom, what they hid where); other things happen, also to other people, often for a hundred words and more; then every
fact is asked for, in any order. The word that answers is determined by the fact alone, whatever came between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.grammar import (
    Choose,
    InAnyOrder,
    InOrder,
    Node,
    Pick,
    Repeat,
    Say,
    Text,
    one_of,
)
from regard.data.worlds.grammar_world import GrammarWorld
from regard.errors import UsageError

GIRLS = "Anna Clara Emma Grace Iris Kate"
BOYS = "Ben David Felix Henry Jonas Leo"
PEOPLE = f"{GIRLS} {BOYS}"
PRONOUN = {name: "she" if name in GIRLS.split(" ") else "he" for name in PEOPLE.split(" ")}
OPENING_PRONOUN = {name: pronoun.capitalize() for name, pronoun in PRONOUN.items()}
THINGS = "kite lamp book key map violin letter coin basket drum ring bell"
COLOURS = "red blue green yellow white black silver golden"
PLACES = "kitchen garden school market library station harbour park forest tower barn museum"

# The people and things of the facts, which nothing else may name, so that no sentence contradicts a fact.
FACT_PEOPLE = ("hero", "friend", "receiver")
FACT_THINGS = ("belonging", "gift", "treasure")

SLOTS: dict[str, Node] = {
    "girl": Pick("hero", GIRLS),
    "boy": Pick("hero", BOYS),
    "anyone": Pick("hero", PEOPLE),
    "hero": Say("hero"),
    "He": Say("hero", OPENING_PRONOUN),
    "he": Say("hero", PRONOUN),
    "colour": Pick("colour", COLOURS),
    "belonging": Pick("belonging", THINGS, FACT_THINGS),
    "gift": Pick("gift", THINGS, FACT_THINGS),
    "treasure": Pick("treasure", THINGS, FACT_THINGS),
    "spot": Pick("spot", PLACES),
    "friend": Pick("friend", PEOPLE, FACT_PEOPLE),
    "receiver": Pick("receiver", PEOPLE, FACT_PEOPLE),
    "other": Pick("other", PEOPLE, FACT_PEOPLE),
    "another": Pick("another", PEOPLE, (*FACT_PEOPLE, "other")),
    "object": Pick("object", THINGS, FACT_THINGS),
    "place": one_of(PLACES),
    "animal": one_of("cat dog fox horse goose rabbit"),
    "mood": one_of("happy tired hungry curious sad proud"),
    "trait": one_of("brave clever quiet funny young"),
    "time": one_of("morning evening summer winter"),
    "greeting": one_of("morning evening night day"),
    "food": one_of("bread cheese milk honey soup"),
    "number": one_of("two three four five six"),
    "many": one_of("birds boats stars clouds trees"),
    "topic": one_of("dinner music home school summer"),
    "size": one_of("small large narrow"),
}
SLOTS |= {f"{name}!": Say(name, recall=True) for name in (*FACT_PEOPLE, *FACT_THINGS, "colour", "spot")}


def sentence(words: str, slots: Mapping[str, Node] = SLOTS) -> Node:
    """A sentence whose words in braces are slots."""
    parts: list[Node] = []
    fixed: list[str] = []
    for word in words.split(" "):
        if word.startswith("{"):
            parts += [Text(" ".join(fixed))] if fixed else []
            parts.append(slots[word[1:-1]])
            fixed = []
        else:
            fixed.append(word)
    parts += [Text(" ".join(fixed))] if fixed else []
    return InOrder(*parts)


def any_of(*sentences: str) -> Choose:
    """One of the sentences, all equally likely."""
    return Choose([(1, sentence(words)) for words in sentences])


OPENING = any_of(
    "Once there was a {trait} girl called {girl} .",
    "Once there was a {trait} boy called {boy} .",
    "One {time} {anyone} went to the {place} .",
    "{anyone} lived in a {size} house near the {place} .",
)

# Each fact in the two ways of telling it, and the sentence that asks for it.
FACTS = {
    "belonging": (
        any_of("{hero} had a {colour} {belonging} .", "{He} had a {colour} {belonging} ."),
        sentence("At the end of the day {hero!} still had the {colour!} {belonging!} ."),
    ),
    "friend": (
        any_of("{hero} wanted to say hello to {friend} .", "{He} wanted to say hello to {friend} ."),
        sentence("At last {he} said hello to {friend!} ."),
    ),
    "gift": (
        any_of("{hero} gave a {gift} to {receiver} .", "{He} gave a {gift} to {receiver} ."),
        sentence("Who had the {gift!} now ? {receiver!} had it ."),
    ),
    "treasure": (
        any_of("{hero} hid a {treasure} in the {spot} .", "{He} hid a {treasure} in the {spot} ."),
        sentence("Then {hero!} looked for the {treasure!} . It was still in the {spot!} ."),
    ),
}

EVENT = any_of(
    "The sun was shining .",
    "It was raining in the {place} .",
    "A cold wind came from the sea .",
    "{He} walked to the {place} .",
    "{He} sat under a tree and sang a song .",
    "{He} was {mood} because the {animal} was {mood} .",
    "{He} counted {number} {many} near the {place} .",
    "{He} thought about {topic} , but {he} was too {mood} .",
    "{other} waved from the {place} .",
    "{other} was looking for a {object} .",
    "{other} and {another} played in the {place} .",
    '" Where is my {object} ? " asked {other} .',
    '" Good {greeting} ! " said {other} .',
    "The old clock struck {number} .",
    "{He} bought some {food} and a cup of tea .",
    "Nobody knew why the {animal} was so {mood} .",
    "A {animal} slept near the {place} .",
    "The {animal} ran after a {animal} .",
)

CLOSING = any_of("Everyone was happy .", "It was a good day .", "And that was the end .")


def story(n_facts: int, n_events: int) -> Node:
    """The grammar of a story with 1 .. n_facts facts and up to `n_events` events before the questions."""
    few, many = Repeat(EVENT, min(2, n_events)), Repeat(EVENT, n_events)

    def told(facts: tuple[str, ...]) -> Node:
        """What follows when these facts have been told: another fact, or events and the questions."""
        ask = InOrder(many, InAnyOrder([FACTS[fact][1] for fact in facts], few), CLOSING)
        left = n_facts - len(facts)
        if left == 0:
            return ask
        more = InOrder(few, Choose([(1, tell(fact, facts)) for fact in FACTS if fact not in facts]))
        return Choose([(left, more), (1, ask)])

    def tell(fact: str, facts: tuple[str, ...]) -> Node:
        return InOrder(FACTS[fact][0], told((*facts, fact)))

    return InOrder(OPENING, Choose([(1, tell(fact, ())) for fact in FACTS]))


@dataclass(frozen=True)
class Stories(GrammarWorld):
    """Stories with 1 .. `facts` facts, every number equally likely, and up to `events` events before the questions."""

    facts: int = 3
    events: int = 10

    name: ClassVar[str] = "stories"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.facts <= len(FACTS):
            raise UsageError(f"world:stories needs facts in 1 .. {len(FACTS)}, found {self.facts}")
        if not 0 <= self.events <= 1000:
            raise UsageError(f"world:stories needs events in 0 .. 1000, found {self.events}")

    def root(self) -> Node:
        return story(self.facts, self.events)
