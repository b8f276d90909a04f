from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.decoding.stop import StopFilter
from regard.errors import UsageError


def shown(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    text = StopFilter(stops)
    parts = [text.push(piece) for piece in pieces]
    return "".join([*parts, text.finish()]), text.stopped


def test_text_that_may_become_a_stop_string_is_held_back() -> None:
    text = StopFilter(["\n\n", "END"])
    assert text.push("one\n") == "one"
    assert text.push("two E") == "\ntwo "
    assert text.push("N") == ""
    assert text.push("T") == "ENT"
    assert text.push("E") == ""
    assert text.push("ND more") == ""
    assert text.stopped
    assert text.push("after") == ""
    assert text.finish() == ""


def test_held_text_comes_out_at_the_end() -> None:
    assert shown(["abc"], ["xa", "b"]) == ("xab", False)


def test_without_stop_strings_everything_passes_at_once() -> None:
    text = StopFilter()
    assert text.push("abc") == "abc"
    assert text.finish() == ""


def test_the_stop_string_completed_first_wins() -> None:
    assert shown(["abcd", "b"], ["abcd"]) == ("a", True)
    assert shown(["bc", "abc"], ["xabc"]) == ("x", True)


@settings(max_examples=300, deadline=None)
@given(
    st.text("ab", max_size=12),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
    st.lists(st.integers(0, 12), max_size=5),
)
def test_what_is_shown_does_not_depend_on_the_cuts(text: str, stops: list[str], cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    ends = [(end, end - len(s)) for end in range(len(text) + 1) for s in stops if text[:end].endswith(s)]
    expected = (text[: min(ends)[1]], True) if ends else (text, False)
    assert shown(stops, pieces) == expected


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(UsageError, match="stop string"):
        StopFilter(["a", ""])
