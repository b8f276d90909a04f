"""Sequences end to end against the same one by one: recurrences, attention, and whole models in a training step."""

from __future__ import annotations

import copy
import inspect
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn

from regard.core import registry
from regard.core.context import Context
from regard.core.mixer import Mixer
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.core.state import Position, State, advance, zero_position
from regard.data.batch import Batch
from regard.kernels import end_to_end
from regard.kernels.end_to_end import grouped, packed_recurrence, without_padding
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.gru import GruConfig
from regard.models.language import LanguageModelConfig
from regard.training.losses import model_loss

LENGTHS = [3, 40, 1, 17, 9, 2, 70, 16]
OFFSETS = torch.tensor([0, *torch.tensor(LENGTHS).cumsum(0).tolist()])
TOTAL = int(OFFSETS[-1])


def pieces(x: Tensor) -> list[Tensor]:
    return list(x.split(LENGTHS, 1))


def test_rows_of_similar_length_are_padded_together_and_come_back_in_order() -> None:
    x = torch.arange(TOTAL, dtype=torch.float64).reshape(1, TOTAL, 1)
    seen: list[list[int]] = []

    def call(rows: Tensor, lengths: Tensor) -> Tensor:
        assert rows.shape[:2] == (len(lengths), int(lengths.max()))
        seen.append(lengths.tolist())
        return 2 * rows

    assert torch.equal(grouped([x], OFFSETS, call), 2 * x)
    assert seen == [[3, 1, 9, 2, 16], [40], [17], [70]]


def test_an_empty_sequence_is_left_out() -> None:
    x = torch.randn(1, 5, 2)
    offsets = torch.tensor([0, 0, 2, 2, 5, 5])
    assert torch.equal(grouped([x], offsets, lambda rows, _: rows), x)
    cell = nn.GRU(2, 3, batch_first=True)
    expected = torch.cat([cell(x[:, :2])[0], cell(x[:, 2:])[0]], 1)
    torch.testing.assert_close(packed_recurrence(cell, x, offsets), expected)
    torch.testing.assert_close(without_padding(cell, x, offsets), expected)


@pytest.mark.parametrize("recurrence", [packed_recurrence, without_padding])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_recurrence_begins_anew_with_every_sequence(kind: Any, recurrence: Any) -> None:
    cell = kind(4, 5, batch_first=True).double()
    x = torch.randn(1, TOTAL, 4, dtype=torch.float64)
    expected = torch.cat([cell(piece)[0] for piece in pieces(x)], 1)
    torch.testing.assert_close(recurrence(cell, x, OFFSETS), expected, rtol=0, atol=1e-12)


SETTINGS: dict[str, dict[str, Any]] = {
    "causal": {},
    "full": {"causal": False},
    "window": {"window": 5},
    "full window": {"window": 5, "causal": False},
    "groups, rotary": {"n_kv_heads": 1, "position": "rotary"},
    "base": {"base": 3.0},
    "cosine": {"score": "cosine"},
}


def one_by_one(
    q: Tensor, k: Tensor, v: Tensor, bounds: Tensor, _k: Tensor, longest: int, _l: int, *, scale: float,
    window_size: tuple[int, int],
) -> Tensor:  # fmt: skip
    """What torch's `varlen_attn` is documented to do, sequence by sequence."""
    assert bounds.dtype == torch.int32
    assert longest == int(bounds.diff().max())
    found = []
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        apart = torch.arange(stop - start)[:, None] - torch.arange(stop - start)
        before, after = (TOTAL if side < 0 else side for side in window_size)
        scores = torch.einsum("ihk,jhk->hij", q[start:stop], k[start:stop]) * scale
        scores = scores.masked_fill((apart > before) | (-apart > after), float("-inf"))
        found.append(torch.einsum("hij,jhk->ihk", scores.softmax(-1), v[start:stop]))
    return torch.cat(found)


