"""How a text is dealt out: duplicates stay together, nothing is lost, and pieces of any size give the same."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.layout import TEST, TRAIN, VALID, blocks, layout, parted, scan
from regard.data.stream import Piece
from regard.errors import DataError

LINES = [f"line {i} tells of {i * i} things" for i in range(1000)]
FEW = st.lists(st.text(alphabet="abcdef", min_size=1, max_size=4), min_size=2, max_size=60)


def dealt(documents: list[str], rule: tuple[str, float] | None, test: float = 0.0) -> tuple[list[str], ...]:
    """The documents of the three sides."""
    pieces = [Piece(text, True) for text in documents]
    sides: tuple[list[str], ...] = ([], [], [])
    waiting = ""
    for side, text, ends in parted(pieces, layout(scan(pieces), rule, test)):
        waiting += text
        if ends:
            sides[side].append(waiting)
            waiting = ""
    return sides


@given(text=st.text(alphabet="ab \n", min_size=1), size=st.integers(2, 30))
def test_blocks_are_of_bounded_size_and_lose_nothing(text: str, size: int) -> None:
    parts = blocks(text, size)
    assert "".join(parts) == text
    assert all(size <= len(part) <= size * 3 // 2 for part in parts[:-1])
    assert len(parts[-1]) <= size * 3 // 2


def test_blocks_end_at_lines_else_at_spaces() -> None:
    assert blocks("aaaa aa\nbb bbbb\ncc", 6) == ["aaaa aa\n", "bb bbbb\n", "cc"]
    assert blocks("aaaa aaaa aaaa", 4) == ["aaaa ", "aaaa ", "aaaa"]
    assert blocks("a" * 10, 4) == ["aaaa", "aaaaaa"]


@given(documents=FEW, fraction=st.floats(0.01, 0.99), name=st.sampled_from(["hash", "tail"]), test=st.floats(0.1, 0.9))
def test_no_two_sides_share_a_document(documents: list[str], fraction: float, name: str, test: float) -> None:
    if len(set(documents)) < 2:
        with pytest.raises(DataError, match="no two different"):
            dealt(documents, (name, fraction))
        return
    train, held, _ = dealt(documents, (name, fraction))
    assert train
    assert held
    assert sorted(train + held) == sorted(documents)
    assert not set(train) & set(held)
    if len(set(held)) > 1:  # else one text is cut in two
        again, valid, apart = dealt(documents, (name, fraction), test)
        assert again == train
        assert valid
        assert apart
        assert sorted(valid + apart) == sorted(held)
        assert not set(valid) & set(apart)


def test_a_split_by_hash_takes_about_its_fraction_and_is_stable() -> None:
    for fraction in (0.05, 0.1, 0.5):
        train, valid, _ = dealt(LINES, ("hash", fraction))
        assert len(valid) == pytest.approx(1000 * fraction, abs=4 * (1000 * fraction) ** 0.5)
        fewer_train, fewer_valid, _ = dealt(LINES[::2], ("hash", fraction))
        assert set(fewer_train) <= set(train)
        assert set(fewer_valid) <= set(valid)
        assert dealt(LINES[::-1], ("hash", fraction))[1] == valid[::-1]


def test_the_tail_of_many_documents_is_whole_documents() -> None:
    assert dealt(["aaaa", "bb", "cc", "dd"], ("tail", 0.3)) == (["aaaa", "bb", "cc"], ["dd"], [])
    assert dealt(["a", "b" * 100], ("tail", 0.1)) == (["a"], ["b" * 100], [])


def test_a_document_of_the_tail_that_came_before_stays_where_it_came() -> None:
    assert dealt(["a", "b", "c", "b", "d"], ("tail", 0.4)) == (["a", "b", "b"], ["c", "d"], [])


def test_the_test_is_the_last_part_of_what_is_held_out() -> None:
    train, valid, apart = dealt(LINES, ("tail", 0.2), 0.5)
    assert train + valid + apart == LINES
    assert len(valid) == pytest.approx(100, abs=5)
    assert len(apart) == pytest.approx(100, abs=5)


def test_of_one_text_the_test_is_cut_at_a_character() -> None:
    train, valid, apart = dealt(["x" * 80 + "y" * 10 + "z" * 10], ("tail", 0.2), 0.5)
    assert (train, valid, apart) == (["x" * 80], ["y" * 10], ["z" * 10])


def test_blocks_that_are_held_out_twice_are_not_on_two_sides() -> None:
    text = "".join(f"{number % 25:03d} {'abcdefgh'[number % 8] * 95}\n" for number in range(400))
    _, valid, apart = dealt([text], ("hash", 0.5), 0.5)
    assert not {*"".join(valid).splitlines()} & {*"".join(apart).splitlines()}


def test_one_document_that_is_held_out_twice_is_cut_at_the_same_place() -> None:
    train, valid, apart = dealt(["x" * 40, "yyyyyzzzzz", "yyyyyzzzzz"], ("tail", 0.3), 0.5)
    assert (train, valid, apart) == (["x" * 40], ["yyyyy"] * 2, ["zzzzz"] * 2)


@given(
    text=st.text(alphabet="abc \n", min_size=300, max_size=2500),
    cuts=st.lists(st.integers(0, 2500), max_size=12),
    rule=st.sampled_from([("hash", 0.1), ("tail", 0.3), None]),
)
def test_the_layout_does_not_depend_on_the_pieces(text: str, cuts: list[int], rule: tuple[str, float] | None) -> None:
    whole = [Piece(text, True)]
    bounds = [0, *sorted(cut for cut in set(cuts) if 0 < cut < len(text)), len(text)]
    pieces = [Piece(text[a:b], b == len(text)) for a, b in pairwise(bounds)]
    try:
        one = layout(scan(whole), rule)
    except DataError:
        return
    other = layout(scan(pieces), rule)
    assert one.stops.tolist() == other.stops.tolist()
    assert one.sides.tolist() == other.sides.tolist()
    for side in (TRAIN, VALID, TEST):
        joined = ["".join(part.text for part in parted(which, one) if part.side == side) for which in (whole, pieces)]
        assert joined[0] == joined[1]


def test_a_text_that_changed_between_two_readings_is_refused() -> None:
    laid = layout(scan([Piece("abc", True), Piece("de", True)]), None)
    for changed in ([Piece("abc", True)], [Piece("abc", True), Piece("d", True)], [Piece("abcdefg", True)]):
        with pytest.raises(DataError, match="changed while it was read"):
            list(parted(changed, laid))
