"""Recurrent stacks against torch's multi-layer RNN, LSTM and GRU on random weights."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core.bidirectional import BidirectionalConfig
from regard.core.context import Context, real_tokens
from regard.core.mixer import Mixer
from regard.core.stack import MixerConfig, StackConfig
from regard.core.state import State
from regard.core.tap import record
from regard.mixers.gru import GruConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.rnn import RnnConfig

WIDTH, N_LAYERS = 6, 3
KINDS: dict[str, tuple[type[nn.RNNBase], Callable[[bool], MixerConfig]]] = {
    "rnn": (nn.RNN, lambda bias: RnnConfig(WIDTH, bias=bias)),
    "lstm": (nn.LSTM, lambda bias: LstmConfig(WIDTH, bias=bias)),
    "gru": (nn.GRU, lambda bias: GruConfig(WIDTH, bias=bias)),
}
LENGTHS = torch.tensor([5, 1, 7, 3])


def pair(kind: str, bias: bool = True) -> tuple[nn.RNNBase, Mixer]:
    """torch's net of several layers and ours with the same numbers, in float64."""
    cell, config = KINDS[kind]
    theirs = cell(WIDTH, WIDTH, N_LAYERS, bias=bias, batch_first=True).double()
    ours = StackConfig(WIDTH, (config(bias),) * N_LAYERS).build().double()
    weights = {}
    for name, value in theirs.state_dict().items():
        stem, _, layer = name.rpartition("_l")
        weights[f"layers.{layer}.cell.{stem}_l0"] = value
    ours.load_state_dict(weights)
    return theirs, ours


def reference(theirs: nn.RNNBase, x: Tensor, lengths: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs (B, T, D) and last states (L, B, D or 2 D) by packed sequences, from `first` (L, B, D or 2 D)."""
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    is_lstm = isinstance(theirs, nn.LSTM)
    outputs, last = theirs(packed, tuple(first.split(WIDTH, -1)) if is_lstm else first)
    y, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
    return y, torch.cat(last, -1) if is_lstm else last


def vectors(state: State) -> Tensor:
    """The hidden vectors (and cells) of every layer of a stack's state, (L, B, D or 2 D)."""
    return torch.stack([torch.cat([t for t in part.tensors() if t.is_floating_point()], -1) for part in state.parts])


def close(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_stack_equals_torch_on_rows_of_unequal_length(kind: str, bias: bool) -> None:
    theirs, ours = pair(kind, bias)
    x, more = torch.randn(4, 7, WIDTH).double(), torch.randn(4, 5, WIDTH).double()
    real, context = real_tokens(LENGTHS, x), Context(lengths=LENGTHS)
    state = ours.init_state(4)
    expected, last = reference(theirs, x, LENGTHS, vectors(state))
    y, state = ours(x, state, context)
    close(y[real], expected[real])
    close(vectors(state), last)
    assert state.position.tolist() == LENGTHS.tolist()
    # A second chunk goes on from where each row stands.
    expected, last = reference(theirs, more, torch.full((4,), 5), last)
    y, state = ours(more, state)
    close(y, expected)
    close(vectors(state), last)


@pytest.mark.parametrize("kind", KINDS)
def test_written_out_equations_equal_torch(kind: str) -> None:
    theirs, ours = pair(kind)
    x = torch.randn(2, 6, WIDTH).double()
    expected, _ = theirs(x)
    state, outputs = ours.init_state(2), []
    for t in range(x.shape[1]):
        y, state = ours.step(x[:, t], state)
        outputs.append(y)
    close(torch.stack(outputs, 1), expected)
    with record(ours):  # a heard tap takes the readable path over the whole chunk
        close(ours(x)[0], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_torch(kind: str) -> None:
    theirs, ours = pair(kind)
    x, weights = torch.randn(4, 7, WIDTH).double(), torch.randn(4, 7, WIDTH).double()
    counted = weights * real_tokens(LENGTHS, x)[..., None]
    expected, _ = reference(theirs, x, LENGTHS, vectors(ours.init_state(4)))
    (expected * counted).sum().backward()
    (ours(x, None, Context(lengths=LENGTHS))[0] * counted).sum().backward()
    for name, parameter in theirs.named_parameters():
        stem, _, layer = name.rpartition("_l")
        found = ours.get_parameter(f"layers.{layer}.cell.{stem}_l0").grad
        assert parameter.grad is not None
        assert found is not None
        close(found, parameter.grad)


@pytest.mark.parametrize("kind", KINDS)
def test_bidirectional_equals_torch_on_rows_of_unequal_length(kind: str) -> None:
    cell, config = KINDS[kind]
    theirs = cell(WIDTH, WIDTH, bidirectional=True, batch_first=True).double()
    ours = BidirectionalConfig(WIDTH, config(True), project=False).build().double()
    weights = {}
    for name, value in theirs.state_dict().items():
        direction = "future" if name.endswith("_reverse") else "past"
        weights[f"{direction}.cell.{name.removesuffix('_reverse')}"] = value
    ours.load_state_dict(weights)
    x = torch.randn(4, 7, WIDTH).double()
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)
    y, _ = ours(x, ours.init_state(4), Context(lengths=LENGTHS))
    real = real_tokens(LENGTHS, x)
    close(y[real], expected[real])
