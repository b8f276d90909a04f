"""Which documents or examples are held out for validation.

hash:0.1   about a tenth, chosen by the SHA-256 of each document's text. A document and its duplicates always fall
           on the same side, and keep their side when others come or go. A single document is cut into blocks at
           line ends, and the blocks are chosen.
tail:0.1   the last tenth; of a single document the last tenth of its characters.
PATH       another file or folder.

Whatever the rule, duplicates fall on one side: `chosen` decides for all of them together, in every split of every task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TypeVar

import numpy as np

from regard.errors import DataError, UsageError

T = TypeVar("T")

BLOCK = 2000
# Small texts get smaller blocks, so that there are about twenty.
SMALLEST_BLOCK = 100
SMALLEST_TEXT = 2 * SMALLEST_BLOCK


def rule(valid: str) -> tuple[str, float] | None:
    """("hash" or "tail", fraction), or None when `valid` is a path."""
    name, colon, number = valid.partition(":")
    if not colon or name not in ("hash", "tail"):
        return None
    try:
        fraction = float(number)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction < 1:
        raise UsageError(f"valid = {valid!r}: the part after {name}: must be a number between 0 and 1, such as 0.1")
    return name, fraction


def places(keys: Iterable[str]) -> np.ndarray:
    """A number for each key that depends on the key alone, (n,) uint64: duplicates are told by equal ones."""
    # Keys that share one by chance, in a billion one pair of them, fall on one side: that does no harm.
    return np.frombuffer(b"".join(hashlib.sha256(key.encode()).digest()[:8] for key in keys), ">u8").astype(np.uint64)


def chosen(found: np.ndarray, name: str, fraction: float, sizes: np.ndarray | None = None) -> np.ndarray:
    """Which of those with these `places` are held out, (n,) bool. At least one is, and at least one is not.

    hash  by the place itself.
    tail  the last of the different ones, each standing where it comes first: so many that they make up the fraction
          by number, or by `sizes`, where one across the border is not held out.
    """
    if len(found) == 0 or found.min() == found.max():
        raise DataError(
            "the text has no two different documents or parts, so nothing can be held out: the smallest amount is two "
            "(or give validation text of its own; of a single text, valid = tail:0.1 takes the end)"
        )
    if name == "hash":
        place = found / 2.0**64
        return ((place < fraction) | (found == found.min())) & (found != found.max())
    group, n_groups = _grouped(found)
    if sizes is None:
        n_held = min(max(1, round(n_groups * fraction)), n_groups - 1)
        return group >= n_groups - n_held
    before = np.concatenate([[0.0], np.cumsum(np.bincount(group, sizes, n_groups))])
    border = int(np.searchsorted(before, before[-1] * (1 - fraction)))
    return group >= min(max(1, border), n_groups - 1)


def here_and_there(found: np.ndarray, fraction: float) -> np.ndarray:
    """A part in even distances, (n,) bool, of those with these `places`; of few it may be none or all."""
    group, n_groups = _grouped(found)
    number = np.arange(n_groups)
    return (np.floor((number + 1) * fraction) > np.floor(number * fraction))[group]


def split(documents: list[str], name: str, fraction: float) -> tuple[list[str], list[str]]:
    """(train, valid) documents by one of the two rules. Of several documents none is cut."""
    if len(documents) == 1:
        return _cut(documents[0], fraction) if name == "tail" else _blocks_by_hash(documents[0], fraction)
    sizes = np.array([len(document) for document in documents])
    return _parted(documents, chosen(places(documents), name, fraction, sizes))


def split_examples(examples: Sequence[T], valid: str, key: Callable[[T], str]) -> tuple[list[T], list[T]]:
    """(train, valid) examples by the rule `valid`. Examples with the same key fall on the same side."""
    held_out = rule(valid)
    if held_out is None:
        raise UsageError(f"valid = {valid!r} is no rule; give hash:0.1, tail:0.1 or a file that exists")
    found = places(map(key, examples))
    if len(found) == 0 or found.min() == found.max():
        raise DataError(
            f"there are {len(examples)} examples, all the same, so nothing can be held out for validation: "
            f"the smallest amount is two different ones (or give a validation file of its own)"
        )
    return _parted(examples, chosen(found, *held_out))


def overlap(train: Iterable[str], valid: Iterable[str]) -> int:
    """How many validation documents, or keys of examples, also occur in the training part, word for word."""
    return int(np.isin(places(valid), places(train)).sum())


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


def _blocks_by_hash(text: str, fraction: float) -> tuple[list[str], list[str]]:
    """Blocks chosen by hash. Neighbours on the same side stay joined, as one document."""
    if len(text) < SMALLEST_TEXT:
        raise DataError(
            f"the text has {len(text)} characters, too few to hold some out for validation: "
            f"the smallest amount is {SMALLEST_TEXT} (or give validation text of its own)"
        )
    parts = blocks(text, min(BLOCK, max(SMALLEST_BLOCK, len(text) // 20)))
    held = chosen(places(parts), "hash", fraction)
    sides: tuple[list[str], list[str]] = ([], [])
    for is_held, run in groupby(zip(held.tolist(), parts, strict=True), key=lambda pair: pair[0]):
        sides[is_held].append("".join(part for _, part in run))
    return sides


def _cut(text: str, fraction: float) -> tuple[list[str], list[str]]:
    """The first part of a text and the rest."""
    border = int(len(text) * (1 - fraction))
    if not 0 < border < len(text):
        smallest = int(max(1 / fraction, 1 / (1 - fraction))) + 1
        raise DataError(f"the text has {len(text)} characters, too few for tail:{fraction}; give at least {smallest}")
    return [text[:border]], [text[border:]]


def _grouped(found: np.ndarray) -> tuple[np.ndarray, int]:
    """For each place the number of its group of duplicates, counted as they come up, and how many groups there are."""
    _, first, group = np.unique(found, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[group], len(first)


def _parted(items: Sequence[T], held: np.ndarray) -> tuple[list[T], list[T]]:
    sides: tuple[list[T], list[T]] = ([], [])
    for item, is_held in zip(items, held.tolist(), strict=True):
        sides[is_held].append(item)
    return sides
