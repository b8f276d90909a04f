"""What a model expects, raw and warped, against softmaxes written out here."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from look_run import CLASSES, TEXT, TOKENIZER, class_run, masked_run, pair_run, seen, tag_run, text_run
from regard.core.model import logits_of
from regard.errors import UsageError
from regard.explain.looks.next_token import class_of, masked_token, next_token


def test_raw_bars_are_the_softmax_of_the_last_position():
    run = text_run("gpt")
    raw = seen(run, next_token)["raw"]
    with torch.no_grad():
        expected = logits_of(run.model, run.writer.prompt_ids(TEXT)[None])[0, -1].softmax(-1)
    for name, value in zip(raw.names, raw.values, strict=True):
        token = TOKENIZER.eos_id if name == "</s>" else int(TOKENIZER.encode(name)[0])
        assert value == pytest.approx(float(expected[token]), abs=1e-12)
    assert list(raw.values) == sorted(raw.values, reverse=True)


def test_warped_bars_are_drawn_from_and_raw_ones_stay():
    run = text_run("lstm")
    plain, warped = seen(run, next_token), seen(run, next_token, temperature=0.5, top_k=3)
    assert [panel.key for panel in plain.panels] == ["raw", "expected"]
    assert list(warped["raw"].values) == list(plain["raw"].values)
    squares = np.array(plain["raw"].values[:3]) ** 2
    assert np.allclose(warped["warped"].values[:3], squares / squares.sum())
    assert not any(warped["warped"].values[3:])


def test_what_came_has_its_probability_and_its_rank():
    run = text_run("gpt")
    with torch.no_grad():
        ids = run.writer.prompt_ids(TEXT)
        probs = logits_of(run.model, ids[None])[0].softmax(-1)
    rows = seen(run, next_token)["expected"].rows
    for place, row in enumerate(rows[:-1]):
        assert row[5] == pytest.approx(float(probs[place, ids[place + 1]]))
        assert row[6] == 1 + int((probs[place] > probs[place, ids[place + 1]]).sum())
    assert rows[-1][4:] == [None, None, None]


def test_positions_are_chosen_and_unknown_ones_refused():
    run = text_run("rnn")
    assert seen(run, next_token, position=0).title == "What comes after '<s>'"
    with pytest.raises(UsageError, match="positions 1 to 6, and 0, its start"):
        seen(run, next_token, position=7)


def test_the_first_mask_is_filled_in_unless_another_place_is_asked_for():
    view = seen(masked_run(), masked_token, "the [MASK] sees a cat")
    assert view.about["position"] == 2
    assert seen(masked_run(), masked_token, "the dog").about["position"] == 2


def test_classes_and_tags_are_probabilities():
    bars = seen(class_run(), class_of)["raw"]
    assert sorted(bars.names) == sorted(CLASSES)
    assert sum(bars.values) == pytest.approx(1)
    tags = seen(tag_run(), class_of)["tags"]
    assert tags.weights.shape == (3, 6)
    assert np.allclose(tags.weights.sum(0), 1)


def test_a_text_that_is_written_from_a_source_has_its_next_token_too():
    view = seen(pair_run("bahdanau"), next_token, TEXT, "the dog", position=1)
    assert view["expected"].rows[1][4] == "dog"


def test_controls_are_what_the_view_was_made_with():
    controls = {control.name: control for control in seen(text_run("gpt"), next_token, top_k=7).controls}
    assert controls["top_k"].value == 7
    assert list(controls["top_k"].values)[:2] == [None, 1]
    assert 7 in controls["top_k"].values
    assert controls["position"].value == 6
