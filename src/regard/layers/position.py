"""Where a token stands: learned, sinusoidal, rotary (RoPE) and linear-bias (ALiBi) positions.

Glossary
p      position, counted from 0, taken from the state and never from the shape of a cache
PE     sinusoidal encoding, PE[p, 2k] = sin(p / 10000^(2k/D)), PE[p, 2k+1] = cos(the same)   Vaswani et al. 2017, 3.5
theta  rotation angle of a pair of coordinates, p f_k with f_k = 10000^(-2k/K)               Su et al. 2021, 3.2.2
m      slope of a head, 2^(-8 h / H)                                                         Press et al. 2022, 3
"""

from __future__ import annotations

import functools
import math
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
    wide = _angle_type(positions, torch.float32)
    angles = positions[..., None].to(wide) * _frequencies(width, base, wide, positions.device)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :width]


@dataclass(frozen=True)
class RotaryConfig(Config, kind="rotary"):
    """How fast each pair of coordinates turns: f_k = base^(-2k/K), and slower in a model stretched to longer texts.

    width    K, coordinates of a head that are turned, the first ones; None for all (Black et al. 2022).
    scaling  none; linear, all f_k / factor (Chen et al. 2023); llama3, where a pair that turns less than `low` times in
             `trained` positions has f_k / factor, one that turns more than `high` times keeps f_k, and those between
             have a mean of both (Grattafiori et al. 2024).
    trained  positions that the model was first trained on.
    """

    base: float = ROTARY_BASE
    width: int | None = None
    scaling: Literal["none", "linear", "llama3"] = "none"
    factor: float = 1.0
    low: float = 1.0
    high: float = 4.0
    trained: int = 8192

    def __post_init__(self) -> None:
        check(self.base > 0, f"the base of rotary positions must be positive, found {self.base}")
        even = self.width is None or (self.width > 0 and self.width % 2 == 0)
        check(even, f"rotary positions turn pairs: width must be even and positive, found {self.width}")
        check(self.factor > 0, f"the factor of rotary positions must be positive, found {self.factor}")
        check(0 < self.low < self.high, f"low must lie between 0 and high, found {self.low} and {self.high}")
        check(self.trained > 0, f"trained must be positive, found {self.trained}")

    @property
    def plain(self) -> bool:
        """Whether all coordinates turn, each pair as fast as its base says."""
        return self.width is None and self.scaling == "none"

    def frequencies(self, width: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "_"]:
        """f_k of the `width` coordinates that are turned."""
        frequency = _frequencies(width, self.base, dtype, device)
        if self.scaling == "none":
            return frequency
        if self.scaling == "linear":
            return frequency / self.factor
        turns = frequency * self.trained / (2 * math.pi)
        share = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return frequency * (share + (1 - share) / self.factor)


ROTARY = RotaryConfig()


def rotate(
    x: Float[Tensor, "B T H K"], positions: Int[Tensor, "#B T"] | None = None, rotary: RotaryConfig = ROTARY
) -> Float[Tensor, "B T H K"]:
    """RoPE with interleaved pairs: (x_2k, x_2k+1), read as a complex number, times e^(i theta).

    The product of a rotated query and a rotated key depends on the difference of their positions only.
    positions: None for those from 0 on, whose angles are computed once for all layers and calls.
    """
    if rotary.width is not None and rotary.width < x.shape[-1]:
        turned = rotate(x[..., : rotary.width], positions, rotary)
        return torch.cat([turned, x[..., rotary.width :]], -1)
    wide = torch.promote_types(x.dtype, torch.float32)
    if positions is None:
        cosine, sine = _turns(x.shape[1], x.shape[-1], rotary, wide, x.device)
    else:
        cosine, sine = _turned(positions, x.shape[-1], rotary, wide)
    if x.device.type == "cpu" and not torch.compiler.is_compiling():
        pairs = torch.view_as_complex(x.to(wide).unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * torch.complex(cosine, sine)).flatten(-2).to(x.dtype)
    # The same product written out: compilers do not fuse complex numbers.
    real, imaginary = x.to(wide).unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)
    return turned.flatten(-2).to(x.dtype)


def _turned(positions: Tensor, width: int, rotary: RotaryConfig, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every angle, (B, T, 1, K/2)."""
    wide = _angle_type(positions, dtype)
    angles = (positions[..., None].to(wide) * rotary.frequencies(width, wide, positions.device))[:, :, None]
    return angles.cos().to(dtype), angles.sin().to(dtype)


Turns = tuple[int, int, RotaryConfig, torch.dtype, torch.device]
_kept: dict[Turns, tuple[Tensor, Tensor]] = {}  # that used last at the end
_keeping = threading.Lock()


def kept_turns(device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """All that is kept on a device: who records addresses, as a CUDA graph does, holds on to what it may have read."""
    with _keeping:
        return [turns for key, turns in _kept.items() if key[-1].type == device.type]


def _turns(
    length: int, width: int, rotary: RotaryConfig, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """The same of positions 0 to length - 1, kept for the next call of these sizes.

    What is compiled never looks at what is kept: it would be compiled again when an earlier call has left something.
    """
    if torch.compiler.is_compiling():
        return _turned(torch.arange(length, device=device)[None], width, rotary, dtype)
    key: Turns = (length, width, rotary, dtype, device)
    with _keeping:
        found = _kept.pop(key, None)
        if found is not None:
            _kept[key] = found
            return found
    # Made apart from whatever watches or counts what is computed: whether it is made depends on what was before.
    with torch.inference_mode(False), torch.no_grad(), _disable_current_modes():
        made = _turned(torch.arange(length, device=device)[None], width, rotary, dtype)
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


def _angle_type(positions: Tensor, like: torch.dtype) -> torch.dtype:
    """float64 on a CPU, so that far positions keep their phase."""
    return torch.float64 if like == torch.float64 or positions.device.type == "cpu" else torch.float32


def _frequencies(width: int, base: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """base^(-2k/width), (ceil(width / 2),)."""
    return base ** (-torch.arange(0, width, 2, dtype=dtype, device=device) / width)


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
