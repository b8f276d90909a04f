"""Weight drop: hidden-to-hidden weights that are gone from a call, by torch's own cells given what is left."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.core.context import Context
from regard.core.mixer import Mixer
from regard.core.tap import record
from regard.errors import UsageError
from regard.kernels.fused_cell import HIDDEN, run_cell
from regard.mixers.gru import GruConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.rnn import RnnConfig

KINDS: dict[str, Any] = {"rnn": RnnConfig, "gru": GruConfig, "lstm": LstmConfig}
LENGTHS = torch.tensor([6, 3, 0])


def made(kind: str, share: float = 0.5) -> Mixer:
    torch.manual_seed(1)
    return KINDS[kind](5, d_hidden=7, project=True, weight_dropout=share).build().double().train()


def drawn(mixer: Any, seed: int) -> Tensor:
    """W_hh as the next call will drop it: the first thing that is drawn in it."""
    torch.manual_seed(seed)
    weight = mixer.cell.get_parameter(HIDDEN)
    return weight * nn.functional.dropout(torch.ones_like(weight), mixer.weight_dropout.p)


def reference(mixer: Any, x: Tensor, dropped: Tensor) -> Tensor:
    """torch's own cell with that matrix as its parameter."""
    cell = copy.deepcopy(mixer.cell)
    with torch.no_grad():
        cell.get_parameter(HIDDEN).copy_(dropped)
    return mixer.hidden_to_output(cell(x)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_one_draw_serves_all_tokens_of_a_call_in_every_form(kind: str) -> None:
    mixer, x = made(kind), torch.randn(3, 6, 5, dtype=torch.float64)
    before = {name: value.clone() for name, value in mixer.state_dict().items()}
    expected = reference(mixer, x, drawn(mixer, 7))
    torch.manual_seed(7)
    fused, _ = mixer(x)
    torch.testing.assert_close(fused, expected, rtol=0, atol=1e-12)
    torch.manual_seed(7)
    with record(mixer, "*"):  # written out, token by token
        readable, _ = mixer(x)
    torch.testing.assert_close(readable, expected, rtol=0, atol=1e-12)
    torch.manual_seed(7)
    padded, _ = mixer(x, mixer.init_state(3), Context(lengths=LENGTHS))
    torch.testing.assert_close(padded[1, :3], expected[1, :3], rtol=0, atol=1e-12)
    torch.manual_seed(7)
    packed, _ = mixer(torch.cat([x[0], x[1, :3]])[None], None, Context(offsets=torch.tensor([0, 6, 9])))
    torch.testing.assert_close(packed[0], torch.cat([expected[0], expected[1, :3]]), rtol=0, atol=1e-12)
    assert all(torch.equal(value, before[name]) for name, value in mixer.state_dict().items())


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_weights_that_are_left(kind: str) -> None:
    mixer: Any = made(kind)
    x = torch.randn(2, 5, 5, dtype=torch.float64)
    left = drawn(mixer, 3).detach() != 0
    torch.manual_seed(3)
    mixer(x)[0].square().sum().backward()
    found = mixer.cell.get_parameter(HIDDEN).grad
    assert found[~left].abs().max() == 0
    assert found[left].abs().min() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_at_rest_it_is_the_plain_cell(kind: str) -> None:
    mixer, plain = made(kind).eval(), made(kind, 0.0)
    x = torch.randn(2, 4, 5, dtype=torch.float64)
    assert torch.equal(mixer(x)[0], plain(x)[0])


def test_a_share_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="weight_dropout must lie in"):
        LstmConfig(4, weight_dropout=1.0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_on_a_gpu_the_fused_loop_reads_the_other_matrix(kind: type[nn.RNNBase], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    cell: Any = kind(6, 5, batch_first=True).cuda()  # pyright: ignore
    x, other = torch.randn(3, 4, 6, device="cuda"), copy.deepcopy(cell)
    dropped = nn.functional.dropout(cell.get_parameter(HIDDEN).detach(), 0.5)
    with torch.no_grad():
        other.get_parameter(HIDDEN).copy_(dropped)
    other.flatten_parameters()  # a copy's weights lie in pieces
    with torch.autocast("cuda", dtype, enabled=dtype != torch.float32), warnings.catch_warnings():
        warnings.simplefilter("error")  # weights in pieces would be told
        got, expected = run_cell(cell, x, None, dropped)[0], run_cell(other, x)[0]
    torch.testing.assert_close(got, expected)
