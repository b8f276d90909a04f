"""How the SSD kernels of kernels/ssd_triton.py are launched; imported on first use only, with Triton.

The forward pass is two launches, the walk over the chunks and the outputs; the backward pass five: the walk again, the
walk back, the gradients of the inputs, and those of B and of C.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from regard.kernels.layout import dense
from regard.kernels.ssd import CHUNK
from regard.kernels.ssd_triton import input_gradients_kernel, map_gradients_kernel, outputs_kernel, walk_kernel


@dataclass(frozen=True)
class Walk:
    """block: rows and columns of the state that a program holds. warps and stages: of a program."""

    block: tuple[int, int]
    warps: int = 4
    stages: int = 2


@dataclass(frozen=True)
class Launch:
    """chunk: Q. walks: from the largest block to the smallest; the first whose programs are ENOUGH is taken, or the
    last. heads: whose shares in B's and C's gradients one program adds up. warps and stages: of the outputs, the
    inputs' gradients, the gradients of B and C."""

    chunk: int = 64
    walks: tuple[Walk, ...] = (Walk((64, 64)), Walk((32, 64), 4, 3), Walk((32, 32), 2, 4))
    heads: int = 8
    warps: tuple[int, int, int] = (4, 4, 4)
    stages: tuple[int, int, int] = (1, 1, 2)


# Programs: two for each processor of an H200, where a walk of 8 x 2,048 tokens takes 212 us in the largest blocks
# against 375 in the smallest, and one of 2 x 16,384 is fastest in the smallest.
ENOUGH = 264
LAUNCH = {
    torch.bfloat16: Launch(CHUNK[torch.bfloat16]),
    torch.float16: Launch(CHUNK[torch.float16]),
    torch.float32: Launch(CHUNK[torch.float32], (Walk((32, 32)),), 8, (8, 8, 8), (1, 1, 1)),
}


@dataclass(frozen=True)
class _Sizes:
    """What every launch asks of the shapes."""

    B: int
    T: int
    H: int
    P: int
    G: int
    N: int
    M: int

    @property
    def share(self) -> int:
        return self.H // self.G

    @property
    def blocks(self) -> tuple[int, int]:
        """P and N as the matrix products take them: powers of two, 16 at least."""
        return max(16, triton.next_power_of_2(self.P)), max(16, triton.next_power_of_2(self.N))

    def tiles(self, block: tuple[int, int]) -> int:
        """Programs that hold one state."""
        return triton.cdiv(self.P, block[0]) * triton.cdiv(self.N, block[1])


def _sizes(x: Tensor, b: Tensor, chunk: int) -> _Sizes:
    batch, length, heads, width = x.shape
    return _Sizes(batch, length, heads, width, b.shape[2], b.shape[3], -(-length // chunk))


def _walk(s: _Sizes, launch: Launch) -> Walk:
    enough = (walk for walk in launch.walks if s.B * s.H * s.tiles(walk.block) >= ENOUGH)
    return next(enough, launch.walks[-1])


def _precision() -> str:
    """Products of float32 as torch's own are set."""
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def _borders(
    x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, first: Tensor, launch: Launch, back: bool
) -> tuple[Tensor, Tensor]:
    """The states at the borders, in the number type of x, and the last one in float32."""
    s = _sizes(x, b, launch.chunk)
    walk = _walk(s, launch)
    block_p, block_n = (min(block, most) for block, most in zip(s.blocks, walk.block, strict=True))
    borders, last = x.new_empty(s.B, s.M, s.H, s.P, s.N), torch.empty_like(first)
    grid = (s.H, s.B, s.tiles(walk.block))
    walk_kernel[grid](
        x, dt, decay, b, first, borders, last, s.T, s.H, s.M, s.share, *x.stride()[:3], *b.stride()[:3],
        s.P, s.N, launch.chunk, block_p, block_n, back, _precision(),
        num_warps=walk.warps, num_stages=walk.stages,
    )  # fmt: skip
    return borders, last


def ssd_forward(
    x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor, launch: Launch
) -> tuple[Tensor, Tensor]:
    """y (B, T, H, P) in the number type of x, and the last state in float32."""
    x, b, c = dense(x), dense(b), dense(c)
    dt, decay, h = dt.contiguous(), decay.contiguous(), h.float().contiguous()
    s = _sizes(x, b, launch.chunk)
    borders, last = _borders(x, dt, decay, b, h, launch, False)
    y = x.new_empty(x.shape)
    outputs_kernel[(s.H, s.M, s.B)](
        x, dt, decay, b, c, skip, borders, y, s.T, s.H, s.M, s.share, *x.stride()[:3], *b.stride()[:3],
        *c.stride()[:3], s.P, s.N, launch.chunk, *s.blocks, _precision(),
        num_warps=launch.warps[0], num_stages=launch.stages[0],
    )  # fmt: skip
    return y, last


def ssd_backward(
    d_y: Tensor, d_last: Tensor, x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor,
    launch: Launch,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients of all inputs of the forward pass, in their order; float32 but for those of x, b and c."""
    x, b, c = dense(x), dense(b), dense(c)
    dt, decay, h, d_y, d_last = (t.contiguous() for t in (dt, decay, h.float(), d_y.to(x.dtype), d_last.float()))
    s = _sizes(x, b, launch.chunk)
    befores, _ = _borders(x, dt, decay, b, h, launch, False)
    afters, d_h = _borders(d_y, dt, decay, c, d_last, launch, True)
    d_x, wide = x.new_empty(x.shape), torch.float32
    d_dt, d_decay = torch.empty_like(dt, dtype=wide), torch.empty_like(decay, dtype=wide)
    d_skip = torch.empty(s.B, s.M, s.H, dtype=wide, device=x.device)
    input_gradients_kernel[(s.H, s.M, s.B)](
        x, dt, decay, b, c, skip, befores, afters, d_y, d_x, d_dt, d_decay, d_skip, s.T, s.H, s.M, s.share,
        *x.stride()[:3], *b.stride()[:3], *c.stride()[:3], s.P, s.N, launch.chunk, *s.blocks, _precision(),
        num_warps=launch.warps[1], num_stages=launch.stages[1],
    )  # fmt: skip
    d_b = _maps_gradient(x, d_y, dt, decay, c, afters, launch, s, True).to(b.dtype)
    d_c = _maps_gradient(d_y, x, dt, decay, b, befores, launch, s, False).to(c.dtype)
    return d_x, d_dt, d_decay, d_b, d_c, d_skip.sum((0, 1)), d_h


def _maps_gradient(
    left: Tensor, right: Tensor, dt: Tensor, decay: Tensor, other: Tensor, borders: Tensor, launch: Launch, s: _Sizes,
    writes: bool,
) -> Tensor:  # fmt: skip
    """(B, T, G, N) in float32. Shares of the heads are added up afterwards: no atomics, the same sum every time."""
    parts = triton.cdiv(s.share, launch.heads)
    shares = torch.empty(parts, s.B, s.T, s.G, s.N, dtype=torch.float32, device=left.device)
    map_gradients_kernel[(parts, s.M * s.G, s.B)](
        left, right, dt, decay, other, borders, shares, s.B, s.T, s.H, s.M, s.G, s.share, launch.heads,
        *left.stride()[:3], *right.stride()[:3], *other.stride()[:3], s.P, s.N, launch.chunk, *s.blocks, writes,
        _precision(), num_warps=launch.warps[2], num_stages=launch.stages[2],
    )  # fmt: skip
    return shares[0] if parts == 1 else shares.sum(0)