@pytest.mark.parametrize("name", SETTINGS)
def test_flash_attention_is_asked_for_what_the_rows_are_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    mixer = AttentionConfig(32, 2, **SETTINGS[name]).build().double()
    x = torch.randn(1, TOTAL, 32, dtype=torch.float64)
    expected = torch.cat([mixer(piece)[0] for piece in pieces(x)], 1)
    calls = []
    signature = inspect.signature(varlen_attn)

    def asked(*parts: Any, **settings: Any) -> Tensor:
        signature.bind(*parts, **settings)
        calls.append(1)
        return one_by_one(*parts, **settings)

    torch_like = SimpleNamespace(varlen_attn=asked)
    monkeypatch.setitem(sys.modules, "torch.nn.attention.varlen", torch_like)
    monkeypatch.setattr("regard.mixers.attention.varlen_takes", lambda q, dropout: True)
    found = mixer(x, None, Context(offsets=OFFSETS))[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert calls == ([] if name == "cosine" else [1]), "a score that is no plain product goes the other way"


@pytest.mark.gpu
@pytest.mark.parametrize("name", SETTINGS)
def test_flash_attention_of_sequences_end_to_end_on_a_device(name: str) -> None:
    torch.manual_seed(0)
    mixer = AttentionConfig(64, 2, **SETTINGS[name]).build().cuda().bfloat16()
    x = torch.randn(1, TOTAL, 64, device="cuda", dtype=torch.bfloat16)
    parameters = list(mixer.parameters())
    whole = mixer(x, None, Context(offsets=OFFSETS))[0]
    alone = torch.cat([mixer(piece)[0] for piece in pieces(x)], 1)
    torch.testing.assert_close(whole, alone, rtol=2e-2, atol=2e-2)
    weight = torch.randn_like(whole)
    for a, b in zip(*(torch.autograd.grad((y * weight).sum(), parameters) for y in (whole, alone)), strict=True):
        assert float((a - b).float().norm() / b.float().norm().clamp(min=1e-6)) < 3e-2


class Shift(Mixer):
    """A stranger's mixer that knows nothing of packing: y_t = W x_(t-1), zero before the beginning."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before_to_output = nn.Linear(width, width)

    def init_state(self, batch_size: int) -> State:
        return Position(zero_position(batch_size))

    def forward(self, x: Tensor, state: State, context: Context = Context()) -> tuple[Tensor, State]:
        assert context.offsets is None, "it is given rows"
        before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
        return self.before_to_output(before), Position(advance(state.position, x.shape[1], context.lengths))


class ShiftConfig(MixerConfig, kind="shift-of-a-stranger"):
    def build(self) -> Mixer:
        return Shift(self.d_model)


def strangers() -> nn.Module:
    layers = [AttentionConfig(8, 2, position="rotary"), ShiftConfig(8), GruConfig(8)]
    blocks = tuple(BlockConfig(8, layer, MlpConfig(8, 16), NormConfig(8)) for layer in layers)
    return LanguageModelConfig(EmbeddingConfig(11, 8), StackConfig(8, blocks)).build()


def registered(name: str, **settings: Any) -> nn.Module:
    return registry.build(name, vocab_size=11, size="tiny", **settings)


MODELS = {
    "gpt": lambda: registered("gpt"),
    "gpt, learned positions": lambda: registered("gpt", position="learned", max_length=128),
    "lstm": lambda: registered("lstm"),
    "gru": lambda: registered("gru"),
    "rnn": lambda: registered("rnn"),
    "fnn": lambda: registered("fnn"),
    "dan": lambda: registered("dan"),
    "s4d": lambda: registered("s4d"),
    "mamba": lambda: registered("mamba"),
    "mamba2": lambda: registered("mamba2"),
    "with a stranger": strangers,
}


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_of_documents_end_to_end_is_that_of_padded_ones(name: str) -> None:
    torch.manual_seed(0)
    model: Any = MODELS[name]().double()
    tokens = torch.randint(11, (1, TOTAL))
    lengths = torch.tensor(LENGTHS)
    together = Batch(tokens, tokens.roll(-1, 1), lengths, list(range(len(LENGTHS))), packed=True)
    rows = [nn.functional.pad(part[0], (0, 70 - part.shape[1])) for part in pieces(tokens)]
    wanted = [nn.functional.pad(part[0], (0, 70 - part.shape[1]), value=-100) for part in pieces(together.targets)]
    apart = replace(together, tokens=torch.stack(rows), targets=torch.stack(wanted), packed=False)
    found = []
    for batch in (together, apart):
        loss = model_loss(model, batch)
        gradients = torch.autograd.grad(loss.total, list(model.parameters()))
        assert int(loss.n_targets) == TOTAL
        found.append([loss.total, *gradients])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_which_models_read_documents_without_padding() -> None:
    packs = {name for name in MODELS if MODELS[name]().packs}
    assert packs == {"gpt", "gpt, learned positions", "lstm", "gru", "rnn", "fnn"}


def test_another_forward_takes_packed_rows_only_if_it_says_so() -> None:
    class Other(type(AttentionConfig(8, 2).build())):
        def forward(self, x: Tensor, state: State | None = None, context: Context = Context()) -> Any:
            assert context.offsets is None
            return super().forward(x, state, context)

    mixer = Other(AttentionConfig(8, 2)).double()
    x = torch.randn(1, TOTAL, 8, dtype=torch.float64)
    plain = copy.deepcopy(mixer)
    expected = torch.cat([plain(piece)[0] for piece in pieces(x)], 1)
    torch.testing.assert_close(mixer(x, None, Context(offsets=OFFSETS))[0], expected)


def test_varlen_is_for_half_precision_on_a_gpu_without_dropout() -> None:
    def like(device: str, dtype: torch.dtype, width: int) -> Any:
        return SimpleNamespace(device=SimpleNamespace(type=device), dtype=dtype, shape=(1, TOTAL, 2, width))

    assert end_to_end.varlen_takes(like("cuda", torch.bfloat16, 64), 0.0)
    assert not end_to_end.varlen_takes(like("cpu", torch.bfloat16, 64), 0.0)
    assert not end_to_end.varlen_takes(like("cuda", torch.float32, 64), 0.0)
    assert not end_to_end.varlen_takes(like("cuda", torch.bfloat16, 20), 0.0)
    assert not end_to_end.varlen_takes(like("cuda", torch.bfloat16, 64), 0.1)
