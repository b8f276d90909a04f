"""Site: a part of a model that has something to show, and what its positions are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from regard.core.mixer import Mixer, Shows
from regard.core.tap import plain
from regard.errors import UsageError
from regard.explain.mechanism import Mechanism, mechanism_of
from regard.tasks.reading import Reading, Side

GATES = ("gate", "keep")


@dataclass(frozen=True)
class Site:
    """name      its dotted name in the model, which those of its taps begin with.
    kind      what such a part is called.
    rows      the side whose positions it works on.
    columns   the side that it looks at: the same one, or that of the memory.
    layer     its number among those of its kind on the same side, from 1 on.
    backward  whether it reads from the last position to the first.
    """

    name: str
    kind: str
    module: Any
    rows: Side
    columns: Side
    layer: int
    backward: bool = False

    @property
    def mechanism(self) -> Mechanism | None:
        """What is known of its type, where somebody has registered it."""
        return mechanism_of(self.module)

    @property
    def shows(self) -> frozenset[str]:
        return shown_by(self.module)

    def taps(self, *meanings: str) -> dict[str, str]:
        """The names in the model of its taps that mean one of these, by their own names."""
        declared: Shows = getattr(self.module, "shows", {})
        within = f"{self.name}." if self.name else ""  # a model may be its only site
        return {own: f"{within}{own}" for own, meaning in declared.items() if meaning in meanings}

    def tap(self, meaning: str) -> str:
        """The name in the model of its tap that means this."""
        found = self.taps(meaning)
        if not found:
            raise UsageError(f"{self.kind} shows no {meaning} of its own")
        return next(iter(found.values()))

    def called(self, tap: str) -> str:
        """What a tap of its is called."""
        known = self.mechanism
        return (known.taps if known else {}).get(tap, tap.replace("_", " "))


def shown_by(part: nn.Module) -> frozenset[str]:
    """What can be shown of one part of a model: what its taps mean, and what is worked out for its type.

    gate   it has gates of any kind.
    state  its state after each token is known; units: and is seen by a tap, with no gate that rules it.
    steps  its numbers are worked out.
    """
    found: set[str] = set(getattr(part, "shows", {}).values())
    if found & set(GATES):
        found.add("gate")
    elif "state" in found:
        found.add("units")
    known = mechanism_of(part)
    if known is not None:
        found |= known.shows
        found |= {name for name, worked in (("steps", known.steps), ("state", known.states)) if worked}
    return frozenset(found)


def is_site(part: nn.Module) -> bool:
    """Whether a part moves something between positions itself, or has something to show of that."""
    if getattr(part, "shows", None) or mechanism_of(part) is not None:
        return True
    inner = (one for one in part.modules() if one is not part)
    return isinstance(part, Mixer) and not part.composed and not any(isinstance(one, Mixer) for one in inner)


def kind_of(part: nn.Module) -> str:
    """What a part is called in views."""
    known = mechanism_of(part)
    return type(part).__name__.lower() if known is None else known.kind


def sites(reading: Reading, *shown: str) -> list[Site]:
    """Every site that shows one of these, in the order of the model; every one when nothing is named."""
    found, counts = [], Counter()
    first, whole = reading.sides[0], plain(reading.model)
    for name, module in whole.named_modules():
        shows = shown_by(module)
        if not is_site(module) or (shown and not shows & set(shown)):
            continue
        kind = kind_of(module)
        rows = side_at(reading, name)
        if "pooling" in shows and len(reading.sides) == 2:
            rows = first
        columns = first if "alignment" in shows else rows
        backward = ".future." in f".{name}."
        # Both directions of a layer have its number.
        counts[kind, rows.name] += not backward
        found.append(Site(name, kind, module, rows, columns, counts[kind, rows.name], backward))
    return found


def side_at(reading: Reading, name: str) -> Side:
    """The side whose positions a part of the model works on."""
    whole = plain(reading.model)
    # Where no source is read first both sides are one sequence, which the first side then names.
    reads_source = getattr(whole, "encoder", None) is not None or hasattr(whole, "given")
    return reading.main if reads_source and not name.startswith("encoder.") else reading.sides[0]


def directions(found: Sequence[Site], layer: int | None, side: str | None) -> list[Site]:
    """The sites of one layer, from 1 on: one, or one for each direction; of the last layer when none is asked for."""
    names = list(dict.fromkeys(site.rows.name for site in found))
    if side is not None and side not in names:
        raise UsageError(f"there is no {found[0].kind} over the side {side!r}; there is over {' and '.join(names)}")
    there = [site for site in found if site.rows.name == (side or names[-1])]
    last = max(site.layer for site in there)
    if layer is not None and not 1 <= layer <= last:
        raise UsageError(f"layer {layer}: the model has layers 1 to {last} of {there[0].kind}")
    return [site for site in there if site.layer == (layer or last)]


def site_at(found: Sequence[Site], layer: int | None, side: str | None = None) -> Site:
    """The site of a layer and of a side; of a layer in both directions the one that reads from the first position."""
    return directions(found, layer, side)[0]


def on_side(reading: Reading, side: str | None) -> list[Site]:
    """Every layer of self-attention over one side; over the last one that has any when none is named."""
    found = sites(reading, "attention")
    name = site_at(found, None, side).rows.name
    return [site for site in found if site.rows.name == name]
