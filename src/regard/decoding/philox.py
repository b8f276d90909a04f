"""Random numbers that are a function of where they are used: Philox-4x32-10 (Salmon, Moraes, Dror and Shaw 2011).

    uniform = f(seed, row, counter)        nothing is remembered from one number to the next

A generator with a memory gives a row other numbers when other rows draw before it. This one has none, so that draw
number `counter` of text `row` is the same whatever stands beside it, on whatever device. Plain integer operations of
torch: the same numbers on a CPU and on a GPU.

Glossary
key      64 bits of the seed, in two words, which grow by the Weyl constants in every round
counter  128 bits in four words: the number of the draw, 0, and the number of the row in two words
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.device import wide

WORD = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10


def uniforms(seed: Int[Tensor, "*N"], row: Int[Tensor, "*N"], counter: Int[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Numbers in [0, 1) with 53 random bits, in float64; seeds and rows are 64 bits, counters 32."""
    low, high, _, _ = philox((counter & WORD, torch.zeros_like(counter), *words(row)), words(seed))
    drawn = wide((low >> 5) * 2**26 + (high >> 6)) * 2.0**-53
    return drawn.clamp(max=1 - torch.finfo(drawn.dtype).eps / 2)  # in float32 the largest would be rounded to 1


def philox(counter: tuple[Tensor, Tensor, Tensor, Tensor], key: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """Four random words of 32 bits, as int64, for four words of counter and two of key."""
    a, b, c, d = counter
    k, m = key
    for _ in range(ROUNDS):
        # The product of two words wraps in int64, but its 64 bits are right, and those of the sign are masked away.
        left, right = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, b, c, d = (right >> 32 & WORD) ^ b ^ k, right & WORD, (left >> 32 & WORD) ^ d ^ m, left & WORD
        k, m = k + WEYL[0] & WORD, m + WEYL[1] & WORD
    return a, b, c, d


def words(number: Tensor) -> tuple[Tensor, Tensor]:
    """The lower and the upper 32 bits of int64 numbers."""
    return number & WORD, number >> 32 & WORD


def as_int64(number: int) -> int:
    """The lowest 64 bits of a Python integer, as torch's signed type holds them."""
    number &= 2**64 - 1
    return number - 2**64 if number >= 2**63 else number
