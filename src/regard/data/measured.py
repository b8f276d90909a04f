"""MeasuredText: a text that was read once and laid out, to be read again part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regard.data import layout
from regard.data.prepared import PARTS
from regard.data.stream import Cutter, TextStream


@dataclass(frozen=True, eq=False)
class MeasuredText:
    """A text that was measured and laid out."""

    stream: TextStream
    scan: layout.Scan
    laid: layout.Layout

    def parted(self, part: str) -> Iterator[layout.Passage]:
        return layout.parted(self.stream.pieces(part), self.laid)

    @property
    def sizes(self) -> np.ndarray:
        """Characters of each part."""
        sizes = np.zeros(len(PARTS), np.int64)
        np.add.at(sizes, self.laid.sides, np.diff(self.laid.stops, prepend=0))
        return sizes

    @property
    def n_chars(self) -> int:
        return int(self.laid.stops[-1]) if len(self.laid.stops) else 0

    def training_texts(self, sees_words: bool, sample: int | None = None) -> Iterator[str]:
        """The training part in pieces that a tokenizer may learn from; of a longer one as many as make up the sample.

        They are taken at even distances: a book at the end of a library is heard as much as one at its beginning.
        """
        cutter = Cutter() if sees_words else None
        total = int(self.sizes[layout.TRAIN])
        share = 1.0 if sample is None or total <= sample else sample / total
        seen = taken = 0
        for side, text, ends in self.parted("learning tokens"):
            if side != layout.TRAIN:
                continue
            ready = text if cutter is None else cutter.add(text, ends)
            if ready and taken <= share * seen:
                yield ready
                taken += len(ready)
            seen += len(ready)
