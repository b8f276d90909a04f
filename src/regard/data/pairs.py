"""Pairs: a text and its counterpart, from two files line by line or from one file with two columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from regard.data.example import Examples, Pair
from regard.data.packed import Packed, Places
from regard.data.source import read_lines, shown
from regard.errors import DataError


def read_pairs(source: str, target: str | None = None, *, reverse: bool = False) -> Examples[Pair]:
    """The pairs of two line-aligned files, or of one with two columns and a TAB between them.

    Lines that are empty on one side or both are kept, so that line numbers hold; the note tells how many there are.
    reverse  swaps the sides.
    """
    left, right = Packed(), Packed()
    empty = 0
    for one, other in _columns(source) if target is None else _aligned(source, target):
        left.append(one)
        right.append(other)
        empty += not one.strip() or not other.strip()
    columns = {
        "source": right if reverse else left,
        "target": left if reverse else right,
        "where": Places(source, range(1, len(left) + 1)),
    }
    return Examples(Pair, columns, note=f"{empty:,} of {len(left):,} pairs have an empty side" if empty else "")


def _aligned(source: str, target: str) -> Iterator[tuple[str, str]]:
    n_source = n_target = 0
    for left, right in zip_longest(read_lines(source), read_lines(target)):
        n_source += left is not None
        n_target += right is not None
        yield left or "", right or ""
    if n_source != n_target:
        ended = source if n_source < n_target else target
        raise DataError(
            f"{shown(source)} has {n_source:,} lines and {shown(target)} {n_target:,}: {shown(ended)} ended first; "
            f"line {min(n_source, n_target) + 1:,} has no counterpart, make them line by line"
        )


def _columns(path: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t") if line else ["", ""]
        if len(columns) != 2:
            found = f"{len(columns)} column{'s' if len(columns) > 1 else ''}"
            raise DataError(
                f"{shown(path)}, line {number}: {found} where a pair has 2 with a TAB between; "
                f"keep two, or give two files"
            )
        yield columns[0], columns[1]
