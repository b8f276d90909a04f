"""Notes of a witness: a few facts are told, little things happen, and every fact is asked for, near and far.

    saw Ben found kite What? kite rain bells wind Who? Ben What? kite wind wind rain bells What? kite Who? Ben

A fact is told in one word of its kind (a name, a thing, a place, a colour), which nothing else uses, and is asked for
by the question of its kind: half of the time soon after it was told, and then twice more. What happens in between are
0, 1, 2, 4 and so on words, up to some number, all equally likely: who forgets does so by degrees.
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
    one_of,
)
from regard.data.worlds.grammar_world import GrammarWorld
from regard.errors import UsageError

# Each fact: the word before it, those that it may be, and its question.
FACTS = {
    "who": ("saw", "Anna Ben Clara David Emma Felix Grace Henry", "Who?"),
    "what": ("found", "kite lamp book violin letter coin drum ring", "What?"),
    "where": ("near", "kitchen garden school market library harbour forest tower", "Where?"),
    "colour": ("door", "red blue green yellow white black silver golden", "Colour?"),
    "when": ("at", "one two three four five six seven eight", "When?"),
    "mood": ("seemed", "happy tired hungry curious sad proud brave quiet", "Mood?"),
    "animal": ("heard", "dog goose horse owl cat frog cow crow", "Animal?"),
    "food": ("ate", "bread apples soup cheese honey nuts plums fish", "Food?"),
    "job": ("met", "baker sailor painter doctor teacher farmer tailor singer", "Job?"),
    "cloth": ("wore", "coat hat scarf shawl boots gloves cape apron", "Cloth?"),
}
EVENTS = "rain wind bells music voices silence"
NOTHING = Text("")
SOON, LATER = 1, 4  # events before the first questions


def notes(n_facts: int, n_events: int) -> Node:
    """The grammar of notes with so many facts and up to so many events before a round of questions."""
    event = one_of(EVENTS)

    def doubling(most: int) -> Node:
        """0, 1, 2, 4 and so on events, and `most`."""
        lengths = sorted({0, most, *(2**power for power in range(most.bit_length()))})
        return Choose([(1, InOrder(*[event] * length)) for length in lengths])

    def told(name: str) -> Node:
        """A fact, which may be asked for soon after."""
        soon = InOrder(doubling(min(SOON, n_events)), asked(name))
        return InOrder(Text(FACTS[name][0]), Pick(name, FACTS[name][1]), Choose([(1, NOTHING), (1, soon)]))

    def asked(name: str) -> Node:
        return InOrder(Text(FACTS[name][2]), Say(name, recall=True))

    names = list(FACTS)[:n_facts]
    every = InAnyOrder([told(name) for name in names], NOTHING)
    rounds = [
        part
        for most in (min(LATER, n_events), n_events)
        for part in (doubling(most), InAnyOrder(list(map(asked, names)), NOTHING))
    ]
    return InOrder(every, *rounds)


@dataclass(frozen=True)
class Witness(GrammarWorld):
    """Notes of `facts` facts, and up to `events` events before each round of questions; no more than 123 words."""

    facts: int = 7
    events: int = 56

    name: ClassVar[str] = "witness"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.facts <= len(FACTS):
            raise UsageError(f"world:witness needs facts in 1 .. {len(FACTS)}, found {self.facts}")
        if not 0 <= self.events <= 1000:
            raise UsageError(f"world:witness needs events in 0 .. 1000, found {self.events}")

    def root(self) -> Node:
        return notes(self.facts, self.events)
