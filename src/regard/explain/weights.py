"""Weights of attention as a view wants them: of one layer, one head or the mean, by words, without the sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from regard.core.tap import apart, plain, record, resting
from regard.errors import UsageError
from regard.explain.look import Options, layer_control, numbers, side_control
from regard.explain.site import Site, site_at, sites
from regard.explain.view import Control
from regard.tasks.reading import END, START, Reading
from regard.tasks.word import Groups, merged

T = TypeVar("T")
CAVEAT = (
    "A weight says where a head looked, not what it made of it: a large weight on a small value moves little, heads of "
    "later layers look at vectors that are mixed already, and a first token may be looked at for want of anything else."
)


@dataclass(frozen=True)
class Weights:
    """matrix      (T, S), each row a sum of 1 unless it was weighed by values.
    rows, columns  labels.
    numbers        what the columns are called; empty where they are words.
    site, heads    where it comes from, and how many heads there are.
    difference     of the outputs on the readable path and on the fast one.
    """

    matrix: np.ndarray
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    numbers: tuple[int, ...]
    site: Site
    heads: int
    difference: float

    @property
    def told(self) -> str:
        return told_of(self.difference)


def weights_of(reading: Reading, meaning: str, options: Options) -> Weights:
    """The weights that `options` ask for: "attention" over the same side, or "alignment" over that of a memory."""
    site = site_at(sites(reading, meaning), options.layer, options.side)
    values_tap = site.tap("values") if options.by_values else None
    seen = reading.glimpse(site.tap(meaning) if values_tap is None else f"{site.name}.*")
    every = as_array(seen[site.tap(meaning)])  # (H, T, S)
    matrix = head_of(every, options.head)
    if values_tap is not None:
        values = as_array(seen[values_tap])  # (S, G, K)
        sizes = np.linalg.norm(values, axis=-1).T  # (G, S)
        sizes = np.repeat(sizes, len(every) // len(sizes), 0)
        matrix = head_of(every * sizes[:, None], options.head)
    rows, columns = site.rows.groups, site.columns.groups
    # Where tokens are fed back, what a decoder looks at while it reads one serves the one that it writes then.
    is_written = meaning == "alignment" and site.rows.labels[:1] == (START,)
    if is_written:
        rows = written(rows)
    if options.hide_sink:
        matrix, columns = without_sink(matrix), shortened(columns)
    if options.merge:
        matrix = merged(matrix, rows, columns)
        return Weights(matrix, rows.labels, columns.labels, (), site, len(every), seen.difference)
    first = 1 if options.hide_sink else 0
    shown = (*site.rows.labels[1:], END) if is_written else site.rows.labels
    numbered = tuple(numbers(site.columns)[first:])
    return Weights(matrix, shown, site.columns.labels[first:], numbered, site, len(every), seen.difference)


def told_of(difference: float) -> str:
    """That something was computed again for being looked at, and how exactly."""
    return f"computed again on the readable path; outputs differ by at most {difference:.1g} from the fast one"


def head_of(every: np.ndarray, head: int | None) -> np.ndarray:
    """One head (T, S) of (H, T, S), from 1 on, or the mean of all."""
    if head is None:
        return every.mean(0)
    if not 1 <= head <= len(every):
        raise UsageError(f"head {head}: the layer has heads 1 to {len(every)}")
    return every[head - 1]


def without_sink(matrix: np.ndarray) -> np.ndarray:
    """The first column left out and each row brought to its old sum; a row that has nothing else stays empty."""
    left = matrix[:, 1:]
    total = left.sum(1, keepdims=True)
    return np.divide(left * matrix.sum(1, keepdims=True), total, out=np.zeros_like(left), where=total > 0)


def shortened(groups: Groups) -> Groups:
    """The same without its first position."""
    members = [tuple(place - 1 for place in part if place) for part in groups.members]
    kept = [(label, part) for label, part in zip(groups.labels, members, strict=True) if part]
    return Groups(tuple(label for label, _ in kept), tuple(part for _, part in kept))


def written(groups: Groups) -> Groups:
    """Words by the steps at which they were written: each a step before it is read."""
    members = [tuple(place - 1 for place in part) for part in groups.members[1:]]
    last = max((part[-1] for part in members), default=-1) + 1
    return Groups((*groups.labels[1:], END), (*members, (last,)))


@torch.no_grad()
def attended(reading: Reading, found: Sequence[Site], keep: Callable[[Tensor], T]) -> tuple[list[T], float]:
    """What `keep` takes of the weights (H, T, T) of each site, and how far the readable path lies from the fast one.

    Only what is kept stays in memory. Weights of a site that reads backwards are turned to the order of the text.
    """
    model, kept = plain(reading.model), []
    fast = reading.fast()
    with resting(model), ExitStack() as stack:
        for site in found:
            kept.append(stack.enter_context(record(model, site.tap("attention"), partial(_one, site, keep))))
        difference = apart(reading.before_head(), fast)
    # A decoder that meets its source before any token has looked at nothing then: the last entry is that of the text.
    return [next(iter(seen.values()))[-1] for seen in kept], difference


def _one(site: Site, keep: Callable[[Tensor], T], weights: Tensor) -> T | None:
    if not weights.numel():
        return None
    return keep(weights[0].flip(1, 2) if site.backward else weights[0])


def controls(reading: Reading, meaning: str, found: Weights, options: Options) -> list[Control]:
    """What can be asked for otherwise."""
    there, side = sites(reading, meaning), found.site.rows.name
    heads = [None, *range(1, found.heads + 1)] if found.heads > 1 else []
    chosen = [
        layer_control(there, side, found.site.layer),
        Control(name="head", label="head (none: mean)", kind="choice", value=options.head, values=heads),
        side_control([site.rows.name for site in there], side),
    ]
    toggles = [("merge", "words", options.merge), ("hide_sink", "without the first", options.hide_sink)]
    if found.site.taps("values"):
        toggles.append(("by_values", "times size of values", options.by_values))
    shown = [control for control in chosen if len(control.values) > 1]
    return shown + [Control(name=name, label=label, kind="toggle", value=value) for name, label, value in toggles]


def as_array(tensor: Any) -> np.ndarray:
    """The first of a batch, in float64."""
    return tensor[0].cpu().double().numpy()
