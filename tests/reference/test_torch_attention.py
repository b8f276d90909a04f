"""Self-attention against torch's MultiheadAttention and scaled_dot_product_attention on random weights."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.context import Context, real_tokens
from regard.core.tap import record
from regard.layers.position import alibi_slopes
from regard.mixers.attention import AttentionConfig, SelfAttention

WIDTH, N_HEADS, LENGTH = 12, 3, 7
LENGTHS = torch.tensor([7, 1, 4])


def close(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)


def pair(causal: bool, bias: bool = True) -> tuple[nn.MultiheadAttention, SelfAttention]:
    """torch's module and ours with the same numbers, in float64."""
    theirs = nn.MultiheadAttention(WIDTH, N_HEADS, bias=bias, batch_first=True).double()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    ours = AttentionConfig(WIDTH, N_HEADS, causal=causal, bias=bias).build().double()
    names = {"in_proj_": "input_to_heads.", "out_proj.": "heads_to_output."}
    weights = {}
    for name, value in theirs.state_dict().items():
        stem = next(stem for stem in names if name.startswith(stem))
        weights[names[stem] + name.removeprefix(stem)] = value
    ours.load_state_dict(weights)
    return theirs, ours


def reference(theirs: nn.MultiheadAttention, x: Tensor, causal: bool, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """Outputs and weights (B, H, T, S)."""
    future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1) if causal else None
    padding = None if lengths is None else ~real_tokens(lengths, x)
    return theirs(x, x, x, key_padding_mask=padding, attn_mask=future, average_attn_weights=False)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["whole", "padded"])
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "full"])
def test_equals_multihead_attention(causal: bool, lengths: Tensor | None, bias: bool) -> None:
    theirs, ours = pair(causal, bias)
    x, context = torch.randn(3, LENGTH, WIDTH).double(), Context(lengths=lengths)
    expected, expected_weights = reference(theirs, x, causal, lengths)
    real = real_tokens(lengths, x)
    with record(ours) as seen:
        close(ours(x, None, context)[0][real], expected[real])
    close(seen["weights"][0].transpose(1, 2)[real], expected_weights.detach().transpose(1, 2)[real])
    close(ours(x, None, context)[0][real], expected[real])
    close(ours(x, ours.init_state(3), context)[0][real], expected[real])


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "full"])
def test_gradients_equal_multihead_attention(causal: bool) -> None:
    theirs, ours = pair(causal)
    x = torch.randn(3, LENGTH, WIDTH).double()
    counted = torch.randn(3, LENGTH, WIDTH).double() * real_tokens(LENGTHS, x)[..., None]
    (reference(theirs, x, causal, LENGTHS)[0] * counted).sum().backward()
    (ours(x, None, Context(lengths=LENGTHS))[0] * counted).sum().backward()
    assert theirs.in_proj_weight.grad is not None
    assert ours.input_to_heads.weight.grad is not None
    close(ours.input_to_heads.weight.grad, theirs.in_proj_weight.grad)


def test_token_by_token_equals_multihead_attention() -> None:
    theirs, ours = pair(causal=True)
    x = torch.randn(3, LENGTH, WIDTH).double()
    expected, _ = reference(theirs, x, True, None)
    state = ours.init_state(3).reserve(LENGTH)
    for t in range(LENGTH):
        y, state = ours.step(x[:, t], state)
        close(y, expected[:, t])


def heads_of(ours: SelfAttention, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v by the definition, from the rows of the projection; (B, H or G, T, K)."""
    c = ours.config
    rows = ours.input_to_heads.weight.split([n * c.width for n in (c.n_heads, c.groups, c.groups)])
    q, k, v = (F.linear(x, w).unflatten(-1, (-1, c.width)).transpose(1, 2) for w in rows)
    return q, k, v


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "full"])
@pytest.mark.parametrize("position", ["none", "alibi"])
@pytest.mark.parametrize("window", [None, 1, 3])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_grouped_windowed_and_biased_equals_scaled_dot_product_attention(
    groups: int, window: int | None, position: Literal["none", "alibi"], causal: bool
) -> None:
    config = AttentionConfig(16, 4, groups, causal=causal, window=window, position=position, bias=False)
    ours = config.build().double()
    x = torch.randn(2, LENGTH, 16).double()
    distance = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)
    seen = distance >= 0 if causal else distance == distance
    if window is not None:
        seen = seen & (distance.abs() < window)
    slopes = alibi_slopes(4)[:, None, None] if position == "alibi" else torch.zeros(4, 1, 1)
    mask = (-slopes * distance.abs()).masked_fill(~seen, float("-inf"))
    q, k, v = heads_of(ours, x)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.double(), enable_gqa=True)
    expected = ours.heads_to_output(y.transpose(1, 2).flatten(2))
    close(ours(x)[0], expected)
    with record(ours):
        close(ours(x)[0], expected)


@pytest.mark.parametrize("base", [2.0, 3.0, 10.0])
def test_base_of_the_softmax_is_a_power_of_that_base(base: float) -> None:
    ours = AttentionConfig(8, 2, causal=False, score="dot", base=base, bias=False).build().double()
    x = torch.randn(2, LENGTH, 8).double()
    q, k, v = heads_of(ours, x)
    powers = base ** (q @ k.mT)
    expected = ours.heads_to_output((powers / powers.sum(-1, keepdim=True) @ v).transpose(1, 2).flatten(2))
    close(ours(x)[0], expected)
