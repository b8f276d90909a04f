"""The score of every example: together they are the score of the whole, in every task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.evaluation.each import EachScore, of_text
from regard.evaluation.translation import chrf_of_each, translation_scores

WORLDS = {
    "world:stories?train=40&valid=60": "rnn",
    "world:reviews?train=40&valid=30": "classifier",
    "world:tags?train=40&valid=30": "tagger",
    "world:dates?train=40&valid=20": "seq2seq",
    "world:electricity?train=60&valid=20": "forecaster",
    "world:shapes?train=20&valid=10": "captioner",
}


@pytest.mark.parametrize("data", WORLDS)
def test_the_scores_of_the_examples_make_that_of_the_whole(data: str, tmp_path: Path) -> None:
    run: Any = regard.train(WORLDS[data], data, size="tiny", budget="2steps", out=tmp_path / "r", quiet=True)
    part = run.held_out("valid")
    report = run.task.evaluate(run.model, run.processor, part)
    each = report.each()
    assert len(each) == len(part)
    assert each.score == pytest.approx(report.scores[run.task.metric], rel=1e-6)


def test_hidden_tokens_are_counted_by_passage(tmp_path: Path) -> None:
    run: Any = regard.train("bert", "world:stories?train=40&valid=20", budget="2steps", size="tiny", out=tmp_path / "r")
    report = run.task.evaluate(run.model, run.processor, run.held_out("valid"))
    assert report.each().score == pytest.approx(report.scores["loss"], rel=1e-6)


def test_pseudo_values_of_chrf_are_those_of_the_library() -> None:
    written = ["a small house", "the cats sat", "", "one two three four"]
    wanted = ["the small house", "the cat sat down", "nothing", "one two four"]
    each = chrf_of_each(written, wanted)
    assert each.score == pytest.approx(translation_scores(written, wanted).chrf)
    without = [translation_scores(written[:i] + written[i + 1 :], wanted[:i] + wanted[i + 1 :]).chrf for i in range(4)]
    assert each.values == pytest.approx(EachScore.pseudo(each.score, np.array(without)).values)


def test_a_text_of_few_documents_is_told_by_stretches_of_as_many_bytes() -> None:
    bytes_of = {"letters": np.ones(4000), "pairs": np.full(2000, 2.0)}
    found = {name: of_text(sizes.copy(), sizes, np.zeros(1, int), 4000) for name, sizes in bytes_of.items()}
    assert [len(one) for one in found.values()] == [20, 20]
    assert found["letters"].sizes == pytest.approx(found["pairs"].sizes)
    assert found["letters"].per_byte().score == pytest.approx(1 / np.log(2))
    many = of_text(np.ones(100), np.ones(100), np.arange(0, 100, 4), 100)
    assert (len(many), many.weights.tolist()) == (25, [4.0] * 25)
