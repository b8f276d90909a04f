"""Tables and numbers for people."""

from __future__ import annotations

import doctest

import pytest

from regard.cli import card, main
from regard.cli.screen import finite
from regard.run import catalogue, live
from regard.run import settings as recipe
from regard.terminal import table


def test_columns_are_aligned_and_never_cut():
    lines = table.aligned(("name", "count#"), [["a", "1"], ["long" * 50, "1000"]])
    assert len({len(line) for line in lines}) == 1
    assert lines[1].endswith("    1")
    assert "long" * 50 in lines[2]


def test_json_has_no_infinities():
    assert finite({"a": [float("inf"), (1.0, float("nan"))]}) == {"a": [None, [1.0, None]]}


@pytest.mark.parametrize("module", [table, recipe, live, card, main, catalogue])
def test_examples_in_docstrings_hold(module: object):
    assert doctest.testmod(module).failed == 0  # pyright: ignore[reportArgumentType]
