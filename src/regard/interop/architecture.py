"""What is known of an architecture of another program: its config as one of ours, and the table of its weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from regard.core.config import Config
from regard.interop.config_keys import Keys
from regard.interop.weight_table import Line

Names = Collection[str]


@dataclass(frozen=True)
class Plan:
    """How a model becomes one of ours.

    model     the registered model that it is one of, which also tells its task.
    config    all of it, as a tree of ours.
    table     its weights. n_layers: how often those of a layer come.
    prefix    what all their names begin with but those of a bare model's file, which lack it.
    copies    their names of tensors that are given twice, each with the name of the first.
    unused    patterns of tensors that are no part of what is computed.
    length    positions that it was trained on.
    lost      what of it has no place in ours, for people.
    """

    model: str
    config: Config
    table: Sequence[Line]
    n_layers: int
    prefix: str = ""
    copies: dict[str, str] = field(default_factory=dict)
    unused: Sequence[str] = ()
    length: int = 1024
    lost: Sequence[str] = ()


@dataclass(frozen=True)
class Architecture:
    """name: `model_type` of their config. plan: of their config, and of the names of the tensors that there are.

    has_encoder  it reads one text and writes another.
    """

    name: str
    plan: Callable[[Keys, Names], Plan]
    summary: str
    has_encoder: bool = False
