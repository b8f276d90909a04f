"""Equivariance, causality and leaving out, each by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from look_run import SIZE, TEXT, TOKENIZER, class_run, masked_run, pair_run, seen, tag_run, text_run
from regard.core import registry
from regard.core.model import logits_of
from regard.errors import UsageError
from regard.explain.inputs import read
from regard.explain.looks.what_if import drop, future, shuffle
from regard.run.run import Run
from regard.tasks.text import PlainText, TextProcessor


def unordered() -> Run:
    """Self-attention without positions and without a mask."""
    config: Any = registry.entry("gpt").config(SIZE, size="tiny", position="none")
    block = config.stack.layers[0]
    free = dataclasses.replace(block, mixer=dataclasses.replace(block.mixer, causal=False))
    config = dataclasses.replace(config, stack=dataclasses.replace(config.stack, layers=(free, free)))
    model = config.build().double().eval()
    about = {"model": {"name": "gpt"}, "data": {"task": "text"}, "train": {"length": 32}}
    return Run(Path("run"), about, PlainText(), model, TextProcessor(TOKENIZER))


def test_without_positions_and_mask_outputs_are_shuffled_alike():
    view = seen(unordered(), shuffle)
    assert view.about["largest"] < 1e-12
    assert view["told"].text.startswith("No: the outputs are shuffled alike")
    assert view["parts"].rows == []
    assert sorted(view["shuffled"].text.split()) == sorted(["<s>", *TEXT.split()])
    assert view["shuffled"].text != f"<s> {TEXT}"


@pytest.mark.parametrize("seed", range(8))
def test_a_shuffle_moves_a_token_to_where_another_stood(seed: int):
    text = "the the the the dog"
    assert seen(text_run("gpt"), shuffle, text, seed=seed)["shuffled"].text != f"<s> {text}"


def test_a_text_of_equal_tokens_cannot_be_shuffled():
    with pytest.raises(UsageError, match="every token is the same"):
        seen(text_run("gpt"), shuffle, "dog dog dog")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"position": "none"}, "a causal mask"),
        ({"position": "alibi"}, "a causal mask, alibi positions in its scores"),
        ({"position": "none", "window": 3}, "a causal mask, a window of 3"),
    ],
)
def test_parts_that_feel_order_are_named(settings: dict[str, Any], why: str):
    view = seen(text_run("gpt", **settings), shuffle)
    assert view.about["largest"] > 1e-3
    assert view["parts"].rows == [["attention 1", why], ["attention 2", why]]


def test_positions_at_the_input_are_named_and_recurrences_in_both_directions():
    learned = seen(text_run("gpt", position="learned"), shuffle)
    assert learned["parts"].rows[0] == ["embedding", "adds positions to the vectors"]
    both = seen(tag_run(encoder="gru", n_layers=1), shuffle)
    assert [row[0] for row in both["parts"].rows] == ["gru 1", "gru 1, backward"]


def test_a_mean_of_means_does_not_feel_a_shuffle_of_what_it_pools():
    blind = seen(class_run(encoder="transformer", pooling="mean"), shuffle)
    assert [row[0] for row in blind["parts"].rows] == ["embedding"]
    # The last mean is over all words, whatever their order: only the means on the way feel it.
    last = seen(class_run(encoder="dan", pooling="last"), shuffle)
    assert last.about["largest"] < 1e-12


@pytest.mark.parametrize("name", ["gpt", "lstm", "mamba", "fnn"])
def test_a_causal_model_does_not_look_ahead_by_the_last_bit(name: str):
    view = seen(text_run(name), future, position=4)
    assert view.about["largest"] == 0
    assert not any(view["differences"].values[:4])
    assert view["differences"].values[4] > 0


def test_a_model_that_looks_both_ways_looks_ahead():
    view = seen(masked_run(), future, position=4)
    assert view.about["largest"] > 1e-6
    assert view["told"].text.startswith("Yes")


@torch.no_grad()
def test_a_dropped_token_is_missed_by_as_much_as_the_answer_falls():
    run = text_run("gpt")
    reading = read(run, TEXT)
    view = seen(run, drop, position=4)
    answer = reading.targets[4]
    with_all = float(reading.run()[0, 4].log_softmax(-1)[answer])
    shorter = torch.cat([reading.inputs[0][:, :2], reading.inputs[0][:, 3:]], 1)
    without = float(logits_of(run.model, shorter)[0, 3].log_softmax(-1)[answer])
    assert list(view["changes"].names) == TEXT.split()[:4]
    assert view["changes"].values[1] == pytest.approx(without - with_all, abs=1e-12)


def test_what_is_not_shown_of_many_tokens_is_counted():
    run = text_run("lstm")
    assert "Shown are 64 of 65 tokens" in seen(run, drop, "the dog sees a cat " * 13)["changes"].note
    assert "Shown are" not in seen(run, drop)["changes"].note


@torch.no_grad()
def test_a_word_of_a_source_that_is_read_backwards_is_left_out_rightly():
    run: Any = pair_run("seq2seq", reverse=True)
    view = seen(run, drop, "the dog sees", "a cat", position=1)
    reading = read(run, "the dog sees", "a cat")
    answer = reading.targets[1]
    shorter = reading.inputs[0][:, [0, 2, 3]]  # without dog
    without = logits_of(run.model.given(shorter), reading.inputs[1])[0, 1].log_softmax(-1)[answer]
    with_all = reading.run()[0, 1].log_softmax(-1)[answer]
    assert list(view["changes"].names) == ["sees", "dog", "the"]
    assert view["changes"].values[1] == pytest.approx(float(without - with_all), abs=1e-12)


def test_the_end_of_a_written_text_has_one_name():
    run = pair_run("seq2seq")
    view = seen(run, drop, "the dog sees", "a cat")
    assert view["changes"].title.startswith("Change of log p of '</s>', which came")
    assert read(run, "the dog sees", "a cat").sides[0].labels[-1] == "</s>"


def test_a_tagged_word_itself_is_never_left_out():
    names = seen(tag_run(), drop, position=2)["changes"].names
    assert list(names) == [word for word in TEXT.split() if word != "small"]


@pytest.mark.parametrize("look", [shuffle, future, drop])
def test_too_short_a_text_is_refused(look: Any):
    with pytest.raises(UsageError, match="give a longer one"):
        seen(tag_run(), look, "dog")
