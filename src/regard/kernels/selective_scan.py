"""The selective scan: h_t = exp(dt_t A) h_(t-1) + dt_t B_t u_t,  y_t = C_t h_t  (Gu and Dao 2023, algorithm 2).

`selective_scan_readable` is the equation. `selective_scan` is the same with memory linear in length: it keeps the state
only at the borders of chunks and makes the rest again when gradients are asked for, as the paper's kernel does. On a
GPU Triton kernels do it (kernels/selective_scan_triton.py), as one operator that torch.compile leaves as it is.

Glossary (shapes in this package's letters; E is the inner width)
u     (B, T, E)  input              dt  (B, T, E)  step            A  (E, N)  negative decay rates
B, C  (B, T, N)  write and read     h   (B, E, N)  state           y  (B, T, E)  output
d_*   gradient of the loss with respect to *
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.kernels import scan_cpu
from regard.kernels.compiled_call import followed_gradients, is_made_for_others
from regard.kernels.operators import by_kernel, kernels_take, readable_gradients

CHUNK = 16


@dataclass(frozen=True)
class Launch:
    """How the kernels are launched. chunk: tokens that a program goes through. few: that it reads at once, and of which
    it makes the states again at a time; divides the chunk. block: channels of a program. warps: of a program.
    registers: the most that a thread of the gradients' kernel takes, the fewer the more programs at once."""

    chunk: int = 128
    few: int = 4
    block: int = 32
    warps: int = 1
    registers: int = 255


LAUNCH = Launch()
# States of a channel that the registers of a kernel hold.
MOST_STATES = 64


