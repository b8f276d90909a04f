"""Seats: which row of a state each live text of a beam gets, so that few rows have to be copied.

The first child of a text goes on in its parent's row. Only a second child needs a copy, in the row of a text that has
no child: of its own beam if there is one, so that the rows of a beam stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Seats:
    """Rows of the state after a step.

    rows   for each beam where its texts stand, in their order.
    index  for each row the one that it was before, or a copy of it.
    moved  the rows that are copies. None of them is copied itself.
    """

    rows: list[list[int]]
    index: list[int]
    moved: list[int]


def seated(before: Sequence[Sequence[int]], parents: Sequence[Sequence[int]]) -> Seats:
    """Seats in as many rows as there are texts.

    before   for each beam the rows of its texts before the step.
    parents  for each beam the row of each new text's parent.

    >>> seated([[0, 1, 2]], [[1, 1, 0]])
    Seats(rows=[[1, 2, 0]], index=[0, 1, 1], moved=[2])
    """
    index: list[int] = [-1] * sum(map(len, parents))
    rows = [[_claimed(index, parent) for parent in beam] for beam in parents]
    moved: list[int] = []
    for own, taken, beam in zip(before, rows, parents, strict=True):
        _fill(index, moved, [row for row in own if row < len(index) and index[row] < 0], taken, beam)
    free = [row for row, source in enumerate(index) if source < 0]
    for taken, beam in zip(rows, parents, strict=True):
        _fill(index, moved, free, taken, beam)
    return Seats(rows, index, moved)


def _claimed(index: list[int], parent: int) -> int:
    """The parent's own row if it is left and still free, -1 otherwise."""
    if parent >= len(index) or index[parent] >= 0:
        return -1
    index[parent] = parent
    return parent


def _fill(index: list[int], moved: list[int], free: list[int], taken: list[int], parents: Sequence[int]) -> None:
    """Seats for texts that have none, as long as there are free rows; these are used up from the first on."""
    for number, parent in enumerate(parents):
        if taken[number] < 0 and free:
            row = free.pop(0)
            taken[number], index[row] = row, parent
            moved.append(row)
