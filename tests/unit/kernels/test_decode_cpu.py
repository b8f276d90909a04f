"""Compiled products, norms and attention of few rows are the equations, computed here in float64."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.core import registry
from regard.core.state import State
from regard.kernels import decode_cpu, packed
from regard.kernels.compiled import library
from regard.kernels.int8 import quantised
from regard.kernels.packed import packed_weights

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler")


@torch.no_grad()
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize(("wide", "many"), [(64, 1), (640, 33), (7, 5), (130, 300)])
def test_products_are_those_of_float64(wide: int, many: int, rows: int) -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(rows, wide), torch.randn(many, wide), torch.randn(many)
    q, scale = quantised(weight)
    for step, exact in (
        (decode_cpu.linear(weight, bias), weight.double()),
        (decode_cpu.linear_int8(q, scale, bias), q.double() * scale.double()[:, None]),
    ):
        assert step is not None
        found, inner = step(x), step(x[None])
        assert found is not None
        assert inner is not None
        torch.testing.assert_close(found, (x.double() @ exact.T + bias).float(), rtol=1e-5, atol=1e-4)
        assert torch.equal(inner[0], found)


@torch.no_grad()
def test_a_norm_is_that_of_float64() -> None:
    x, weight = torch.randn(2, 2, 70) * 3, torch.randn(70)
    wide = x.double()
    exact = wide / (wide.square().mean(-1, keepdim=True) + 1e-3).sqrt() * weight.double()
    step = decode_cpu.rms_norm(weight, 1e-3)
    found = None if step is None else step(x)
    assert found is not None
    torch.testing.assert_close(found, exact.float(), rtol=1e-5, atol=1e-5)


def attended(q: Tensor, keys: Tensor, values: Tensor, last: int, window: int | None, scale: float) -> Tensor:
    """One head's sum over the slots that it sees, in float64."""
    first = 0 if window is None else max(0, last - window + 1)
    scores = keys[first : last + 1] @ q * scale
    return scores.softmax(0) @ values[first : last + 1]


def turned(x: Tensor, position: int, base: float) -> Tensor:
    """Pairs of neighbours as complex numbers times e^(i p f)."""
    angles = position * base ** (-torch.arange(0, len(x), 2, dtype=torch.float64) / len(x))
    pairs = torch.view_as_complex(x.view(-1, 2).contiguous()) * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(pairs).flatten()


