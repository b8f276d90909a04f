"""The kernels of a step (linear maps of few rows, norms, the greedy token) equal the readable forms."""

from __future__ import annotations

import math
from typing import get_args

import pytest
import torch
from torch import nn

from kernels.triton_here import DEVICE, INTERPRETED, needs_kernel
from regard.decoding.drawing import next_tokens
from regard.decoding.logits_processing import GREEDY, RowSettings, raw_log_probs
from regard.kernels.choice import takes_kernel
from regard.layers.head import LinearHead
from regard.layers.linear import ACTIVATIONS, Activation, Linear, has_few_rows
from regard.layers.mlp import MlpConfig
from regard.layers.norm import LayerNorm, NormConfig, RmsNorm

TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
HALF = [torch.float16, torch.bfloat16]
TYPES = [torch.float32] if INTERPRETED else list(TOLERANCE)


@needs_kernel
@torch.no_grad()
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rows", "wide", "many"), [(1, 5, 3), (1, 768, 40), (3, 1600, 9), (4, 2100, 70), (2, 33, 129)])
def test_few_rows_are_multiplied_as_many_are(rows: int, wide: int, many: int, bias: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layer = Linear(wide, many, bias=bias).to(DEVICE, dtype)
    x, residual = torch.randn(rows, 1, wide, device=DEVICE, dtype=dtype), torch.randn(rows, 1, many, device=DEVICE)
    residual = residual.to(dtype)
    assert has_few_rows(x, layer.weight, layer.bias, residual)
    exact = torch.nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double() if bias else None)
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(layer(x).double(), exact, **close)
    torch.testing.assert_close(layer(x, residual=residual).double(), exact + residual.double(), **close)
    # A view as the last token of each row is.
    wider = torch.stack([x[:, 0], x[:, 0] + 1], 1)
    torch.testing.assert_close(layer(wider[:, 0]), layer(x[:, 0]))


@needs_kernel
@torch.no_grad()
@pytest.mark.parametrize("name", get_args(Activation))
def test_what_follows_a_product_is_that_of_its_name(name: Activation) -> None:
    torch.manual_seed(0)
    layer = Linear(40, 64).to(DEVICE)
    x = 4 * torch.randn(2, 40, device=DEVICE)
    exact = ACTIVATIONS[name](torch.nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double()))
    torch.testing.assert_close(layer(x, name).double(), exact, rtol=2e-5, atol=2e-5)
    assert layer(x[:1] * math.nan, name).isnan().all()


@needs_kernel
def test_gradients_and_wide_numbers_take_the_readable_form() -> None:
    layer, x = Linear(8, 4).to(DEVICE), torch.randn(1, 8, device=DEVICE)
    assert not has_few_rows(x, layer.weight, layer.bias)
    with torch.no_grad():
        assert has_few_rows(x, layer.weight, layer.bias)
        assert not has_few_rows(x.double(), layer.weight, layer.bias)
        assert not has_few_rows(x.expand(5, -1), layer.weight, layer.bias)
        with torch.autocast(x.device.type, torch.bfloat16):
            assert not takes_kernel(x)


@needs_kernel
@torch.no_grad()
@pytest.mark.parametrize("dtype", HALF[:1] if INTERPRETED else HALF, ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rows", "wide", "many"), [(5, 40, 33), (17, 200, 101), (64, 2100, 40), (60, 128, 300)])
def test_some_rows_are_multiplied_as_many_are(rows: int, wide: int, many: int, bias: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layer = Linear(wide, many, bias=bias).to(DEVICE, dtype)
    x, residual = (torch.randn(rows, 1, width, device=DEVICE, dtype=dtype) for width in (wide, many))
    assert has_few_rows(x, layer.weight, layer.bias, residual)
    exact = torch.nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double() if bias else None)
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(layer(x).double(), exact, **close)
    found = layer(x, "silu", residual)
    torch.testing.assert_close(found.double(), nn.functional.silu(exact) + residual.double(), **close)
    assert torch.equal(found, layer(x, "silu", residual))
    wider = torch.stack([x[:, 0], x[:, 0] + 1], 1)
    torch.testing.assert_close(layer(wider[:, 0]), layer(x[:, 0]))


@needs_kernel
@torch.no_grad()
def test_any_number_of_classes_is_found_for_many_rows() -> None:
    torch.manual_seed(0)
    head = LinearHead(32, 101).to(DEVICE, torch.float16)
    x = torch.randn(2, 75, 32, device=DEVICE, dtype=torch.float16)
    assert has_few_rows(x, head.weight, head.bias, most=256)
    exact = nn.functional.linear(x.double(), head.weight.double(), None if head.bias is None else head.bias.double())
    torch.testing.assert_close(head(x).double(), exact, rtol=4e-3, atol=4e-3)


@needs_kernel
@torch.no_grad()
@pytest.mark.parametrize("gated", [True, False])
def test_a_net_adds_what_it_is_given(gated: bool) -> None:
    torch.manual_seed(0)
    net = MlpConfig(24, 50, "silu", gated).build().to(DEVICE)
    x, stream = torch.randn(2, 2, 1, 24, device=DEVICE)
    torch.testing.assert_close(net(x, stream), stream + net.double()(x.double()).float(), rtol=1e-5, atol=1e-5)


@needs_kernel
@torch.no_grad()
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("form", ["layer", "rms"])
@pytest.mark.parametrize("width", [3, 64, 1600])
def test_a_norm_is_the_same_in_one_kernel(width: int, form: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    norm = NormConfig(width, form).build().to(DEVICE, dtype)  # pyright: ignore[reportArgumentType]
    assert isinstance(norm, LayerNorm | RmsNorm)
    for parameter in norm.parameters():
        parameter.normal_()
    x, add = (3 + torch.randn(2, 5, 2, width, device=DEVICE)).to(dtype)[:, :, 0]
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    total, both = norm(x, add)
    assert torch.equal(total, x + add)
    alone = norm(x)
    exact = norm.double()
    torch.testing.assert_close(alone.double(), exact(x.double()), **close)
    torch.testing.assert_close(both.double(), exact(total.double()), **close)


@needs_kernel
@pytest.mark.parametrize(("rows", "width"), [(1, 2), (1, 5000), (3, 1025), (40, 2100)])
def test_the_greedy_token_is_the_first_of_the_largest(rows: int, width: int) -> None:
    torch.manual_seed(0)
    x = (torch.randn(rows, width) * 2).round()
    x[0, :-1] = -math.inf
    x[1:2] = 0  # of which the first is the first of all
    settings = RowSettings.of([GREEDY] * rows, torch.device(DEVICE))
    tokens, log_probs = next_tokens(x.to(DEVICE), settings, None, "greedy")
    assert tokens.tolist() == [int(torch.nonzero(row == row.max())[0]) for row in x]
    expected = raw_log_probs(x.double()).gather(1, tokens.cpu()[:, None])[:, 0]
    torch.testing.assert_close(log_probs.cpu().double(), expected, rtol=1e-5, atol=1e-5)


@needs_kernel
@pytest.mark.parametrize("bad", [[math.nan, 0.0, 1.0], [math.inf, 0.0, 1.0], [-math.inf] * 3])
def test_a_greedy_row_without_a_distribution_is_told(bad: list[float]) -> None:
    logits = torch.tensor([bad, [0.0, 2.0, 1.0]], device=DEVICE)
    tokens, log_probs = next_tokens(logits, RowSettings.of([GREEDY] * 2, logits.device), None, "greedy")
    assert log_probs.isnan().tolist() == [True, False]
    assert 0 <= int(tokens[0]) < 3
    assert int(tokens[1]) == 1
