"""Mechanism: what explain knows of a type of mixer beyond what the mixer declares of itself.

    register_mechanism(Lstm, Mechanism("lstm", "an LSTM", title="LSTM", steps=lstm, ...))

A mixer that nobody has registered is looked at by what it declares (`Mixer.shows`) and by the looks that need to know
nothing of it. The mechanism of a new mixer is one call like this one, also from outside the package.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from regard.core.plugin import load_entry_points

if TYPE_CHECKING:
    from regard.core.tap import Trace
    from regard.explain.mechanisms.calculation import Calculation
    from regard.explain.site import Site
    from regard.explain.view import Panel
    from regard.tasks.reading import Reading

# The files in `regard.explain.mechanisms` that register something.
FILES = ("attention", "recurrence", "state_space", "plain", "fitted")


@dataclass(frozen=True, eq=False)
class Worked:
    """A matrix on the way to an answer. made_of: names of others that come before; none where it is made of the input.

    rows, columns  what they are called; no rows where they are the positions of the input.
    """

    name: str
    values: np.ndarray
    columns: Sequence[str] = ()
    rows: Sequence[str] = ()
    made_of: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True)
class Mechanism:
    """kind    what a part of this type is called in views.
    named   the same in a sentence, such as "an LSTM".
    title   of its steps.
    steps   every number of it at one position; None where nobody has worked it out.
    states  the state after each token, (T, ...), where no tap shows it.
    kept    the share of its state that each unit keeps at each token, (T, units), where no gate is that share.
    taps    what is seen of it is called, by the names of its taps.
    about   what there is to know of its gates, of a module.
    order   why it feels the order of what it reads, of a module; empty where it does not.
    shows   what can be shown of this type alone, beside what its taps mean.
    parts   of a reading the matrices that its answer is made of, where a model is one such part and has no taps.
    rank    of which mechanism makes a model what it is: steps are worked out for the lowest.
    """

    kind: str
    named: str = ""
    title: str = ""
    steps: Callable[[Calculation], list[Panel]] | None = None
    states: Callable[[Site, Trace], Tensor] | None = None
    kept: Callable[[Site, Trace], Tensor] | None = None
    taps: Mapping[str, str] = field(default_factory=dict)
    about: Callable[[Any], str] | None = None
    order: Callable[[Any], str] | None = None
    shows: frozenset[str] = frozenset()
    parts: Callable[[Reading], Sequence[Worked]] | None = None
    rank: int = 0


_mechanisms: dict[type[nn.Module], Mechanism] = {}


def register_mechanism(part: type[nn.Module], mechanism: Mechanism) -> None:
    """Say what there is to know of a type of mixer, and of those that are made from it."""
    _mechanisms[part] = mechanism


def mechanism_of(module: nn.Module) -> Mechanism | None:
    """What is known of a part of a model, by its type or that which it is made from."""
    _load()
    return next((_mechanisms[part] for part in type(module).__mro__ if part in _mechanisms), None)


@cache
def _load() -> None:
    """Those of the package, and those that installed ones announce together with their looks."""
    for name in FILES:
        importlib.import_module(f"regard.explain.mechanisms.{name}")
    load_entry_points("regard.looks")
