"""Notes of a witness: many facts are told, and every fact may be asked for again, soon or much later.

    saw Ben ate soup saw? Ben rode tram ate? soup ate? soup found kite rode? tram saw? Ben

A fact is told in one word of its kind (a name, a food, a thing), which no other kind uses, and asked for by the
question of its kind. Half of the turns ask for one of the few facts that were said last; the others are of any kind: a
new fact is told, one that was told is asked for. So some facts are said again and again, and others not for a hundred
words. Who keeps every word recalls all of them. Who carries a state of one size has to hold more and more facts in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from regard.data.worlds.probe import Probe, Turn, Walk, uniform

# The word that tells a fact, and those that it may be.
FACTS = {
    "saw": "Anna Ben Clara David Emma Felix Grace Henry",
    "found": "kite lamp book violin letter coin drum ring",
    "near": "kitchen garden school market library harbour forest tower",
    "door": "red blue green yellow white black silver golden",
    "at": "one two three four five six seven eight",
    "seemed": "happy tired hungry curious sad proud brave quiet",
    "heard": "dog goose horse owl cat frog cow crow",
    "ate": "bread apples soup cheese honey nuts plums fish",
    "met": "baker sailor painter doctor teacher farmer tailor singer",
    "wore": "coat hat scarf shawl boots gloves cape apron",
    "sky": "rain snow fog hail storm sun frost clouds",
    "drank": "tea milk water juice cider coffee cocoa wine",
    "rode": "train boat cart bicycle sledge tram ship bus",
    "played": "chess cards tennis football dominoes draughts bowls darts",
    "grew": "roses tulips lilies daisies violets poppies ivy thistles",
    "in": "January February March April May June July August",
    "cut": "wood stone glass iron paper wool silk clay",
    "danced": "waltz polka tango jig reel minuet samba foxtrot",
    "crossed": "river bridge meadow desert valley hill lake swamp",
    "read": "poem novel diary fable sonnet report notice recipe",
    "drew": "circle square triangle star cross arrow spiral heart",
    "built": "wall hut fence barn tent raft shed dam",
    "lost": "key purse watch comb needle button brush pipe",
    "studied": "history algebra music latin biology law physics drama",
}
SOON = 4  # facts said last, for one of which half of the turns ask
ASKED = "?"


@dataclass(frozen=True)
class Witness(Probe):
    """`turns` turns of two words each, about `facts` kinds of facts."""

    train: int = 16_000
    facts: int = 20
    turns: int = 48

    name: ClassVar[str] = "witness"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(1 <= self.facts <= len(FACTS), f"facts in 1 .. {len(FACTS)}, found {self.facts}")
        self.require(1 <= self.turns <= 1000, f"turns in 1 .. 1000, found {self.turns}")

    @property
    def kinds(self) -> list[str]:
        return list(FACTS)[: self.facts]

    @property
    def vocabulary(self) -> list[str]:
        values = [word for kind in self.kinds for word in FACTS[kind].split(" ")]
        return [*self.kinds, *(kind + ASKED for kind in self.kinds), *values]

    def walk(self) -> Walk:
        said: dict[str, tuple[str, int]] = {}  # of each kind its value and place, that said last at the end
        for turn in range(self.turns):
            kind = yield Turn(self._kinds(said))
            if kind.endswith(ASKED):
                value, before = said.pop(kind.removesuffix(ASKED))
                yield Turn({value: 1.0}, before)
            else:
                value = yield Turn(uniform(FACTS[kind].split(" ")))
            said[kind.removesuffix(ASKED)] = (value, 2 * turn + 1)

    def _kinds(self, said: dict[str, tuple[str, int]]) -> dict[str, float]:
        """The chances of what a turn is about: a question of a kind that was said, else the word that tells it."""
        last = list(said)[-SOON:]
        of_any = (0.5 if last else 1.0) / self.facts
        chances = {kind + ASKED if kind in said else kind: of_any for kind in self.kinds}
        for kind in last:
            chances[kind + ASKED] += 0.5 / len(last)
        return chances
