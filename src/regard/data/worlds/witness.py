"""Short reports of a witness: a few facts are told, little things happen, and then every fact is asked for.

    I saw Ben . There was a kite . Nobody spoke . What ? kite . A bell rang . Somebody sang . Who ? Ben . What ? kite .

A fact is told in one word of its kind (a name, a thing, a place, a colour), which nothing else uses, and is asked for
by the question of its kind, at the end and half of the time soon after it was told. How much happens in between is 0,
1, 2, 4 and so on, all equally likely: near facts are asked for and far ones, so that who forgets does so by degrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.grammar import (
    Choose,
    InAnyOrder,
    InOrder,
    Node,
    Pick,
    Say,
    Text,
)
from regard.data.worlds.grammar_world import GrammarWorld
from regard.errors import UsageError

# Each fact: how it begins, its words, and its question.
FACTS = {
    "who": ("I saw", "Anna Ben Clara David Emma Felix Grace Henry", "Who"),
    "what": ("There was a", "kite lamp book violin letter coin drum ring", "What"),
    "where": ("It was in the", "kitchen garden school market library harbour forest tower", "Where"),
    "colour": ("The door was", "red blue green yellow white black silver golden", "Colour"),
    "when": ("It was about", "one two three four five six seven eight", "When"),
    "weather": ("Outside it was", "sunny rainy windy foggy snowy stormy cold warm", "Weather"),
}
NOTHING = Text("")
EVENTS = (
    "A bell rang .",
    "Somebody sang .",
    "Then a dog barked .",
    "Nobody spoke .",
    "A car went by .",
    "Time passed .",
)


def report(n_facts: int, n_events: int) -> Node:
    """The grammar of a report with so many facts and up to so many events before the questions."""
    event = Choose([(1, Text(words)) for words in EVENTS])

    def doubling(most: int) -> Node:
        """0, 1, 2, 4 and so on events."""
        lengths = [0, *(2**power for power in range(most.bit_length()))]
        return Choose([(1, InOrder(*[event] * length)) for length in lengths])

    def told(name: str) -> Node:
        """A fact, which may be asked for soon after."""
        tell = InOrder(Text(FACTS[name][0]), Pick(name, FACTS[name][1]), Text("."))
        return InOrder(tell, doubling(min(2, n_events)), Choose([(1, NOTHING), (1, asked(name))]))

    def asked(name: str) -> Node:
        return InOrder(Text(f"{FACTS[name][2]} ?"), Say(name, recall=True), Text("."))

    names = list(FACTS)[:n_facts]
    few = Choose([(1, NOTHING), (1, event)]) if n_events else NOTHING
    every = InAnyOrder([told(name) for name in names], NOTHING)
    return InOrder(every, doubling(n_events), InAnyOrder([asked(name) for name in names], few))


@dataclass(frozen=True)
class Witness(GrammarWorld):
    """Reports of `facts` facts, and up to `events` events before the questions."""

    facts: int = 4
    events: int = 8

    name: ClassVar[str] = "witness"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.facts <= len(FACTS):
            raise UsageError(f"world:witness needs facts in 1 .. {len(FACTS)}, found {self.facts}")
        if not 0 <= self.events <= 1000:
            raise UsageError(f"world:witness needs events in 0 .. 1000, found {self.events}")

    def root(self) -> Node:
        return report(self.facts, self.events)
