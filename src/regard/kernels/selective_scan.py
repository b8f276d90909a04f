"""The selective scan: h_t = exp(dt_t A) h_(t-1) + dt_t B_t u_t,  y_t = C_t h_t  (Gu and Dao 2023, algorithm 2).

`selective_scan_readable` is the equation. `selective_scan` is the same with memory linear in length: it keeps the state
only at the borders of chunks and makes the rest again when gradients are asked for, as the paper's kernel does.

Glossary (shapes in this package's letters; E is the inner width)
u     (B, T, E)  input              dt  (B, T, E)  step            A  (E, N)  negative decay rates
B, C  (B, T, N)  write and read     h   (B, E, N)  state           y  (B, T, E)  output
d_*   gradient of the loss with respect to *
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

CHUNK = 32


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
    wide = torch.promote_types(h.dtype, torch.float32)
    scan = _Scan if wide != torch.float32 else _fastest(u.device.type, a.shape[1])
    y, h = scan.apply(*(t.to(wide) for t in (u, dt, a, b, c, h)))  # pyright: ignore[reportGeneralTypeIssues]
    return y.to(u.dtype), h


@cache
def _fastest(device_type: str, n_states: int) -> type[torch.autograd.Function]:
    """The Triton kernels where there are a CUDA device, Triton, and a number of states they can hold."""
    power_of_two = n_states & (n_states - 1) == 0
    if device_type != "cuda" or not power_of_two or find_spec("triton") is None:
        return _Scan
    from regard.kernels.selective_scan_triton import TritonScan

    return TritonScan


class _Scan(torch.autograd.Function):
    """Forward keeps a state a chunk; backward walks the chunks from the last to the first."""

    @staticmethod
    def forward(ctx, u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.empty_like(u)
        borders = []
        for start in range(0, u.shape[1], CHUNK):
            piece = slice(start, start + CHUNK)
            borders.append(h)
            states, _ = _states(u[:, piece], dt[:, piece], a, b[:, piece], h)
            y[:, piece] = (states @ c[:, piece].transpose(0, 1)[..., None])[..., 0].transpose(0, 1)
            # A copy, so that the whole chunk is not kept alive by its last state.
            h = states[-1].clone()
        ctx.save_for_backward(u, dt, a, b, c, *borders)
        return y, h

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, ...]:
        d_y, d_h = gradients
        u, dt, a, b, c, *borders = ctx.saved_tensors
        d_u, d_dt, d_b, d_c, d_a = map(torch.empty_like, (u, dt, b, c, a))
        d_a.zero_()
        for i in reversed(range(len(borders))):
            piece = slice(i * CHUNK, (i + 1) * CHUNK)
            part = (u[:, piece], dt[:, piece], a, b[:, piece], c[:, piece], borders[i])
            d_u[:, piece], d_dt[:, piece], grad_a, d_b[:, piece], d_c[:, piece], d_h = _chunk_gradients(
                part, d_y[:, piece], d_h
            )
            d_a += grad_a
        return d_u, d_dt, d_a, d_b, d_c, d_h


def _states(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """h after every token of a chunk, (T, B, E, N), and the decays exp(dt A) of the same shape."""
    dt, u, b = dt.transpose(0, 1), u.transpose(0, 1), b.transpose(0, 1)
    decay = torch.exp(dt[..., None] * a)
    states = (dt * u)[..., None] * b[:, :, None]
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
    d_c = (d_y_t[:, :, None] @ states)[:, :, 0]  # (T, B, N)
    g = d_y_t[..., None] * c_t[:, :, None]  # (T, B, E, N)
    carried = d_h
    for t in reversed(range(len(g))):
        carried = g[t].add_(carried) if t == len(g) - 1 else g[t].addcmul_(decay[t + 1], g[t + 1])
    before = decay[0] * carried
    d_b = ((dt_t * u_t)[:, :, None] @ g)[:, :, 0]
    d_dtu = (g @ b_t[..., None])[..., 0]  # (T, B, E)
    # d loss / d (dt A) = g_t * decay_t * h_(t-1)
    d_exponent = g.mul_(decay)
    d_exponent[1:].mul_(states[:-1])
    d_exponent[0].mul_(h)
    d_dt = d_dtu * u_t + (d_exponent * a).sum(-1)
    d_a = torch.einsum("TBEN,TBE->EN", d_exponent, dt_t)
    d_u, d_dt, d_b, d_c = (x.transpose(0, 1) for x in (d_dtu * dt_t, d_dt, d_b, d_c))
    return d_u, d_dt, d_a, d_b, d_c, before
