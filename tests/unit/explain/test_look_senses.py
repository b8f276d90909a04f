"""A Backpack is linear in its senses: what is said before is what is measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from look_run import TEXT, seen, text_run
from regard.errors import UsageError
from regard.explain.inputs import read
from regard.explain.looks.senses import parsed, scaled, senses
from regard.explain.site import sites


@pytest.mark.parametrize(("word", "sense", "factor"), [("dog", 1, 0.0), ("sees", 3, 2.5), ("cat", 4, -1.0)])
@torch.no_grad()
def test_the_change_that_is_said_before_is_measured(word: str, sense: int, factor: float):
    run = text_run("backpack")
    reading = read(run, TEXT)
    site = sites(reading, "senses")[0]
    place = TEXT.split().index(word) + 1
    found = scaled(reading, site, 6, [place], sense - 1, factor)
    assert found.difference < 1e-12
    assert float((found.after - found.before).abs().max()) > 1e-6
    assert torch.equal(reading.run()[0, 6], found.before)


@torch.no_grad()
def test_parts_of_a_logit_sum_to_it():
    run: Any = text_run("backpack")
    view = seen(run, senses, position=4)
    reading = read(run, TEXT)
    answer = reading.targets[4]
    assert view["contributions"].weights.shape == (4, 5)
    assert view["contributions"].weights.sum() == pytest.approx(float(reading.run()[0, 4, answer]))
    assert np.allclose(view["weights"].weights.sum(1), 1)


@torch.no_grad()
def test_top_words_are_those_of_the_tied_head():
    run: Any = text_run("backpack")
    view = seen(run, senses, word="tree")
    table = run.model.embedding.token_to_vector.weight
    vectors = run.model.stack.senses(table[run.tokenizer.encode("tree")][None])[0, 0]
    for row, vector in zip(view["words"].rows, vectors, strict=True):
        scores = [float(vector @ other) for other in table]
        assert row[1].split(", ")[0] == run.tokenizer.token_text(int(np.argmax(scores)))


def test_scaling_every_place_of_a_word_shows_the_next_words_before_and_after():
    run = text_run("backpack")
    view = seen(run, senses, "the dog sees the cat", scale="the:2=0.0")
    columns, rows = view["scaled"].columns, view["scaled"].rows
    assert columns[1:3] == ["p before#", "p after#"]
    for row in rows:
        assert row[3] == pytest.approx(row[4], abs=1e-12)
    assert any(row[1] != pytest.approx(row[2]) for row in rows)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("dog", "write word:sense=factor"),
        ("dog:x=1", "write word:sense=factor"),
        ("dog:5=1", "senses 1 to 4"),
        ("dog:0=1", "senses 1 to 4"),
        ("wolf:1=0", "no token 'wolf' in the text"),
    ],
)
def test_a_scale_that_means_nothing_is_refused(scale: str, message: str):
    reading = read(text_run("backpack"), TEXT)
    with pytest.raises(UsageError, match=message):
        parsed(scale, reading, 4)
    assert parsed("dog:2=-0.5", reading, 4) == ([3], 1, -0.5)


def test_a_factor_that_leaves_no_numbers_is_refused():
    with pytest.raises(UsageError, match="the factor is too large"):
        seen(text_run("backpack"), senses, scale="dog:1=1e999")


def test_a_word_that_is_no_token_is_refused():
    with pytest.raises(UsageError, match="no token 'wolf'"):
        seen(text_run("backpack"), senses, word="wolf")
