"""SSD in float32 after a strong forget, against the recurrence in float64 written out here."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from regard.kernels.ssd_readable import ssd_chunked, ssd_recurrent

B, T, H, P, G, N = 2, 12, 4, 3, 2, 5


def recurrence(x: Tensor, decay: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """h_t = exp(decay_t) h_(t-1) + x_t b_t^T,  y_t = h_t c_t, in float64; heads of one group share b and c."""
    h, rows = h.double(), []
    for t in range(x.shape[1]):
        y = torch.empty(B, H, P, dtype=torch.float64)
        new = torch.empty_like(h)
        for head in range(H):
            group = head // (H // G)
            forget = decay[:, t, head].double().exp()[:, None, None]
            new[:, head] = forget * h[:, head] + x[:, t, head].double()[:, :, None] * b[:, t, group].double()[:, None]
            y[:, head] = (new[:, head] * c[:, t, group].double()[:, None]).sum(-1)
        h = new
        rows.append(y)
    return torch.stack(rows, 1), h


@pytest.mark.parametrize("chunk", [4, 5, 12, 64])
@pytest.mark.parametrize("strength", [1.0, 1e3, 1e4, 1e6])
def test_what_follows_a_strong_forget_keeps_its_precision(strength: float, chunk: int) -> None:
    generator = torch.Generator().manual_seed(1)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    x, b, c, h = random(B, T, H, P), random(B, T, G, N), random(B, T, G, N), random(B, H, P, N)
    decay = -0.3 * torch.rand(B, T, H, generator=generator)
    decay[:, 2] = decay[0, 7] = -strength
    y, state = ssd_chunked(x, decay, b, c, h, chunk)
    expected_y, expected = recurrence(x, decay, b, c, h)
    for got, right in ((y, expected_y), (state, expected)):
        assert float((got.double() - right).square().mean().sqrt() / right.square().mean().sqrt()) < 3e-7


@pytest.mark.parametrize("strength", [1.0, 1e3, 1e6])
def test_gradients_after_a_strong_forget_keep_their_precision(strength: float) -> None:
    generator = torch.Generator().manual_seed(2)
    shapes = ((B, T, H, P), (B, T, H), (B, T, G, N), (B, T, G, N), (B, H, P, N))
    x, decay, b, c, h = (torch.randn(shape, generator=generator) for shape in shapes)
    decay = -0.3 * decay.abs()
    decay[:, 2] = decay[0, 7] = -strength
    found = []
    for dtype in (torch.float32, torch.float64):
        leaves = [t.to(dtype, copy=True).requires_grad_() for t in (x, decay, b, c, h)]
        form = partial(ssd_chunked, chunk=5) if dtype == torch.float32 else ssd_recurrent
        y, state = form(*leaves)
        found.append(torch.autograd.grad(y.double().sin().sum() + state.double().square().sum(), leaves))
    for got, right in zip(*found, strict=True):
        assert float((got.double() - right).norm() / right.norm()) < 2e-6
