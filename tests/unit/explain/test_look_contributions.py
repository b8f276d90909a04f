"""What a word adds, against means and windows written out without it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from look_run import TEXT, class_run, seen, text_run
from regard.errors import UsageError
from regard.explain.inputs import read
from regard.explain.looks.contributions import contributions


@torch.no_grad()
def test_what_a_word_adds_to_a_mean_is_exact():
    run: Any = text_run("dan")
    model = run.model
    view = seen(run, contributions, position=5)
    ids = read(run, TEXT).inputs[0][0, :6]
    target = int(read(run, TEXT).inputs[0][0, 6])
    vectors = model.embedding.token_to_vector(ids)

    def chance(mean: torch.Tensor) -> float:
        h = mean
        for block in model.stack.layers[1:]:
            mixer = block.mixer
            h = h + mixer.hidden_to_output(torch.relu(mixer.window_to_hidden(h)))
        return float(model.head(model.norm(h)).softmax(-1)[target])

    whole = chance(vectors.mean(0))
    for place, value in enumerate(view["added"].values):
        others = torch.cat([vectors[:place], vectors[place + 1 :]]).mean(0)
        assert value == pytest.approx(whole - chance(others), abs=1e-12)


@torch.no_grad()
def test_what_a_slot_adds_is_what_an_empty_slot_takes():
    run: Any = text_run("fnn")
    model = run.model
    view = seen(run, contributions, position=5)
    target = int(read(run, TEXT).inputs[0][0, 6])
    vectors = model.embedding.token_to_vector(read(run, TEXT).inputs[0][0, 3:6])
    assert list(view["added"].names) == TEXT.split()[2:5]

    def chance(window: torch.Tensor) -> float:
        first, *later = model.stack.layers
        h = first.mixer.hidden_to_output(torch.tanh(first.mixer.window_to_hidden(window.flatten())))
        for block in later:
            h = block(h[None, None])[0][0, 0]
        return float(model.head(model.norm(h)).softmax(-1)[target])

    whole = chance(vectors)
    for slot, value in enumerate(view["added"].values):
        empty = vectors.clone()
        empty[slot] = 0
        assert value == pytest.approx(whole - chance(empty), abs=1e-12)


def test_norms_of_slots_are_those_of_their_weights():
    run: Any = text_run("fnn")
    weight = run.model.stack.layers[0].mixer.window_to_hidden.weight
    values = seen(run, contributions)["slots"].values
    assert values[0] == pytest.approx(float(weight[:, 32:].detach().norm()))
    assert values[2] == pytest.approx(float(weight[:, :16].detach().norm()))


def test_words_add_to_a_class_too():
    run = class_run(encoder="dan", pooling="last")
    view = seen(run, contributions)
    reading = read(run, TEXT)
    answer = int(reading.run().argmax())
    without = reading.with_input(0, reading.inputs[0][:, 1:]).run()
    expected = float(reading.run().softmax(-1)[0, answer] - without.softmax(-1)[0, answer])
    assert view["added"].values[0] == pytest.approx(expected)
    assert view["candidates"].columns[0] == reading.named(answer)


def test_a_mean_of_one_word_is_refused():
    with pytest.raises(UsageError, match="nothing left without it"):
        seen(text_run("dan"), contributions, position=0)
