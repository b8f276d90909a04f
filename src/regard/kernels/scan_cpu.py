"""Mamba's selective scan with its steps, skip and gate on a CPU by compiled C (scan.c), in float32.

    s = softplus(raw)    h_t = exp(s_t A) h_(t-1) + s_t u_t B_t    y_t = (C_t h_t + D u_t) silu(z_t)

torch's operations take every number of every state through memory several times, a dozen times on the way back. Here a
few channels stay in the cache for a whole text, and what is kept for the way back is what came in and the states at
every 32nd token. Letters are those of kernels/selective_scan.py, whose form is the readable one.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.kernels.compiled import library
from regard.kernels.handed import are_plain, functions, in_rows, is_followed, place, places, sizes

LENGTH = 32  # tokens between the states that are kept, as in scan.c
GROUP = 64  # channels whose gradients of B and C are added up as one, as there
MOST = 64  # states of a channel that it has room for
WORTH_A_CALL = 1 << 18  # states that are made, below which nobody should wait for a compiler


def takes(u: Tensor, memory: Tensor, *others: Tensor) -> bool:
    """Whether u (B, T, E) from states (B, E, N) is worth it, and all are plain numbers of float32 on a CPU."""
    if is_followed() or u.numel() * memory.shape[-1] < WORTH_A_CALL or memory.shape[-1] > MOST:
        return False
    return are_plain(u, memory, *others) and library() is not None


def scan(
    u: Tensor, raw: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor, z: Tensor
) -> tuple[Tensor, Tensor]:
    """y (B, T, E) and the last state (B, E, N), for what it `takes`."""
    return _Scan.apply(u, raw, a, b, c, h, skip, z)  # pyright: ignore[reportReturnType]


class _Scan(torch.autograd.Function):
    """In C states lie as (B, N, E) and A as (N, E): channels side by side."""

    @staticmethod
    def forward(ctx, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        u, raw, a, b, c, h, skip, z = inputs
        rows = [in_rows(x) for x in (u, raw, z, b, c)]
        a, h, skip = a.T.contiguous(), h.transpose(1, 2).contiguous(), skip.contiguous()
        y, last, borders = torch.empty_like(rows[0]), torch.empty_like(h), None
        if any(ctx.needs_input_grad):
            borders = h.new_empty(len(u), -(-u.shape[1] // LENGTH), *h.shape[1:])
            ctx.save_for_backward(*rows, a, skip, borders)
        given = [y, *rows]
        functions().scan(places(given), *map(place, (a, skip, h, last, borders)), sizes((*u.shape, h.shape[1]), given))
        return y, last.transpose(1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        u, raw, z, b, c, a, skip, borders = ctx.saved_tensors
        (batch, length, width), states = u.shape, len(a)
        d_y, d_h = in_rows(gradients[0]), gradients[1].transpose(1, 2).clone(memory_format=torch.contiguous_format)
        d_u, d_raw, d_z = (torch.empty_like(u, memory_format=torch.contiguous_format) for _ in range(3))
        d_b, d_c = (u.new_empty(batch, -(-width // GROUP), length, states) for _ in range(2))
        d_a, d_skip = torch.empty_like(d_h), u.new_empty(batch, width)
        given = [d_y, u, raw, z, b, c, d_u, d_raw, d_z]
        functions().scan_gradients(
            places([*given, d_b, d_c]),
            *map(place, (a, skip, borders, d_h, d_a, d_skip)),
            sizes((*u.shape, states), given),
        )
        return d_u, d_raw, d_a.sum(0).T, d_b.sum(1), d_c.sum(1), d_h.transpose(1, 2), d_skip.sum(0), d_z