def normed(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return x / (x.square().mean() + epsilon).sqrt() * weight


@pytest.mark.parametrize("number", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize(("groups", "placed"), [(1, True), (2, False), (4, True)])
def test_attention_of_one_token_is_the_equation(
    groups: int, placed: bool, window: int | None, number: torch.dtype
) -> None:
    torch.manual_seed(0)
    rows, heads, width, slots, base, epsilon = 2, 4, 18, 9, 100.0, 1e-5
    rounding = {torch.float32: 1e-5, torch.bfloat16: 2**-8}[number]
    projected = torch.randn(rows, heads + 2 * groups, width, dtype=number)
    q, k, v = projected.split([heads, groups, groups], 1)
    keys, values = (torch.randn(rows, slots, groups, width, dtype=number) for _ in range(2))
    weights = torch.rand(width, dtype=number), torch.rand(width, dtype=number)
    count = torch.tensor([0, 6])
    before, cache = projected.clone(), (keys.double(), values.double())
    norms = (*weights, epsilon) if placed else None
    step = decode_cpu.AttentionStep(0.3, window, norms, base if placed else None)
    found = step(q, (k, v), (keys, values), count)
    assert torch.equal(projected, before)
    for row, place in enumerate(count.tolist()):

        def made(x: Tensor, weight: Tensor, place: int = place) -> Tensor:
            return turned(normed(x.double(), weight.double(), epsilon), place, base) if placed else x.double()

        for group in range(groups):
            cache[0][row, place, group] = made(k[row, group], weights[1])
            cache[1][row, place, group] = v[row, group].double()
        for head in range(heads):
            own = [part[row, :, head // (heads // groups)] for part in cache]
            exact = attended(made(q[row, head], weights[0]), own[0], own[1], place, window, 0.3)
            torch.testing.assert_close(found[row, head].double(), exact, rtol=10 * rounding, atol=2 * rounding)
    torch.testing.assert_close(keys.double(), cache[0], rtol=rounding, atol=rounding)
    torch.testing.assert_close(values.double(), cache[1], rtol=0, atol=0)


@torch.no_grad()
@pytest.mark.parametrize("slots", [5, 16, 50])
@pytest.mark.parametrize("width", [64, 80, 128, 160])
def test_attention_of_every_width_and_length_is_the_equation(width: int, slots: int) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, width) * 3).split(1, 1)
    keys, values = (torch.randn(2, slots, 1, width) * 3 for _ in range(2))
    found = decode_cpu.AttentionStep(0.1, None, None, None)(q, (k, v), (keys, values), torch.tensor([slots - 1, 2]))
    for row, last in enumerate((slots - 1, 2)):
        exact = attended(q[row, 0].double(), keys[row, :, 0].double(), values[row, :, 0].double(), last, None, 0.1)
        torch.testing.assert_close(found[row, 0].double(), exact, rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("slots", [3, 40])
def test_what_is_no_number_stays_none(slots: int) -> None:
    step = decode_cpu.AttentionStep(1.0, None, None, None)
    for bad in (torch.nan, torch.inf):
        q, k, v = torch.randn(1, 3, 64).split(1, 1)
        keys, values = torch.randn(1, slots, 1, 64), torch.randn(1, slots, 1, 64)
        keys[0, 1] = bad
        assert step(q.abs(), (k, v), (keys, values), torch.tensor([slots - 1])).isnan().all()


@torch.no_grad()
def test_a_row_among_many_is_what_it_is_alone() -> None:
    torch.manual_seed(0)
    rows, heads, width, slots = 24, 4, 64, 60
    q, k, v = torch.randn(rows, 3 * heads, width).split(heads, 1)
    keys, values = (torch.randn(rows, slots, heads, width) for _ in range(2))
    count = torch.randint(slots, (rows,))
    step = decode_cpu.AttentionStep(0.3, None, None, None)
    alone = torch.cat(
        [
            step(q[i : i + 1], (k[i : i + 1], v[i : i + 1]), (keys[i : i + 1].clone(), values[i : i + 1].clone()), at)
            for i, at in enumerate(count.split(1))
        ]
    )
    assert torch.equal(step(q, (k, v), (keys, values), count), alone)


def test_a_token_without_a_slot_is_refused_and_nothing_is_written() -> None:
    q, k, v = torch.randn(1, 4, 8).split([2, 1, 1], 1)
    keys, values = torch.zeros(1, 3, 1, 8), torch.zeros(1, 3, 1, 8)
    with pytest.raises(ValueError, match="room for 3 tokens cannot hold 4"):
        decode_cpu.AttentionStep(1.0, None, None, None)(q, (k, v), (keys, values), torch.tensor([3]))
    assert not keys.any()
    assert not values.any()


SETTINGS: dict[str, dict[str, Any]] = {
    "normed-heads": {"window": 5},
    "llama": {"qk_norm": False, "gated": True, "activation": "silu", "n_kv_heads": 1},
    "gpt2": {"qk_norm": False, "norm": "layer", "position": "learned", "bias": True, "tied": True},
}


@torch.no_grad()
@pytest.mark.parametrize("rows", [1, 16])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_steps_of_a_model_are_those_without_compiled_code(
    settings: dict[str, Any], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model: Any = registry.build("gpt", vocab_size=29, size="tiny", **settings).eval()
    tokens = torch.randint(29, (rows, 12))

    def steps() -> list[Tensor]:
        state: State = model.init_state(rows).reserve(16)
        found = []
        for place in range(tokens.shape[1]):
            h, state = model(tokens[:, place : place + 1], state)
            found.append(model.head(h[:, -1]))
        return found

    plain = steps()
    monkeypatch.setattr(packed, "LARGE", 0)
    with packed_weights(model, rows):
        attention = next(part for part in model.modules() if isinstance(part, decode_cpu.CompiledAttention))
        assert attention.compiled
        assert bool(model.head.compiled) == (rows == 1)  # of more rows torch's products are as fast
        quick = steps()
        assert copy.deepcopy(attention).compiled is None
    assert model.head.compiled is attention.compiled is None
    assert any(not torch.equal(one, other) for one, other in zip(plain, quick, strict=True))
    for one, other in zip(plain, quick, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_cache_of_another_number_of_rows_is_left_to_torch() -> None:
    step, q, keys = decode_cpu.AttentionStep(1.0, None, None, None), torch.randn(4, 2, 8), torch.zeros(4, 16, 2, 8)
    assert step.takes(q, keys)
    assert not step.takes(q, keys[:1].contiguous())
    assert not step.takes(q[:3], keys)


def test_what_wants_gradients_or_other_numbers_is_left_to_torch() -> None:
    step, x = decode_cpu.linear(torch.randn(3, 8), None), torch.randn(1, 8)
    assert step is not None
    assert step(x) is None
    with torch.no_grad():
        assert step(x) is not None
        for other in (x.double(), torch.randn(8, 2).T[:1], torch.randn(5, 8), torch.randn(1, 9), x[:0]):
            assert step(other) is None
        assert decode_cpu.linear(torch.randn(8, 3).T, None) is None
        assert decode_cpu.linear(torch.randn(3, 8).double(), None) is None
