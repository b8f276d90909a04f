"""Where a token stands: learned, sinusoidal, rotary (RoPE) and linear-bias (ALiBi) positions.

Glossary
p      position, counted from 0, taken from the state and never from the shape of a cache
PE     sinusoidal encoding, PE[p, 2k] = sin(p / 10000^(2k/D)), PE[p, 2k+1] = cos(the same)   Vaswani et al. 2017, 3.5
theta  rotation angle of a pair of coordinates, p / 10000^(2k/K)                             Su et al. 2021, 3.2.2
m      slope of a head, 2^(-8 h / H)                                                         Press et al. 2022, 3
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from regard.core.config import Config, check
from regard.core.device import widest
from regard.errors import UsageError

# Positions for which sinusoids are kept; those of longer texts are made anew.
LONGEST_TABLE = 1 << 14
# Sizes for which the angles of rotary positions are kept.
MOST_KEPT = 16
ROTARY_BASE = 10000.0


def sinusoids(positions: Int[Tensor, "*P"], width: int, base: float = 10000.0) -> Float[Tensor, "*P D"]:
    """PE at the given positions, sines and cosines interleaved."""
    angles = _angles(positions, width, base)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :width]


def rotate(
    x: Float[Tensor, "B T H K"], positions: Int[Tensor, "#B T"] | None = None, base: float = ROTARY_BASE
) -> Float[Tensor, "B T H K"]:
    """RoPE with interleaved pairs: (x_2k, x_2k+1), read as a complex number, times e^(i theta).

    The product of a rotated query and a rotated key depends on the difference of their positions only.
    positions: None for those from 0 on, whose angles are computed once for all layers and calls.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    if positions is None:
        cosine, sine = _turns(x.shape[1], x.shape[-1], base, wide, x.device)
    else:
        cosine, sine = _turned(positions, x.shape[-1], base, wide)
    if x.device.type == "cpu" and not torch.compiler.is_compiling():
        pairs = torch.view_as_complex(x.to(wide).unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * torch.complex(cosine, sine)).flatten(-2).to(x.dtype)
    # The same product written out: compilers do not fuse complex numbers.
    real, imaginary = x.to(wide).unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)
    return turned.flatten(-2).to(x.dtype)


def _turned(positions: Tensor, width: int, base: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every angle, (B, T, 1, K/2)."""
    angles = _angles(positions, width, base, dtype)[:, :, None]
    return angles.cos().to(dtype), angles.sin().to(dtype)


Turns = tuple[int, int, float, torch.dtype, torch.device]
_kept: dict[Turns, tuple[Tensor, Tensor]] = {}  # that used last at the end
_keeping = threading.Lock()


def kept_turns(device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """All that is kept on a device: who records addresses, as a CUDA graph does, holds on to what it may have read."""
    with _keeping:
        return [turns for key, turns in _kept.items() if key[-1].type == device.type]


def _turns(length: int, width: int, base: float, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """The same of positions 0 to length - 1, kept for the next call of these sizes.

    What is compiled never looks at what is kept: it would be compiled again when an earlier call has left something.
    """
    if torch.compiler.is_compiling():
        return _turned(torch.arange(length, device=device)[None], width, base, dtype)
    key: Turns = (length, width, base, dtype, device)
    with _keeping:
        found = _kept.pop(key, None)
        if found is not None:
            _kept[key] = found
            return found
    # Made apart from whatever watches or counts what is computed: whether it is made depends on what was before.
    with torch.inference_mode(False), torch.no_grad(), _disable_current_modes():
        made = _turned(torch.arange(length, device=device)[None], width, base, dtype)
    if device.type == "meta" or (device.type == "cuda" and torch.cuda.is_current_stream_capturing()):
        return made  # what a graph makes has its numbers only when the graph is replayed
    with _keeping:
        _kept[key] = made
        while len(_kept) > MOST_KEPT:
            del _kept[next(iter(_kept))]
    return made


def alibi_slopes(n_heads: int, device: torch.device | None = None) -> Float[Tensor, "H"]:
    """m_h = 2^(-8 h / H) for h = 1 .. H: a geometric series, steep heads look near, flat ones far."""
    return 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, dtype=widest(device), device=device) / n_heads)


def _angles(positions: Tensor, width: int, base: float, like: torch.dtype = torch.float32) -> Tensor:
    """p / base^(2k/width), in float64 on a CPU so that far positions keep their phase; (..., ceil(width / 2))."""
    dtype = torch.float64 if like == torch.float64 or positions.device.type == "cpu" else torch.float32
    k = torch.arange(0, width, 2, dtype=dtype, device=positions.device)
    return positions[..., None].to(dtype) * base ** (-k / width)


def _looked_up(positions: Int[Tensor, "B T"], width: int) -> Float[Tensor, "B T D"]:
    """The same as `sinusoids`. On a CPU, where sines in float64 are dear, from a table made once."""
    if positions.device.type != "cpu" or not positions.numel() or torch.compiler.is_compiling():
        return sinusoids(positions, width)
    highest = int(positions.max())
    if highest >= LONGEST_TABLE:
        return sinusoids(positions, width)
    return F.embedding(positions, _table(1 << max(6, highest.bit_length()), width))


@functools.lru_cache(maxsize=16)
def _table(length: int, width: int) -> Float[Tensor, "T D"]:
    with torch.inference_mode(False):
        return sinusoids(torch.arange(length, device="cpu"), width)


@dataclass(frozen=True)
class PositionConfig(Config, kind="position"):
    """What is added to the embeddings: a learned row for each position, or a sinusoid.

    max_length  rows of the learned table: later positions do not exist and are refused. Sinusoids have no end.
    """

    d_model: int
    form: Literal["learned", "sinusoidal"] = "learned"
    max_length: int | None = None

    def __post_init__(self) -> None:
        check(self.d_model > 0, f"d_model must be positive, found {self.d_model}")
        if self.form == "learned":
            ok = self.max_length is not None and self.max_length > 0
            check(ok, f"learned positions need a positive max_length, found {self.max_length}")

    def build(self) -> Positions:
        return Positions(self)


def check_width(position: PositionConfig | None, d_model: int) -> None:
    """Refuse positions of another width than that of what they are added to."""
    if position is not None:
        check(position.d_model == d_model, f"positions have width {position.d_model} and are added to {d_model}")


class Positions(nn.Module):
    """The vector added at each position; the same row at the same position of every sequence."""

    def __init__(self, config: PositionConfig) -> None:
        super().__init__()
        self.d_model = config.d_model
        self.max_length = config.max_length if config.form == "learned" else None
        self.table = nn.Embedding(self.max_length, config.d_model) if self.max_length else None

    def forward(self, start: Int[Tensor, "B"] | Int[Tensor, "B T"], length: int) -> Float[Tensor, "B T D"]:
        """start: where each row begins, or the position of every token."""
        positions = start if start.dim() == 2 else start[:, None] + torch.arange(length, device=start.device)  # (B, T)
        if self.table is None or self.max_length is None:
            return _looked_up(positions, self.d_model)
        at_hand = start.device.type == "cpu" and positions.numel() > 0 and not torch.compiler.is_compiling()
        if at_hand and int(positions.max()) >= self.max_length:
            raise UsageError(
                f"position {int(positions.max())} is past the {self.max_length} learned positions; use a shorter text "
                f"or a model without learned positions (model.position=rotary)"
            )
        return self.table(positions)
