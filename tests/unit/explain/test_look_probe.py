"""Probes: all of what is separable, chance on what is random, and data that a run has no words for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from look_run import masked_run, tag_run, text_run
from regard.data.example import Tagged
from regard.errors import DataError, UsageError
from regard.explain.probe import accuracy, fitted, probe, read_words

# Three sentences in turn, so that each comes in both halves.
LINES = [
    [("the", "D"), ("dog", "N"), ("sees", "V"), ("a", "D"), ("cat", "N")],
    [("a", "D"), ("small", "A"), ("tree", "N"), ("runs", "V")],
    [("the", "D"), ("cat", "N"), ("runs", "V")],
] * 6


def write(path: Path, lines: list[list[tuple[str, str]]]) -> str:
    path.write_text("\n\n".join("\n".join(f"{word}\t{tag}" for word, tag in line) for line in lines) + "\n", "utf-8")
    return str(path)


def test_a_probe_finds_what_is_separable_and_not_what_is_random():
    x, tags, held = torch.randn(1200, 6), torch.randint(3, (1200,)), np.arange(1200) % 2 == 1
    assert accuracy(x, tags, held, 3) == pytest.approx(1 / 3, abs=0.06)
    assert accuracy(x + 12 * torch.eye(6)[tags], tags, held, 3) == 1


def test_the_fit_has_no_slope_left():
    x, tags = torch.randn(60, 4, dtype=torch.float64), torch.randint(3, (60,))
    weight, bias = fitted(x, tags, 3)
    chances = (x @ weight + bias).softmax(-1) - torch.nn.functional.one_hot(tags, 3)
    assert torch.allclose(x.T @ chances / 60 + 2e-3 * weight, torch.zeros(4, 3, dtype=torch.float64), atol=1e-4)
    assert torch.allclose(chances.mean(0), torch.zeros(3, dtype=torch.float64), atol=1e-4)


@pytest.mark.parametrize("run", [text_run("gpt"), masked_run()], ids=["text", "masked"])
def test_tags_of_words_can_be_told_from_their_own_vectors(run, tmp_path: Path):
    view = probe(run, write(tmp_path / "tags.conll", LINES))
    lines = view["accuracy"].lines
    assert lines["probe"][0][1] == 1
    assert lines["most frequent tag of the word"][0][1] == 1
    asked = [tag for number, line in enumerate(LINES) if number % 2 for _, tag in line]
    learnt = [tag for number, line in enumerate(LINES) if not number % 2 for _, tag in line]
    most = max(sorted(set(learnt)), key=learnt.count)
    assert view["numbers"].rows[-1] == [f"most frequent tag, {most}", pytest.approx(asked.count(most) / len(asked))]
    assert [row[0] for row in view["numbers"].rows][:2] == ["probe, before", "probe, layer 1"]


@torch.no_grad()
def test_vectors_of_padded_sentences_are_those_of_single_ones():
    run = text_run("lstm")
    told = read_words(run, [Tagged(("the", "dog"), ("D", "N")), Tagged(("a", "small", "cat"), ("D", "A", "N"))], "x")
    assert told.words == ["the", "dog", "a", "small", "cat"]
    expected = torch.cat([run.encode("the dog"), run.encode("a small cat")]).float()
    assert torch.allclose(told.vectors["output"], expected)
    assert told.sentence.tolist() == [0, 0, 1, 1, 1]


def test_data_that_the_run_has_no_words_for_is_refused(tmp_path: Path):
    data = write(tmp_path / "other.conll", [[("wolf", "N"), ("howls", "V"), ("the", "D")]] * 4)
    with pytest.raises(DataError, match="has tokens for 33% of its words"):
        probe(text_run("gpt"), data)
    same = write(tmp_path / "same.conll", [[("the", "D"), ("a", "D")]] * 4)
    with pytest.raises(DataError, match="two different tags"):
        probe(text_run("gpt"), same)


def test_runs_without_vectors_of_a_language_and_impossible_limits_are_refused():
    with pytest.raises(UsageError, match="probes are of language models"):
        probe(tag_run(), "world:tags")
    with pytest.raises(UsageError, match="limit 1"):
        probe(text_run("gpt"), "world:tags", limit=1)
