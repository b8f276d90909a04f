"""Gradients against finite differences, occlusion against replacements by hand, reach against the window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from look_run import TEXT, class_run, masked_run, pair_run, seen, text_run
from regard.errors import UsageError
from regard.explain.inputs import read
from regard.explain.looks.forgetting import DRAWS, feel, forgetting
from regard.explain.outcome import columns_of, gradients, others, outcome, replaced, without


@pytest.mark.parametrize("name", ["lstm", "gpt", "mamba", "s4d"])
def test_gradients_are_finite_differences(name: str):
    reading = read(text_run(name), TEXT)
    found = gradients(reading, 0, lambda outputs: outputs[:, -1].log_softmax(-1)[:, 2], 1)[0]
    model: Any = reading.model
    place, unit, step = 3, 5, 1e-5
    values = []
    for sign in (1, -1):

        def moved(_module: Any, _inputs: Any, vectors: torch.Tensor, sign: int = sign) -> torch.Tensor:
            vectors = vectors.clone()
            vectors[0, place, unit] += sign * step
            return vectors

        handle = model.embedding.register_forward_hook(moved)
        values.append(float(reading.run()[0, -1].log_softmax(-1)[2]))
        handle.remove()
    assert float(found[place, unit]) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4, abs=1e-9)


def test_occlusion_is_the_mean_divergence_of_replaced_tokens():
    reading = read(text_run("gpt"), TEXT)
    felt = feel(reading, 0, outcome(reading), 3)
    before = reading.run()[0, -1].log_softmax(-1)
    tokens = reading.inputs[0]
    total = 0.0
    for draw in range(DRAWS):
        by = others(tokens, felt.places, felt.places, 3 + draw)[felt.places.index(2)]
        changed = tokens.clone()
        changed[0, 2] = by
        after = reading.with_input(0, changed).run()[0, -1].log_softmax(-1)
        total += float((before.exp() * (before - after)).sum())
    assert felt.occlusion[felt.places.index(2), -1] == pytest.approx(total / DRAWS)


def test_a_window_ends_what_is_felt_and_a_causal_model_feels_no_future():
    reading = read(text_run("fnn", window=3), TEXT)
    felt = feel(reading, 0, outcome(reading), 0)
    distance = np.array([[asked - place for asked in felt.asked] for place in felt.places])
    for values in (felt.gradient, felt.occlusion):
        assert (values[(distance >= 0) & (distance < 3)] > 0).all()
        assert not values[(distance < 0) | (distance >= 3)].any()


def test_lines_go_both_ways_where_a_model_looks_both_ways():
    both = seen(masked_run(), forgetting)
    assert set(both["gradient_by_distance"].lines) == {"tokens before", "tokens after"}
    assert set(seen(text_run("gpt"), forgetting)["gradient_by_distance"].lines) == {"tokens before"}


def test_the_source_of_a_translation_is_felt_too():
    run = pair_run("bahdanau")
    view = seen(run, forgetting, TEXT, "the dog", side="source", position=1)
    assert view["occlusion"].names == TEXT.split()
    assert all(value > 0 for value in view["gradient"].values)
    assert [panel.key for panel in view.panels] == ["occlusion", "gradient"]


def test_one_answer_for_the_whole_is_looked_at_too():
    view = seen(class_run(encoder="transformer"), forgetting)
    assert view["occlusion"].names == TEXT.split()
    assert view.about["position"] is None


def test_a_source_that_is_read_backwards_is_changed_where_it_says():
    reading = read(pair_run("seq2seq", reverse=True), "the dog", "a")
    assert reading.sides[0].labels == ("</s>", "dog", "the")
    assert columns_of(reading, 0, [1, 2]) == [1, 0]
    assert columns_of(reading, 1, [1]) == [1]


def test_rows_without_and_with_another_token():
    tokens = torch.tensor([[1, 2, 3]])
    assert without(tokens, [[0], [2]]).tolist() == [[2, 3], [1, 2]]
    assert replaced(tokens, [0, 1], torch.tensor([7, 8])).tolist() == [[7, 2, 3], [1, 8, 3]]
    assert others(tokens, [0], [0, 1], 0).tolist() == [2]
    with pytest.raises(UsageError, match="every token is the same"):
        others(torch.tensor([[1, 1]]), [0], [0, 1], 0)


def test_a_long_text_is_felt_at_a_choice_of_tokens():
    run = text_run("lstm")
    reading = read(run, " ".join([TEXT] * 15))
    felt = feel(reading, 0, outcome(reading), 0)
    assert len(felt.places) <= 64
    assert felt.places[-32:] == list(range(59, 91))
    assert felt.asked[-1] == 90


def test_too_short_a_text_is_refused():
    with pytest.raises(UsageError, match="fewer than two tokens"):
        seen(text_run("lstm"), forgetting, "dog")
