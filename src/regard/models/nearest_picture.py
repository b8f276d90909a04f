"""The captions of the most similar pictures of training, softly looked up (Nadaraya 1964; Watson 1964).

    s_k = -mean((g(x) - g(x_k))^2),    g the picture in means of squares of pixels, `grid` in a row, from -1 to 1

What is done with them is in regard/models/soft_lookup.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.config import check
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, Tell
from regard.core.registry import register
from regard.errors import UsageError
from regard.fitting.lexicon import Texts
from regard.fitting.model import require
from regard.layers.picture import as_input
from regard.models.soft_lookup import SoftLookup, SoftLookupConfig

READ_AT_ONCE = 1024  # pictures


@runtime_checkable
class CaptionRows(Protocol):
    """pictures (n, H, W, 3) of unsigned bytes; target: ids of captions."""

    @property
    def pictures(self) -> np.ndarray: ...
    @property
    def target(self) -> Any: ...


@runtime_checkable
class CaptionData(Protocol):
    """The training part of a task of captions."""

    @property
    def rows(self) -> CaptionRows: ...


@dataclass(frozen=True)
class NearestPictureConfig(SoftLookupConfig, kind="nearest_picture"):
    """size: rows and columns of a picture. grid: squares in a row of which the means are compared; at most `size`."""

    size: int = 32
    grid: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.size > 0, f"size must be positive, found {self.size}")
        check(self.grid >= 1, f"grid must be 1 or more, found {self.grid}")

    def build(self) -> NearestPicture:
        return NearestPicture(self)

    def example(self) -> _Example:
        chance = np.random.default_rng(0)
        pictures = chance.integers(256, size=(9, self.size, self.size, 3), dtype=np.uint8)
        return _Example(pictures, Texts(chance.integers(self.vocab_size - 1, size=36), np.arange(10) * 4))


class NearestPicture(SoftLookup):
    """pictures (n, 3 grid^2): those of training, as they are compared."""

    reads = "pictures"
    bandwidths = (0.02, 0.005, 0.01, 0.04, 0.08, 0.16, 0.32)
    pictures: Tensor

    def __init__(self, config: NearestPictureConfig) -> None:
        super().__init__(config)
        self.register_buffer("pictures", torch.zeros(0, 0))

    @property
    def squares(self) -> int:
        """In a row."""
        return min(self.config.grid, self.config.size)

    @property
    def d_memory(self) -> int:
        return 3 * self.squares**2

    def fit(self, data: CaptionData, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        pictures = data.rows.pictures
        parts = (pictures[first : first + READ_AT_ONCE] for first in range(0, len(pictures), READ_AT_ONCE))
        seen = torch.cat([self._seen(as_input(torch.from_numpy(part))) for part in parts])
        return self.remember(data.rows.target, {"pictures": seen}, settings, tell)

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The picture as it is compared, (B, 1, 3 grid^2)."""
        size = self.config.size
        if source.shape[1:] != (3, size, size):
            found = " x ".join(map(str, source.shape[1:]))
            raise UsageError(f"pictures must be 3 x {size} x {size}, found {found}")
        return self._seen(source)[:, None], None

    def similarity(self, memory: Tensor, lengths: Tensor | None) -> Tensor:
        asked, known = memory[:, 0].double(), self.pictures.double()
        squares = asked.square().sum(1)[:, None] + known.square().sum(1) - 2 * asked @ known.T
        return -squares.clamp(min=0) / self.d_memory

    def differences(self, source: Tensor, rows: Sequence[int]) -> Tensor:
        """How far each square of a picture, (1, ...), lies from those of training, (n, squares, squares).

        Their mean over the squares is -s_k.
        """
        asked, known = self.encode(source)[0][0].double(), self.pictures[list(rows)].double()
        return (asked - known).square().unflatten(1, (3, self.squares, self.squares)).mean(1)

    def _seen(self, pictures: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(pictures.float(), self.squares).flatten(1)

    def settle(self) -> None:
        super().settle()
        if self.pictures.is_meta or not len(self.starts):
            return
        require(self.pictures.shape == (len(self.starts) - 1, self.d_memory), "the number of pictures")


@dataclass(frozen=True)
class _Example:
    pictures: np.ndarray
    target: Texts

    @property
    def rows(self) -> _Example:
        return self


@register(
    "nearest_picture",
    sizes={"tiny": {"neighbours": 3, "order": 2, "grid": 4}, "small": {}, "base": {}, "paper": {}},
    paper="Nadaraya 1964, On estimating regression",
    task="captions",
)
def nearest_picture(
    spec: DataSpec,
    *,
    neighbours: int = 32,
    order: int = 4,
    bandwidth: float | None = None,
    back_off: float | None = None,
    grid: int = 16,
) -> NearestPictureConfig:
    """The captions of the most similar pictures of training, softly looked up."""
    assert spec.picture is not None
    return NearestPictureConfig(spec.vocab_size, neighbours, order, bandwidth, back_off, spec.picture[1], grid)
