"""Seats: every text gets a row of its own that can be made by copying a few."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.seats import seated


@st.composite
def steps(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]]]:
    """Rows of beams, in any order, and parents of up to seven texts in each."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    order = iter(draw(st.permutations(range(sum(sizes)))))
    before = [[next(order) for _ in range(size)] for size in sizes]
    parents = [draw(st.lists(st.sampled_from(rows), max_size=7)) for rows in before]
    return before, parents


@given(steps())
def test_every_text_has_a_row_that_comes_from_its_parents(step: tuple[list[list[int]], list[list[int]]]) -> None:
    before, parents = step
    seats = seated(before, parents)
    taken = [row for rows in seats.rows for row in rows]
    assert sorted(taken) == list(range(len(seats.index)))
    assert [[seats.index[row] for row in rows] for rows in seats.rows] == parents


@given(steps())
def test_only_copies_move_and_no_copy_is_made_of_a_row_that_is_written(
    step: tuple[list[list[int]], list[list[int]]],
) -> None:
    before, parents = step
    seats = seated(before, parents)
    assert sorted(seats.moved) == [row for row, source in enumerate(seats.index) if source != row]
    assert not {seats.index[row] for row in seats.moved} & set(seats.moved)
    # No fewer would do: second children, and those of rows that are given up.
    different = {row for beam in parents for row in beam if row < len(seats.index)}
    assert len(seats.moved) == len(seats.index) - len(different)


@given(steps())
def test_a_beam_that_keeps_its_size_keeps_its_rows(step: tuple[list[list[int]], list[list[int]]]) -> None:
    before, parents = step
    whole = [(beam * len(rows))[: len(rows)] or rows for rows, beam in zip(before, parents, strict=True)]
    assert [sorted(rows) for rows in seated(before, whole).rows] == [sorted(rows) for rows in before]
