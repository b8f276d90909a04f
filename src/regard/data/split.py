"""Which documents or examples are held out for validation. How one long text is dealt out is in `layout`.

hash:0.1   about a tenth, chosen by the SHA-256 of each document's text or example's input. It keeps its side when
           others come or go.
tail:0.1   the last tenth.
fold:2/5   of examples the second of five parts, chosen by the same hash, which together are all of them.
PATH       another file or folder.

Whatever the rule, duplicates fall on one side: `chosen` decides for all of them together, in every split of every task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from regard.data.example import taken
from regard.data.tokenizer.tokenizer import utf8
from regard.errors import DataError, UsageError

T = TypeVar("T")
FOLD = "fold:"


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


def fold(valid: str) -> tuple[int, int] | None:
    """(number from 1 on, how many), or None when `valid` is another rule or a path.

    >>> fold("fold:2/5"), fold("hash:0.1")
    ((2, 5), None)
    """
    if not valid.startswith(FOLD):
        return None
    number, _, count = valid.removeprefix(FOLD).partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) and int(count) > 1):
        raise UsageError(f"valid = {valid!r}: expected fold:NUMBER/FOLDS, such as fold:1/5")
    return int(number), int(count)


def places(keys: Iterable[str]) -> np.ndarray:
    """A number for each key that depends on the key alone, (n,) uint64: duplicates are told by equal ones."""
    # Keys that share one by chance, in a billion one pair of them, fall on one side: that does no harm.
    return np.fromiter((int.from_bytes(hashlib.sha256(utf8(key)).digest()[:8], "big") for key in keys), np.uint64)


def chosen(found: np.ndarray, name: str, fraction: float, sizes: np.ndarray | None = None) -> np.ndarray:
    """Which of those with these `places` are held out, (n,) bool. At least one is, and at least one is not.

    hash  by the place itself.
    tail  the last of the different ones, each standing where it comes first: so many that they make up the fraction
          by number, or by `sizes`, where one across the border is not held out.
    """
    if len(found) == 0 or found.min() == found.max():
        raise DataError(
            f"{len(found)} documents or parts of a text, no two different: nothing can be held out; the smallest "
            f"amount is two (or give validation text of its own; of a single text, valid = tail:0.1 takes the end)"
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


def split_examples(
    examples: Sequence[T], valid: str, keys: Iterable[str], unit: str = "examples"
) -> tuple[Sequence[T], Sequence[T]]:
    """(train, valid) examples by the rule `valid`. Examples with the same key fall on the same side.

    unit  what they are called where they are too few.
    """
    held_out, part = rule(valid), fold(valid)
    if held_out is None and part is None:
        raise UsageError(f"valid = {valid!r} is no rule; give hash:0.1, tail:0.1 or a file that exists")
    found = places(keys)
    if len(found) == 0 or found.min() == found.max():
        raise DataError(
            f"{len(examples)} {unit}, all the same: nothing can be held out for validation; the smallest amount is two "
            f"different ones (or give a validation file of its own)"
        )
    held = chosen(found, *held_out) if held_out is not None else _in_fold(found, *(part or (1, 1)))
    return taken(examples, np.flatnonzero(~held)), taken(examples, np.flatnonzero(held))


def _in_fold(found: np.ndarray, number: int, count: int) -> np.ndarray:
    """Which of those with these `places` are in a fold, (n,) bool: the different ones in their order, dealt in turn."""
    different, group = np.unique(found, return_inverse=True)
    if len(different) < count:
        raise DataError(f"there are {len(different)} different examples, too few for {count} folds")
    return (np.arange(len(different)) % count == number - 1)[group]


def overlap(train: Iterable[str], valid: Iterable[str]) -> int:
    """How many validation documents, or keys of examples, also occur in the training part, word for word."""
    return int(np.isin(places(valid), places(train)).sum())


def _grouped(found: np.ndarray) -> tuple[np.ndarray, int]:
    """For each place the number of its group of duplicates, counted as they come up, and how many groups there are."""
    _, first, group = np.unique(found, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[group], len(first)
