"""Layout: which characters of a text are for training, for validation and for the test.

    hash:0.1   about a tenth, chosen by the SHA-256 of each document's text. A document keeps its side when others come
               or go. A single document is cut into blocks at line ends, and the blocks are chosen; neighbours on one
               side stay joined, as one document.
    tail:0.1   the last tenth; of a single document the last tenth of its characters.
    the test   the last part of what is held out.

A document (or a block) and its duplicates always fall on the same side, that of the first of them.

One reading of the text (`scan`) measures it and is all that is needed to lay it out; a second one (`parted`) gives each
part its documents.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from regard.data.split import chosen
from regard.data.stream import Piece
from regard.errors import DataError

TRAIN, VALID, TEST = 0, 1, 2
BLOCK = 2000
# Small texts get smaller blocks, so that there are about twenty.
SMALLEST_BLOCK = 100
SMALLEST_TEXT = 2 * SMALLEST_BLOCK
AT_ONCE = 1 << 16
CHANGED = "the text changed while it was read: leave its files alone until training has begun"


class Passage(NamedTuple):
    """A piece of a document and the side that it is on."""

    side: int
    text: str
    ends: bool


@dataclass(frozen=True, eq=False)
class Units:
    """What is dealt out: characters of each, and the first 64 bits of its SHA-256."""

    sizes: np.ndarray
    digests: np.ndarray

    def __len__(self) -> int:
        return len(self.sizes)

    def kept(self, which: np.ndarray) -> Units:
        return Units(self.sizes[which], self.digests[which])


@dataclass(frozen=True, eq=False)
class Scan:
    """A text as it was measured: its documents, and the blocks of the first of them."""

    documents: Units
    blocks: Units


@dataclass(frozen=True, eq=False)
class Layout:
    """Documents one after the other.

    stops  (n,) int64, where each ends, in characters from the beginning of the text.
    sides  (n,) uint8, which part each belongs to.
    """

    stops: np.ndarray
    sides: np.ndarray


@dataclass
class _Ruler:
    """Sizes and digests while they are taken."""

    sizes: array[int] = field(default_factory=lambda: array("q"))
    digests: array[int] = field(default_factory=lambda: array("Q"))

    def add(self, size: int, digest: bytes) -> None:
        self.sizes.append(size)
        self.digests.append(int.from_bytes(digest[:8], "big"))

    def units(self) -> Units:
        return Units(np.frombuffer(self.sizes, np.int64), np.frombuffer(self.digests, np.uint64))


def scan(pieces: Iterable[Piece]) -> Scan:
    """Measure a text."""
    documents, blocks = _Ruler(), _Ruler()
    blocking: _Blocking | None = _Blocking(blocks)
    size, digest = 0, hashlib.sha256()
    for text, ends in pieces:
        size += len(text)
        digest.update(text.encode())
        if blocking is not None:
            blocking.add(text)
        if ends:
            documents.add(size, digest.digest())
            size, digest = 0, hashlib.sha256()
            if blocking is not None:
                blocking.finish()
                blocking = None
    return Scan(documents.units(), blocks.units())


def layout(measured: Scan, rule: tuple[str, float] | None, test: float = 0.0, side: int = TRAIN) -> Layout:
    """The layout by a rule, ("hash" or "tail", fraction); without one, everything is on `side`.

    test  the part of what is held out that is set apart.
    """
    units = measured.documents
    if rule is None:
        sides = np.full(len(units), side, np.uint8)
    elif rule[0] == "tail":
        units, sides = _tail(units, rule[1])
    else:
        units = units if len(units) > 1 else _enough(measured.blocks)
        sides = chosen(units.digests, *rule).astype(np.uint8)
    if test:
        units, sides = _set_apart(units, sides, test)
    is_cut = len(measured.documents) == 1
    last = np.append(sides[1:] != sides[:-1], True) if is_cut else np.ones(len(units), bool)
    return Layout(np.cumsum(units.sizes)[last], sides[last])


def parted(pieces: Iterable[Piece], laid: Layout) -> Iterator[Passage]:
    """Every document of the layout, in its order, with its side."""
    documents = _each(laid)
    position, stop, side = 0, 0, TRAIN
    is_open = False
    for text, _ in pieces:
        start = 0
        while start < len(text) or not text:
            if not is_open:
                stop, side = next(documents, (-1, TRAIN))
                if stop < 0:
                    raise DataError(CHANGED)
            taken = min(len(text) - start, stop - position)
            position, start = position + taken, start + taken
            is_open = position < stop
            yield Passage(side, text[start - taken : start], not is_open)
            if not text:
                break
    if is_open or next(documents, None) is not None:
        raise DataError(CHANGED)


def shared(held: Units, seen: Units) -> int:
    """How many of the held-out units also occur among those of the training part, word for word."""
    return int(np.isin(held.digests, seen.digests).sum())


def blocks(text: str, size: int) -> list[str]:
    """The text in parts of `size` to 1.5 x `size` characters that end at a line, else at a space, else anywhere."""
    parts = []
    start = 0
    while len(text) - start > size * 3 // 2:
        low, high = start + size, start + size * 3 // 2
        ends = (text.find(mark, low - 1, high) for mark in ("\n", " "))
        stop = next((end + 1 for end in ends if end >= 0), low)
        parts.append(text[start:stop])
        start = stop
    return [*parts, text[start:]]


class _Blocking:
    """Measures the blocks of a document that comes in pieces."""

    def __init__(self, ruler: _Ruler) -> None:
        self.ruler = ruler
        self.waiting = ""
        self.is_long = False

    def add(self, text: str) -> None:
        self.waiting += text
        self.is_long = self.is_long or len(self.waiting) > 20 * BLOCK
        if self.is_long:
            *found, self.waiting = blocks(self.waiting, BLOCK)
            self._measure(found)

    def finish(self) -> None:
        size = BLOCK if self.is_long else min(BLOCK, max(SMALLEST_BLOCK, len(self.waiting) // 20))
        self._measure(blocks(self.waiting, size))

    def _measure(self, found: list[str]) -> None:
        for block in found:
            self.ruler.add(len(block), hashlib.sha256(block.encode()).digest())


def _enough(found: Units) -> Units:
    n_chars = int(found.sizes.sum())
    if n_chars < SMALLEST_TEXT:
        raise DataError(
            f"the text has {n_chars} characters, too few to hold some out for validation: "
            f"the smallest amount is {SMALLEST_TEXT} (or give validation text of its own)"
        )
    return found


def _tail(units: Units, fraction: float) -> tuple[Units, np.ndarray]:
    """The first part, 0, and the rest, 1. Of several units none is cut."""
    if len(units) == 1:
        return _cut(units, fraction)
    return units, chosen(units.digests, "tail", fraction, units.sizes).astype(np.uint8)


def _cut(units: Units, fraction: float) -> tuple[Units, np.ndarray]:
    """One unit as two, cut between characters."""
    size = int(units.sizes[0])
    border = int(size * (1 - fraction))
    if not 0 < border < size:
        smallest = int(max(1 / fraction, 1 / (1 - fraction))) + 1
        raise DataError(f"the text has {size} characters, too few for tail:{fraction}; give at least {smallest}")
    return Units(np.array([border, size - border]), np.zeros(2, np.uint64)), np.array([0, 1], np.uint8)


def _set_apart(units: Units, sides: np.ndarray, share: float) -> tuple[Units, np.ndarray]:
    """The same with the last part of what is held out on the side of the test."""
    held = np.flatnonzero(sides == VALID)
    if len(np.unique(units.digests[held])) > 1:
        sides = sides.copy()
        sides[held] = VALID + _tail(units.kept(held), share)[1]
        return units, sides
    # One text is all that is held out, perhaps more than once: each is cut at the same place.
    halves = _cut(units.kept(held[:1]), share)[0]
    sizes = [halves.sizes if side == VALID else [size] for size, side in zip(units.sizes, sides, strict=True)]
    parts = [[VALID, TEST] if side == VALID else [side] for side in sides]
    cut = np.concatenate(sizes).astype(np.int64)
    return Units(cut, np.zeros(len(cut), np.uint64)), np.concatenate(parts).astype(np.uint8)


def _each(laid: Layout) -> Iterator[tuple[int, int]]:
    """Stop and side of every document, few of them as Python numbers at a time."""
    for first in range(0, len(laid.stops), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        yield from zip(laid.stops[part].tolist(), laid.sides[part].tolist(), strict=True)
