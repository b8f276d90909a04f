"""Site: a part of a model that has something to show, and what its positions are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from torch import nn

from regard.core.trace import plain
from regard.errors import UsageError
from regard.explain.reading import Reading, Side
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
    for name, module in plain(reading.model).named_modules():
        kind = KINDS.get(type(module))
        if kind is None or (kinds and kind not in kinds):
            continue
        first, main = reading.sides[0], reading.main
        rows = first if name.startswith("encoder.") else main
        if kind == "pooling" and len(reading.sides) == 2:
            rows = first
        columns = first if kind == "cross" else rows
        backward = ".future." in f".{name}."
        # Both directions of a layer have its number.
        counts[kind, rows.name] += not backward
        found.append(Site(name, kind, module, rows, columns, counts[kind, rows.name], backward))
    return found


def site_at(found: list[Site], layer: int | None, side: str | None = None) -> Site:
    """The site of a layer, from 1 on, and of a side; the last one when none is asked for."""
    names = list(dict.fromkeys(site.rows.name for site in found))
    if side is not None and side not in names:
        raise UsageError(f"there is no {found[0].kind} over the side {side!r}; there is over {' and '.join(names)}")
    chosen = [site for site in found if site.rows.name == (side or names[-1])]
    if layer is None:
        return chosen[-1]
    if not 1 <= layer <= len(chosen):
        raise UsageError(f"layer {layer}: the model has layers 1 to {len(chosen)} of {found[0].kind}")
    return chosen[layer - 1]
