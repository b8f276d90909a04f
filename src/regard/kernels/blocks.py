"""Linear maps whose weights are blocks of few bits, as GGUF files have them: y = x W^T + b.

A row of W is a number of blocks, each of 32 or 256 numbers with scales of their own:

    Q4_0, Q5_0, Q8_0   32 numbers:   w = d q,                      d of 16 bits, q of 4, 5 or 8 bits with a sign
    Q4_K, Q5_K         256 numbers:  w = d s_j q - e m_j,          s_j and m_j of 6 bits for each 32 of them
    Q6_K               256 numbers:  w = d s_j q,                  s_j of 8 bits for each 16 of them

Below is the definition, which makes W of them in float32; decode_cpu.c multiplies few rows without ever making it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

AT_ONCE = 1 << 23  # numbers of a matrix that are made at a time


@dataclass(frozen=True)
class Kind:
    """number: of its rows in decode_cpu.c. size: numbers of a block. bytes: that it takes."""

    number: int
    size: int
    bytes: int


KINDS = {
    "Q4_0": Kind(0, 32, 18),
    "Q5_0": Kind(1, 32, 22),
    "Q8_0": Kind(2, 32, 34),
    "Q4_K": Kind(3, 256, 144),
    "Q5_K": Kind(4, 256, 176),
    "Q6_K": Kind(5, 256, 210),
}


def row_bytes(kind: str, width: int) -> int:
    """Bytes of a row of so many numbers."""
    return width // KINDS[kind].size * KINDS[kind].bytes


def dequantised(blocks: Tensor, kind: str) -> Tensor:
    """W (N, K) in float32 of its rows (N, bytes)."""
    known = KINDS[kind]
    parts = blocks.reshape(-1, known.bytes)
    found = MADE[kind](parts)
    return found.reshape(len(blocks), -1)


def unpacked(blocks: Tensor, kind: str) -> Tensor:
    """The same, some rows at a time, so that W is all that takes memory."""
    width = blocks.shape[1] // KINDS[kind].bytes * KINDS[kind].size
    found = torch.empty(len(blocks), width, device=blocks.device)
    rows = max(1, AT_ONCE // max(width, 1))
    for first in range(0, len(blocks), rows):
        found[first : first + rows] = dequantised(blocks[first : first + rows], kind)
    return found


def blocks_linear_readable(x: Tensor, blocks: Tensor, kind: str, bias: Tensor | None) -> Tensor:
    """x W^T + b in the number type of x, a part of W at a time."""
    rows = max(1, AT_ONCE // x.shape[-1])
    parts = [F.linear(x, dequantised(part, kind).to(x.dtype)) for part in blocks.split(rows)]
    y = torch.cat(parts, -1) if len(parts) > 1 else parts[0]
    return y if bias is None else y + bias.to(x.dtype)


def _half(parts: Tensor, place: int) -> Tensor:
    """The number of 16 bits at a place of each block, (blocks, 1)."""
    return parts[:, place : place + 2].contiguous().view(torch.float16).float()


def _fours(low: Tensor) -> Tensor:
    """Numbers of 4 bits: those of the lower halves of bytes, then those of the upper ones."""
    return torch.cat([low & 15, low >> 4], -1)


def _q4_0(parts: Tensor) -> Tensor:
    return _half(parts, 0) * (_fours(parts[:, 2:]).float() - 8)


def _q5_0(parts: Tensor) -> Tensor:
    fifth = _bits(parts[:, 2:6]).flatten(1)
    return _half(parts, 0) * ((_fours(parts[:, 6:]) + 16 * fifth).float() - 16)


def _q8_0(parts: Tensor) -> Tensor:
    return _half(parts, 0) * parts[:, 2:].contiguous().view(torch.int8).float()


def _bits(numbers: Tensor) -> Tensor:
    """The eight bits of each byte, lowest first, (..., 8)."""
    return numbers[..., None] >> torch.arange(8, dtype=torch.uint8, device=numbers.device) & 1


def _sixes(parts: Tensor) -> tuple[Tensor, Tensor]:
    """d s_j and e m_j, (blocks, 8, 1)."""
    low, high, rest = parts[:, 4:16].unflatten(1, (3, 4)).unbind(1)
    scale = torch.cat([low & 63, (rest & 15) | (low >> 6) << 4], -1)
    offset = torch.cat([high & 63, rest >> 4 | (high >> 6) << 4], -1)
    return (_half(parts, 0) * scale.float())[..., None], (_half(parts, 2) * offset.float())[..., None]


def _k_fours(low: Tensor) -> Tensor:
    """(blocks, 8, 32) numbers of 4 bits, of which 64 share 32 bytes."""
    return _fours(low.unflatten(1, (4, 32))).unflatten(-1, (2, 32)).flatten(1, 2)


def _q4_k(parts: Tensor) -> Tensor:
    scale, offset = _sixes(parts)
    return scale * _k_fours(parts[:, 16:]).float() - offset


def _q5_k(parts: Tensor) -> Tensor:
    scale, offset = _sixes(parts)
    fifth = _bits(parts[:, 16:48]).transpose(1, 2)  # (blocks, 8, 32)
    return scale * (_k_fours(parts[:, 48:]) + 16 * fifth).float() - offset


def _q6_k(parts: Tensor) -> Tensor:
    low = _fours(parts[:, :128].unflatten(1, (2, 64))).unflatten(-1, (4, 32))  # (blocks, 2, 4, 32)
    places = torch.arange(0, 8, 2, dtype=torch.uint8, device=parts.device)[:, None]
    high = parts[:, 128:192].unflatten(1, (2, 1, 32)) >> places & 3
    scale = parts[:, 192:208].contiguous().view(torch.int8).float() * _half(parts, 208)
    return scale[..., None] * ((low | high << 4).float() - 32).flatten(1).unflatten(1, (16, 16))


MADE = {"Q4_0": _q4_0, "Q5_0": _q5_0, "Q8_0": _q8_0, "Q4_K": _q4_k, "Q5_K": _q5_k, "Q6_K": _q6_k}
