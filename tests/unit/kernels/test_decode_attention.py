"""The kernel for one query a row equals the sum as it stands, on a CUDA device or in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.triton_here import DEVICE, INTERPRETED, needs_kernel
from regard.core.state import State
from regard.kernels.decode_attention import can_decode, decode_attention
from regard.mixers.attention import AttentionConfig, SelfAttention
from regard.mixers.kv_cache import KeyValueState

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
TYPES = [torch.float32] if INTERPRETED else list(TOLERANCE)


def plainly(q: Tensor, keys: Tensor, values: Tensor, position: int, scale: float, window: int | None) -> Tensor:
    """One row in float64: q (H, K), keys and values (S, G, K) with the new ones in place."""
    repeats = q.shape[0] // keys.shape[1]
    begin = 0 if window is None else max(0, position + 1 - window)
    seen = slice(begin, min(position + 1, len(keys)))
    k, v = (t[seen].double().repeat_interleave(repeats, 1) for t in (keys, values))
    weights = (torch.einsum("hk,shk->hs", q.double(), k) * scale).softmax(-1)
    return torch.einsum("hs,shk->hk", weights, v)


@needs_kernel
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("window", [None, 1, 70])
@pytest.mark.parametrize(("heads", "groups", "width"), [(2, 2, 16), (6, 2, 20), (3, 1, 64)])
def test_the_kernel_is_the_sum_as_it_stands(
    heads: int, groups: int, width: int, window: int | None, dtype: torch.dtype
) -> None:
    slots, counts = 200, [0, 1, 63, 64, 130, 199]
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(DEVICE, dtype)

    rows = len(counts)
    # As the projection gives them: views of one tensor.
    q, k, v = drawn(rows, heads + 2 * groups, width).split([heads, groups, groups], 1)
    keys, values = drawn(rows, slots, groups, width), drawn(rows, slots, groups, width)
    expected_keys, expected_values = keys.clone(), values.clone()
    for row, count in enumerate(counts):
        expected_keys[row, count], expected_values[row, count] = k[row], v[row]
        # What lies beyond is undefined, and must not be read.
        keys[row, count:], values[row, count:] = float("nan"), float("nan")
    with torch.no_grad():
        assert can_decode(q, keys)
        y = decode_attention(q, (k, v), (keys, values), torch.tensor(counts, device=DEVICE), scale=0.3, window=window)
    for row, count in enumerate(counts):
        expected = plainly(q[row], expected_keys[row], expected_values[row], count, 0.3, window)
        torch.testing.assert_close(y[row].double(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
        assert torch.equal(keys[row, : count + 1], expected_keys[row, : count + 1])
        assert torch.equal(values[row, : count + 1], expected_values[row, : count + 1])


@needs_kernel
def test_a_token_without_a_slot_is_not_kept_and_not_seen() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 16, device=DEVICE)
    keys, values = torch.randn(2, 2, 65, 2, 16, device=DEVICE)
    before = keys.clone(), values.clone()
    with torch.no_grad():
        y = decode_attention(q, (k, v), (keys, values), torch.tensor([65, 80], device=DEVICE), scale=0.25)
    assert torch.equal(keys, before[0])
    assert torch.equal(values, before[1])
    for row in range(2):
        expected = plainly(q[row], keys[row], values[row], 64, 0.25, None)
        torch.testing.assert_close(y[row].double(), expected, rtol=1e-5, atol=1e-5)


EXAMPLES = {name: config for name, config in AttentionConfig.examples().items() if "full" not in name}
EXAMPLES["attention-modern"] = AttentionConfig(48, 4, n_kv_heads=2, position="rotary", qk_norm=True, bias=False)


@needs_kernel
@torch.no_grad()
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_mixer_steps_through_the_kernel_as_it_reads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the grown state, whose steps never take the kernel."""
    monkeypatch.setattr(KeyValueState, "_at_hand", False)
    torch.manual_seed(0)
    mixer = EXAMPLES[name].build().to(DEVICE).eval()
    assert isinstance(mixer, SelfAttention)
    for norm in (mixer.query_norm, mixer.key_norm):
        for weight in norm.parameters():
            weight.normal_()
    x = torch.randn(2, 9, mixer.config.d_model, device=DEVICE)
    grown: State | None = mixer(x[:, :3], mixer.init_state(2))[1]
    assert grown is not None
    reserved: State | None = grown.reserve(12)
    for t in range(3, 9):
        expected, grown = mixer(x[:, t : t + 1], grown)
        found, reserved = mixer(x[:, t : t + 1], reserved)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert reserved is not None
    assert reserved.position.tolist() == [9, 9]


def test_a_number_type_or_gradients_that_the_kernel_does_not_know_take_the_readable_form() -> None:
    keys = torch.zeros(1, 4, 1, 16, dtype=torch.float64, device=DEVICE)
    assert not can_decode(keys[:, 0], keys)
    assert torch.is_grad_enabled()
    assert not can_decode(keys[:, 0].float(), keys.float())
