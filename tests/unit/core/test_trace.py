"""A trace has what the taps saw, time in one axis, and says how far the readable path lies from the fast one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import regard
from regard.core.model import logits_of
from regard.core.tap import Traced, plain, record, trace
from regard.layers.pooling import PoolingConfig
from regard.models.encoder_stack import EncoderStack
from regard.models.labeller import LabellerConfig

TOKENS = torch.tensor([[1, 4, 2, 7, 5, 5, 3]])
SIZES = {"vocab_size": 11, "size": "tiny"}


def model_of(name: str, **settings: Any) -> Any:
    torch.manual_seed(3)
    return regard.build(name, **SIZES, **settings).double().eval()


@pytest.mark.parametrize("name", ["gpt", "lstm", "gru", "rnn", "s4d", "mamba", "mamba2", "backpack", "dan", "fnn"])
def test_every_array_has_the_time_of_the_text_and_outputs_are_those_of_a_call(name: str) -> None:
    model = model_of(name)
    seen = model.trace(TOKENS)
    assert len(seen) > 0
    assert seen.difference < 1e-12
    torch.testing.assert_close(seen.outputs, logits_of(model, TOKENS), rtol=0, atol=1e-12)
    for tap, array in seen.items():
        assert TOKENS.shape[1] in array.shape[1:], tap


def test_steps_of_a_loop_are_joined_in_their_order() -> None:
    model = model_of("lstm")
    with record(model, "*.forget_gate") as heard:
        model(TOKENS)
    (name, entries), *_ = heard.items()
    joined = model.trace(TOKENS)[name]
    assert joined.shape == (1, len(entries), entries[0].shape[1])
    for t, entry in enumerate(entries):
        torch.testing.assert_close(joined[:, t], entry)


def test_a_decoder_that_steps_shows_one_row_of_weights_a_step_and_its_memory_once() -> None:
    torch.manual_seed(3)
    model: Any = regard.build("bahdanau", **SIZES).double().eval()
    source = torch.tensor([[3, 1, 8, 2]])
    seen = model.trace(source, TOKENS)
    weights, keys = (seen[f"decoder.stack.aligned.attention.{name}"] for name in ("weights", "keys"))
    assert weights.shape == (1, 1, TOKENS.shape[1], 4)
    assert keys.shape[1] == 4
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 1, TOKENS.shape[1]).double())
    state = model.start(source)
    torch.testing.assert_close(model.alignment(TOKENS, state), weights.mean(1))


def test_listening_leaves_modes_and_taps_as_they_were() -> None:
    model = model_of("gpt").train()
    model.trace(TOKENS)
    assert model.training
    assert not any(getattr(part, "_forward_hooks", None) for part in model.modules())


def test_a_compiled_model_is_looked_at_as_what_it_was_compiled_from() -> None:
    class Wrapped(Traced):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self._orig_mod = inner

        def forward(self, tokens: torch.Tensor) -> Any:
            return self._orig_mod(tokens)

    model = model_of("gpt")
    wrapped = Wrapped(model)
    assert plain(wrapped) is model
    assert trace(wrapped, lambda: wrapped(TOKENS)[0]).arrays.keys() == model.trace(TOKENS).arrays.keys()


def test_a_pattern_hears_some_taps_only_and_a_summary_keeps_what_it_says() -> None:
    model = model_of("gpt")
    assert {name.rpartition(".")[2] for name in model.trace(TOKENS, pattern="*.weights")} == {"weights"}
    with record(model, "*.weights", keep=lambda weights: float(weights.detach().sum())) as heard:
        model(TOKENS)
    for entries in heard.values():
        assert entries == [pytest.approx(2 * TOKENS.shape[1])]


def test_a_classifier_can_be_traced() -> None:
    torch.manual_seed(0)
    encoder = EncoderStack("gpt", 8, 1, 2).config(11)
    model = LabellerConfig(encoder, 8, 2, PoolingConfig(8, "attention")).build().eval()
    seen = model.trace(TOKENS, torch.tensor([7]))
    assert seen.outputs.shape == (1, 2)
    torch.testing.assert_close(seen["pooling.weights"].sum(1), torch.ones(1))
