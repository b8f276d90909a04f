"""Calculation: what a mechanism is worked out from: a site, what its taps saw, and the position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from regard.core.tap import Trace
from regard.explain.look import Options
from regard.explain.notation import tex_of
from regard.explain.site import Site
from regard.explain.view import Note, Numbers
from regard.explain.weights import as_array
from regard.tasks.reading import Reading

READABLE = 16


@dataclass(frozen=True)
class Calculation:
    """place   the index of the position in the order in which the site reads.
    trace   what the taps saw.
    options of the look.
    """

    site: Site
    place: int
    trace: Trace
    options: Options

    @cached_property
    def seen(self) -> dict[str, np.ndarray]:
        """Arrays by the tap's own name, the first of the batch, in float64, in the order in which the site reads."""
        return {name.rpartition(".")[2]: as_array(self.trace[name]) for name in self.trace}

    @property
    def input(self) -> np.ndarray:
        """What the site read, (T, D)."""
        return self.seen["received"]

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the positions, in the order in which the site reads them."""
        return self.site.rows.labels[::-1] if self.site.backward else self.site.rows.labels

    @property
    def label(self) -> str:
        return self.labels[self.place]

    def short(self, vectors: np.ndarray) -> np.ndarray:
        """Of each vector, (..., K), as many numbers as are to be read."""
        return vectors[..., : self.options.reduce or None]

    def cut(self, width: int) -> str:
        """What was left out for reading."""
        shown = min(self.options.reduce or width, width)
        return f"the first {shown} of {width} numbers; what follows uses all" if shown < width else ""


def calculation(reading: Reading, site: Site, place: int, options: Options) -> Calculation:
    """What the taps of a site see of a reading; `place` is an index of the text."""
    trace = reading.trace(f"{site.name}.*")
    return Calculation(site, len(site.rows) - 1 - place if site.backward else place, trace, options)


def equation(text: str) -> Note:
    """An equation by itself."""
    return Note(text=text, style="equation", tex=tex_of(text))


def rows_of(names: Sequence[str], values: Sequence[np.ndarray], **about: Any) -> Numbers:
    """A row for each name."""
    return Numbers(values=np.stack(list(values)), rows=list(names), **about)


def heaviest(weights: np.ndarray, most: int = READABLE) -> np.ndarray:
    """The places of the largest weights, in the order of the text."""
    return np.sort(np.argsort(weights)[::-1][:most])
