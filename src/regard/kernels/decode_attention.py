"""Attention of one query a row over a cache with room, where only the device knows how far each row is.

The readable form is in mixers/attention.py: it writes the new key and value into their slots and looks at the whole
room through a mask. Here a Triton kernel does both at once and reads no more slots than a row has used; it also does
what stands between the projection and the cache. On a CPU the same is done in C (decode_cpu.py).
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.kernels.choice import NARROW, has_triton
from regard.kernels.operators import if_built

WIDEST = 256  # numbers of a head that a program can hold


def can_decode(q: Tensor, keys: Tensor) -> bool:
    """Whether the kernel takes queries (B, H, K) over keys (B, S, G, K): otherwise the readable form is right."""
    if q.dtype not in NARROW or q.dtype != keys.dtype or q.shape[-1] > WIDEST or not keys.is_contiguous():
        return False
    return not torch.compiler.is_compiling() and not torch.is_grad_enabled() and has_triton(q.device)


def decode_attention(
    q: Float[Tensor, "B H K"],
    new: tuple[Float[Tensor, "B G K"], Float[Tensor, "B G K"]],
    cache: tuple[Float[Tensor, "B S G K"], Float[Tensor, "B S G K"]],
    count: Int[Tensor, "B"],
    *,
    scale: float,
    window: int | None = None,
    norms: tuple[Tensor, Tensor, float] | None = None,
    base: float | None = None,
) -> Float[Tensor, "B H K"] | None:
    """The heads' outputs at position `count` of each row; the new key and value are written into their slots.

    A token without a slot is not kept and not seen. None where the kernel cannot be built.

    norms  weights (K,) of the RMSNorm of queries and of keys, and its epsilon; None for no norm.
    base   of rotary positions, by which queries and the new key are turned then; None for none.
    """

    def kernel() -> Tensor:
        from regard.kernels.decode_attention_triton import attend

        return attend(q, *new, *cache, count, scale, window or 0, norms, base)

    return if_built("attention of one token", kernel)