def selective_step(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """One token: u, dt (B, E), b, c (B, N), h (B, E, N), whose number type it is computed in."""
    dtype = u.dtype
    u, dt, a, b, c = (t.to(h.dtype) for t in (u, dt, a, b, c))
    h = torch.exp(dt[..., None] * a) * h + (dt * u)[..., None] * b[:, None]
    return (h @ c[..., None])[..., 0].to(dtype), h


def selective_scan_readable(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """The equation, token by token."""
    outputs = []
    for t in range(u.shape[1]):
        y, h = selective_step(u[:, t], dt[:, t], a, b[:, t], c[:, t], h)
        outputs.append(y)
    return (torch.stack(outputs, 1) if outputs else u), h


def selective_scan(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs (B, T, E) and the last state, in float32 at least: a rounded state drifts."""
    if scan_kernels_take(u, h):
        return _scan(u, dt, a, b, c, h, None, None)[:2]
    return _kept_scan(u, dt, a, b, c, h)


def _kept_scan(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    wide = torch.promote_types(h.dtype, torch.float32)
    y, h = _Scan.apply(*(t.to(wide) for t in (u, dt, a, b, c, h)))  # pyright: ignore[reportGeneralTypeIssues]
    return y.to(u.dtype), h


def gated_selective_scan(
    u: Tensor, raw: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor, z: Tensor
) -> tuple[Tensor, Tensor]:
    """(y + D u) silu(z) of the scan with steps softplus(raw), by kernels that keep none of what is between.

    skip (E,) is D, z (B, T, E) the gate. For what `gated_scan_takes`.
    """
    if u.is_cpu and not kernels_take(u):
        return scan_cpu.scan(u, raw, a, b, c, h, skip, z)
    return _scan(u, raw, a, b, c, h, skip, z)[:2]


def _any_scan(
    u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor | None, z: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The readable form of both, plain and gated."""
    if skip is None or z is None:
        return _kept_scan(u, dt, a, b, c, h)
    y, h = _kept_scan(u, F.softplus(dt.to(h.dtype)), a, b, c, h)
    return ((y + skip * u) * F.silu(z)).to(u.dtype), h


def _chunks(u: Tensor) -> int:
    return (u.shape[1] + LAUNCH.chunk - 1) // LAUNCH.chunk


def scan_kernels_take(u: Tensor, h: Tensor) -> bool:
    """Whether the Triton kernels can do it; else the scan below is the way."""
    return h.dtype == torch.float32 and h.shape[-1] <= MOST_STATES and u.numel() > 0 and kernels_take(u)


def gated_scan_takes(
    u: Tensor, raw: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor, z: Tensor
) -> bool:
    """Whether `gated_selective_scan` can be called with these: kernels of Triton's, or on a CPU those of C."""
    return scan_kernels_take(u, h) or scan_cpu.takes(u, raw, a, b, c, h, skip, z)


@torch.library.custom_op("regard::selective_scan", mutates_args=())
def _scan(
    u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor | None, z: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """y, the last state, and the states between chunks, which the gradients are made from."""
    inputs = (u, dt, a, b, c, h, skip, z)

    def kernel() -> tuple[Tensor, Tensor, Tensor]:
        from regard.kernels.selective_scan_launch import scan_forward

        return scan_forward(*inputs, LAUNCH)

    def readable() -> tuple[Tensor, Tensor, Tensor]:
        # The readable gradients want the first state alone.
        return *_any_scan(*inputs), h[:, None].repeat(1, _chunks(u), 1, 1)

    return by_kernel("the selective scan", kernel, readable)


@torch.library.custom_op("regard::selective_scan_backward", mutates_args=())
def _scan_backward(
    d_y: Tensor, d_h: Tensor, borders: Tensor, u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor,
    skip: Tensor | None, z: Tensor | None,
) -> list[Tensor]:  # fmt: skip
    def kernel() -> list[Tensor]:
        from regard.kernels.selective_scan_launch import scan_backward

        leaves = [leaf for leaf in (u, dt, a, b, c, d_h, skip, z) if leaf is not None]
        gradients = scan_backward(d_y, d_h, borders, u, dt, a, b, c, skip, z, LAUNCH)
        return [gradient.to(leaf.dtype) for gradient, leaf in zip(gradients, leaves, strict=False)]

    inputs = (u, dt, a, b, c, borders[:, 0], skip, z)
    return by_kernel("the selective scan", kernel, lambda: readable_gradients(_any_scan, inputs, [d_y, d_h]))


@_scan.register_fake
def _(
    u: Tensor, _dt: Tensor, _a: Tensor, _b: Tensor, _c: Tensor, h: Tensor, *_fused: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    return u.new_empty(u.shape), h.new_empty(h.shape), h.new_empty(h.shape[0], _chunks(u), *h.shape[1:])


@_scan_backward.register_fake
def _(
    _d_y: Tensor, d_h: Tensor, _borders: Tensor, u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor,
    *fused: Tensor | None,
) -> list[Tensor]:  # fmt: skip
    return [leaf.new_empty(leaf.shape) for leaf in (u, dt, a, b, c, d_h, *fused) if leaf is not None]


def _keep(ctx, inputs: tuple[Tensor | None, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    u, dt, a, b, c, _, skip, z = inputs
    ctx.save_for_backward(output[2], u, dt, a, b, c, skip, z)
    # Of the borders' own gradient, which nobody asks for, no zeros are made.
    ctx.set_materialize_grads(False)


def _gradients(ctx, d_y: Tensor | None, d_h: Tensor | None, _d_borders: Tensor | None) -> tuple[Tensor | None, ...]:
    borders, u, *rest = ctx.saved_tensors
    d_y = torch.zeros_like(u) if d_y is None else d_y
    d_h = torch.zeros_like(borders[:, 0]) if d_h is None else d_h
    found = _scan_backward(d_y, d_h, borders, u, *rest)
    return (*found, *[None] * (8 - len(found)))


_scan.register_autograd(_gradients, setup_context=_keep)


class _Scan(torch.autograd.Function):
    """Forward keeps a state a chunk; backward walks the chunks from the last to the first.

    Inside, states are (B, N, E) and A is (N, E): long rows of channels are what a processor multiplies fast.
    """

    @staticmethod
    def forward(ctx, u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        y, inputs = torch.empty_like(u), (u, dt, a, b, c, h)
        a, h = a.T.contiguous(), h.transpose(1, 2).contiguous()
        borders = []
        for start in range(0, u.shape[1], CHUNK):
            piece = slice(start, start + CHUNK)
            borders.append(h)
            states, _ = _states(u[:, piece], dt[:, piece], a, b[:, piece], h)
            y[:, piece] = (c[:, piece].transpose(0, 1)[:, :, None] @ states)[:, :, 0].transpose(0, 1)
            # A copy, so that the whole chunk is not kept alive by its last state.
            h = states[-1].clone()
        ctx.save_for_backward(*inputs, *borders)
        return y, h.transpose(1, 2).contiguous()

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, ...]:
        u, dt, a, b, c, h, *borders = ctx.saved_tensors
        if torch.is_grad_enabled() and not is_made_for_others():  # gradients that are followed are torch's own
            return followed_gradients(selective_scan_readable, (u, dt, a, b, c, h), gradients)
        d_y, d_h = gradients
        a, d_h = a.T.contiguous(), d_h.transpose(1, 2)
        d_u, d_dt, d_b, d_c, d_a = map(torch.empty_like, (u, dt, b, c, a))
        d_a.zero_()
        for i in reversed(range(len(borders))):
            piece = slice(i * CHUNK, (i + 1) * CHUNK)
            part = (u[:, piece], dt[:, piece], a, b[:, piece], c[:, piece], borders[i])
            d_u[:, piece], d_dt[:, piece], grad_a, d_b[:, piece], d_c[:, piece], d_h = _chunk_gradients(
                part, d_y[:, piece], d_h
            )
            d_a += grad_a
        return d_u, d_dt, d_a.T, d_b, d_c, d_h.transpose(1, 2)


def _states(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """h after every token of a chunk, (T, B, N, E), and the decays exp(dt A) of the same shape."""
    dt, u, b = dt.transpose(0, 1), u.transpose(0, 1), b.transpose(0, 1)
    decay = (dt[:, :, None] * a).exp_()
    states = b[..., None] * (dt * u)[:, :, None]
    for t in range(len(states)):
        h = states[t].addcmul_(decay[t], h)
    return states, decay


def _chunk_gradients(part: tuple[Tensor, ...], d_y: Tensor, d_h: Tensor) -> tuple[Tensor, ...]:
    """Gradients of one chunk, given those of its outputs and of the state after it.

    g_t = C_t d_y_t + exp(dt_(t+1) A) g_(t+1) is the gradient of h_t, from which all others follow.
    """
    u, dt, a, b, c, h = part
    states, decay = _states(u, dt, a, b, h)
    u_t, dt_t, b_t, c_t, d_y_t = (x.transpose(0, 1) for x in (u, dt, b, c, d_y))
    d_c = (states @ d_y_t[..., None])[..., 0]  # (T, B, N)
    g = c_t[..., None] * d_y_t[:, :, None]  # (T, B, N, E)
    carried = d_h
    for t in reversed(range(len(g))):
        carried = g[t].add_(carried) if t == len(g) - 1 else g[t].addcmul_(decay[t + 1], g[t + 1])
    before = decay[0] * carried
    d_b = (g @ (dt_t * u_t)[..., None])[..., 0]
    d_dtu = (b_t[:, :, None] @ g)[:, :, 0]  # (T, B, E)
    # d loss / d (dt A) = g_t * decay_t * h_(t-1)
    d_exponent = g.mul_(decay)
    d_exponent[1:].mul_(states[:-1])
    d_exponent[0].mul_(h)
    d_a = torch.mul(d_exponent, dt_t[:, :, None], out=states).sum((0, 1))
    d_dt = d_exponent.mul_(a).sum(2).addcmul_(d_dtu, u_t)
    d_u, d_dt, d_b, d_c = (x.transpose(0, 1) for x in (d_dtu * dt_t, d_dt, d_b, d_c))
    return d_u, d_dt, d_a, d_b, d_c, before
