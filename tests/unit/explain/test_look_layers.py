"""The lens, the units of nets and the habits of heads, against the same computed here by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from look_run import TEXT, TOKENIZER, class_run, masked_run, pair_run, seen, text_run
from regard.errors import UsageError
from regard.explain.contexts import KNOWN, SENTENCES, contexts
from regard.explain.habits import HABITS, Repeated, measured, named, repeated
from regard.explain.inputs import read
from regard.explain.look import options_from
from regard.explain.looks.attention import attention, heads
from regard.explain.looks.induction import induction
from regard.explain.looks.lens import PLACES, around, lens
from regard.explain.looks.meaning import meaning
from regard.explain.looks.neurons import neurons, nudged
from regard.explain.looks.what_if import drop
from regard.explain.outcome import passes
from regard.explain.registry import shown, view, views

LAST = len(TEXT.split())  # the start is position 0


@torch.no_grad()
def answers_by_hand(run: Any, text: str) -> torch.Tensor:
    """softmax(head(norm(x_l))) of the stream after each layer, one layer after the other, (L + 1, T, V)."""
    model, tokens = run.model, read(run, text).inputs[0]
    x = model.embedding(tokens, torch.zeros(1, dtype=torch.long))
    found = [x]
    for layer in model.stack.layers:
        x = layer(x)[0]
        found.append(x)
    return torch.cat([model.head(model.norm(one)) for one in found]).softmax(-1)


@pytest.mark.parametrize(
    ("run", "text"),
    [(text_run("gpt"), TEXT), (text_run("mamba"), TEXT), (masked_run(), "the small [MASK] sees a cat")],
    ids=["gpt", "mamba", "bert"],
)
def test_a_layer_would_answer_what_the_norm_and_the_head_make_of_its_stream(run: Any, text: str) -> None:
    made = seen(run, lens, text)
    place = made.about["position"]  # the start has the number 0
    probs = answers_by_hand(run, text)[:, place].numpy()  # (L + 1, V)
    answer = int(probs[-1].argmax())
    for row, (name, first, share, _, chance, rank) in enumerate(made["layers"].rows):
        assert name == ("before" if row == 0 else f"layer {row}")
        assert first == read(run, text).named(int(probs[row].argmax()))
        assert (share, chance) == pytest.approx((probs[row].max(), probs[row, answer]))
        assert rank == 1 + int((probs[row] > probs[row, answer]).sum())
    line = next(iter(made["probability"].lines.values()))
    assert [y for _, y in line] == pytest.approx(probs[:, answer])


def test_the_last_row_of_the_lens_is_the_answer_of_the_model() -> None:
    run = text_run("gpt")
    with torch.no_grad():
        logits = read(run, TEXT).run()[0]
    np.testing.assert_allclose(seen(run, lens)["answers"].weights[-1], logits.softmax(-1).amax(-1).numpy(), atol=1e-12)


def test_the_map_of_a_long_text_has_the_positions_up_to_the_one_that_is_asked_for() -> None:
    assert around(999, 1024, causal=True) == list(range(1000 - PLACES, 1000))
    assert around(0, 1024, causal=False) == list(range(PLACES))
    assert 500 in around(500, 1024, causal=False)
    assert len(around(500, 1024, causal=False)) == PLACES


def test_looks_are_offered_where_a_model_can_answer_them() -> None:
    gpt, fnn, mamba, bert = (views(run) for run in (text_run("gpt"), text_run("fnn"), text_run("mamba"), masked_run()))
    assert {"lens", "neurons", "induction"} <= gpt.keys() & bert.keys()
    assert "lens" in mamba
    assert not {"neurons", "induction"} & mamba.keys()
    assert not {"lens", "neurons", "induction"} & fnn.keys()
    assert not {"lens", "induction"} & views(pair_run("transformer")).keys()
    assert not {"lens", "neurons", "induction"} & views(class_run()).keys()


@torch.no_grad()
def test_values_of_a_unit_are_those_of_the_net_and_it_writes_its_row() -> None:
    run: Any = text_run("gpt")
    block = run.model.stack.layers[0]
    x = run.model.embedding(read(run, TEXT).inputs[0], torch.zeros(1, dtype=torch.long))
    stream = x + block.mixer(block.mixer_norm(x))[0]
    net = block.mlp
    hidden = net.activation(net.input_to_hidden(block.mlp_norm(stream)))[0]  # (T, F)
    made = seen(run, neurons, layer=1, neuron=3, position=LAST)
    assert made["values"].values == pytest.approx(hidden[:, 2].tolist())
    sizes = hidden[-1].abs() * net.hidden_to_output.weight.norm(dim=0)
    assert [row[0] - 1 for row in made["strongest"].rows] == sizes.argsort(descending=True)[
        : len(made["strongest"].rows)
    ].tolist()
    # The slope of the logits along the row of the unit, by automatic differentiation.
    final = run.model.stack(x)[0][0, -1].requires_grad_()
    row = net.hidden_to_output.weight[:, 2]
    with torch.enable_grad():
        logits = run.model.head.weight @ run.model.norm(final[None])[0]
        slope = [(torch.autograd.grad(one, final, retain_graph=True)[0] @ row).item() for one in logits]
    sign = 1 if hidden[-1, 2] >= 0 else -1
    for name, value in zip(made["writes"].names, made["writes"].values, strict=True):
        token = next(one for one in range(len(slope)) if read(run, TEXT).named(one) == name)
        assert value == pytest.approx(sign * slope[token], rel=1e-2, abs=1e-4)


def test_a_nudge_of_a_linear_map_is_the_map() -> None:
    matrix, at, rows = torch.randn(5, 4).double(), torch.randn(4).double(), torch.randn(3, 4).double()
    assert torch.allclose(nudged(lambda x: x @ matrix.T, at, rows), rows @ matrix.T)


def test_a_neuron_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"neuron 999: the layer has neurons 1 to \d+"):
        seen(text_run("gpt"), neurons, neuron=999)


def test_heads_made_by_hand_have_their_names() -> None:
    given = Repeated(torch.zeros(1, 9, dtype=torch.long), before=1, half=4)
    places = np.arange(9)
    looks = {
        "induction": np.where(places >= 5, places - 3, 0),
        "previous token": np.maximum(places - 1, 0),
        "next token": np.minimum(places + 1, 8),
        "same token": np.where(places >= 5, places - 4, 0),
        "first token": np.zeros(9, int),
    }
    shares = measured(np.stack([np.eye(9)[column] for column in looks.values()]), given)
    np.testing.assert_allclose(shares, np.eye(5))
    assert [named(one) for one in shares] == list(looks) == list(HABITS)
    assert named(measured(np.full((1, 9, 9), 1 / 9), given)[0]) == ""


@torch.no_grad()
def test_a_share_is_the_weight_on_the_token_after_the_same_one() -> None:
    run: Any = text_run("gpt")
    given = repeated(read(run, TEXT), seed=3)
    assert given is not None
    tokens = given.tokens[0].tolist()
    half = given.half
    assert tokens[1 : 1 + half] == tokens[1 + half :]
    assert len(set(tokens[1:])) == half == len({*tokens[1:]} - {TOKENIZER.eos_id, TOKENIZER.unknown_id})
    made = seen(run, induction, seed=3)
    trace = run.model.trace(given.tokens)
    for layer, head, _, share, previous, *_ in made["heads"].rows:
        weights = trace[f"stack.layers.{layer - 1}.mixer.weights"][0, head - 1]
        second = range(1 + half, 1 + 2 * half)
        assert share == pytest.approx(np.mean([float(weights[i, i - half + 1]) for i in second]), abs=1e-4)
        assert previous == pytest.approx(np.mean([float(weights[i, i - 1]) for i in second]), abs=1e-4)


def test_heads_are_named_in_their_overview_where_a_model_can_be_tried() -> None:
    assert seen(text_run("gpt"), heads)["heads"].columns[-1] == "habit"
    assert seen(masked_run(), heads)["heads"].columns[-1] == "habit"
    assert "habit" not in seen(pair_run("transformer"), heads, target="the cat")["heads"].columns


def test_a_model_that_knows_none_of_the_sentences_is_shown_without_them() -> None:
    run = text_run("gpt")
    assert contexts(run).readings == []
    assert 0 < KNOWN <= 1
    made = seen(run, meaning, "the dog sees a cat", word="dog")
    assert [panel.key for panel in made.panels] == ["looks"]
    with pytest.raises(UsageError, match="the word 'tree' is not in the text"):
        seen(run, meaning, "the dog sees a cat", word="tree")


@torch.no_grad()
def test_a_large_model_leaves_out_parts_of_a_text_instead_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    run: Any = text_run("gpt")
    tokens = read(run, TEXT).inputs[0]
    monkeypatch.setattr("regard.explain.looks.what_if.passes", lambda reading: 4)
    made = seen(run, drop)
    whole = run.model.head(run.model(tokens)[0])[0, -1].log_softmax(-1)
    answer = int(whole.argmax())
    wanted = []
    for first in (1, 3, 5):  # six words in parts of two, and the start is none
        left = tokens[:, [place for place in range(tokens.shape[1]) if place not in (first, first + 1)]]
        wanted.append(float(run.model.head(run.model(left)[0])[0, -1].log_softmax(-1)[answer] - whole[answer]))
    assert made["changes"].values == pytest.approx(wanted)
    assert made["changes"].names[0] == "the (1 to 2)"
    assert "A part has 2 tokens" in made["changes"].note


def test_a_text_may_be_read_often_by_a_small_model_and_eight_times_by_the_largest() -> None:
    small = read(text_run("gpt"), TEXT)
    assert passes(small) > 1000
    with torch.device("meta"):
        assert passes(replace(small, model=torch.nn.Linear(10**5, 10**6))) == 8


def test_what_was_seen_before_is_shown_again_without_reading_the_text_again() -> None:
    run: Any = text_run("gpt")
    calls, kept = [], {}
    handle = run.model.stack.register_forward_hook(lambda *_: calls.append(1))
    asked: list[dict[str, Any]] = [{"layer": 1}, {"layer": 1, "head": 2}, {"layer": 2, "head": 2}]
    found = [shown(run, "attention", TEXT, options_from(one), kept=kept)["weights"].weights for one in asked]
    handle.remove()
    assert len(calls) == 3  # fast, and once for each layer
    for one, weights in zip(asked, found, strict=True):
        np.testing.assert_array_equal(weights, seen(run, attention, **one)["weights"].weights)


def test_sentences_are_many_and_none_comes_twice() -> None:
    assert len(set(SENTENCES)) == len(SENTENCES) >= 50


def test_every_new_look_goes_through_every_way_of_showing_it() -> None:
    run = text_run("gpt")
    for name in ("lens", "neurons", "induction"):
        made = view(run, name, TEXT)
        assert made.caveat
        assert made.to_dict()["view"] == name
        assert made.to_html().startswith("<!doctype html>")
        assert "<svg" in made.to_svg()
        assert made.remake is not None
        assert made.remake({}).title == made.title
