"""Site: a part of a model that has something to show, and what its positions are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from regard.core.trace import plain
from regard.errors import UsageError
from regard.layers.pooling import Pooling
from regard.mixers.attention import SelfAttention
from regard.mixers.cross import CrossAttention
from regard.mixers.gru import Gru
from regard.mixers.lstm import Lstm
from regard.mixers.mamba import Mamba
from regard.mixers.mean import RunningMean
from regard.mixers.rnn import Rnn
from regard.mixers.s4d import S4d
from regard.mixers.senses import Senses
from regard.mixers.ssd import Ssd
from regard.mixers.window import Window
from regard.tasks.reading import Reading, Side

KINDS: dict[type[nn.Module], str] = {
    SelfAttention: "attention",
    CrossAttention: "cross",
    Rnn: "rnn",
    Lstm: "lstm",
    Gru: "gru",
    S4d: "s4d",
    Mamba: "mamba",
    Ssd: "ssd",
    Senses: "senses",
    RunningMean: "mean",
    Window: "window",
    Pooling: "pooling",
}


@dataclass(frozen=True)
class Site:
    """name      its dotted name in the model, which those of its taps begin with.
    kind      as in KINDS.
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


def sites(reading: Reading, *kinds: str) -> list[Site]:
    """Every site of those kinds in the order of the model; of all kinds when none is named."""
    found, counts = [], Counter()
    first, main = reading.sides[0], reading.main
    whole = plain(reading.model)
    # Without an encoder both sides are read as one sequence, which the first side then names.
    own = main if getattr(whole, "encoder", None) is not None else first
    for name, module in whole.named_modules():
        kind = KINDS.get(type(module))
        if kind is None or (kinds and kind not in kinds):
            continue
        rows = first if name.startswith("encoder.") else own
        if kind == "pooling" and len(reading.sides) == 2:
            rows = first
        columns = first if kind == "cross" else rows
        backward = ".future." in f".{name}."
        # Both directions of a layer have its number.
        counts[kind, rows.name] += not backward
        found.append(Site(name, kind, module, rows, columns, counts[kind, rows.name], backward))
    return found


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
