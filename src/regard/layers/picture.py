"""Pictures to vectors, as embeddings of an encoder: patches mapped one by one, or a small residual network.

Both cut a picture into a grid and give one vector for each of its cells, row by row, with learned positions added.
In this file H and W are the height and the width of a picture, R and C the rows and the columns of the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.errors import UsageError


def as_input(pictures: UInt8[Tensor, "B H W 3"]) -> Float[Tensor, "B 3 H W"]:
    """Stored bytes as the numbers a network reads: 0 .. 255 becomes -1 .. 1, channels first."""
    return pictures.permute(0, 3, 1, 2).float() / 127.5 - 1


@dataclass(frozen=True)
class PatchesConfig(Config, kind="patches"):
    """Square patches of `patch` pixels, each mapped to a vector (Dosovitskiy et al. 2021, 3.1).

    size  height and width of the pictures.
    """

    d_model: int
    size: int = 32
    patch: int = 4
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _check_sizes(self.d_model, self.size, self.dropout)
        fits = self.patch > 0 and self.size % self.patch == 0
        check(fits, f"patch must divide the size of the pictures, {self.size}, found {self.patch}")

    def build(self) -> Patches:
        return Patches(self)


class Patches(nn.Module):
    """x_(r, c) = W vec(patch_(r, c)) + b + position_(r, c): a convolution whose stride is its width."""

    reads = "pictures"

    max_length: int | None = None

    def __init__(self, config: PatchesConfig) -> None:
        super().__init__()
        self.size = config.size
        self.patch_to_vector = nn.Conv2d(3, config.d_model, config.patch, config.patch)
        self.position = GridPositions(config.size // config.patch, config.d_model)
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    def forward(self, pictures: Float[Tensor, "B 3 H W"], start: Int[Tensor, "B"]) -> Float[Tensor, "B S D"]:
        _check_picture(pictures, self.size)
        grid = self.patch_to_vector(pictures.to(self.patch_to_vector.weight.dtype))
        return self.dropout(self.position(grid))


@dataclass(frozen=True)
class ConvolutionsConfig(Config, kind="convolutions"):
    """A residual block for each of `widths`, every one on half the grid of the one before it.

    size  height and width of the pictures; the grid that comes out is size / 2^(number of widths).
    """

    d_model: int
    size: int = 32
    widths: tuple[int, ...] = (32, 64)
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _check_sizes(self.d_model, self.size, self.dropout)
        check(bool(self.widths) and min(self.widths) > 0, f"widths must be positive, found {list(self.widths)}")
        fits = self.size % 2 ** len(self.widths) == 0
        check(fits, f"{len(self.widths)} widths halve the pictures as often, which {self.size} pixels do not allow")

    def build(self) -> Convolutions:
        return Convolutions(self)


class Convolutions(nn.Module):
    """A map of 3 x 3 pixels with stride 2, residual blocks, and the last grid as positions."""

    reads = "pictures"

    max_length: int | None = None

    def __init__(self, config: ConvolutionsConfig) -> None:
        super().__init__()
        widths = config.widths
        self.size = config.size
        self.picture_to_grid = nn.Conv2d(3, widths[0], 3, stride=2, padding=1)
        steps = zip((widths[0], *widths), widths, strict=False)
        blocks = [ResidualBlock(before, after, 2 if i else 1) for i, (before, after) in enumerate(steps)]
        self.blocks = nn.Sequential(*blocks)
        self.norm = group_norm(widths[-1])
        self.grid_to_vector = nn.Conv2d(widths[-1], config.d_model, 1)
        self.position = GridPositions(config.size // 2 ** len(widths), config.d_model)
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    def forward(self, pictures: Float[Tensor, "B 3 H W"], start: Int[Tensor, "B"]) -> Float[Tensor, "B S D"]:
        _check_picture(pictures, self.size)
        grid = self.picture_to_grid(pictures.to(self.picture_to_grid.weight.dtype))
        grid = F.silu(self.norm(self.blocks(grid)))
        return self.dropout(self.position(self.grid_to_vector(grid)))


class ResidualBlock(nn.Module):
    """y = skip(x) + g(norm(g(norm(x)) * W_1)) * W_2, norms before the maps (He et al. 2016, Identity mappings).

    * is a convolution of 3 x 3 and g is silu. Where the width or the grid changes, skip is a map of 1 x 1.
    """

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.input_norm = group_norm(before)
        self.input_to_hidden = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.hidden_norm = group_norm(after)
        self.hidden_to_output = nn.Conv2d(after, after, 3, padding=1, bias=False)
        same = stride == 1 and before == after
        self.skip = nn.Identity() if same else nn.Conv2d(before, after, 1, stride=stride, bias=False)

    def forward(self, x: Float[Tensor, "B F R C"]) -> Float[Tensor, "B G P Q"]:
        hidden = self.input_to_hidden(F.silu(self.input_norm(x)))
        return self.skip(x) + self.hidden_to_output(F.silu(self.hidden_norm(hidden)))


class GridPositions(nn.Module):
    """position_(r, c) = row_r + column_c, both learned, added to a grid that is then read row by row."""

    def __init__(self, side: int, d_model: int) -> None:
        super().__init__()
        self.row = nn.Embedding(side, d_model)
        self.column = nn.Embedding(side, d_model)
        # The patches of a new model differ by little; positions of size 1 would drown them.
        for table in (self.row, self.column):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, grid: Float[Tensor, "B D R C"]) -> Float[Tensor, "B S D"]:
        places = torch.arange(grid.shape[2], device=grid.device)
        cells = grid.permute(0, 2, 3, 1) + self.row(places)[:, None] + self.column(places)  # (B, R, C, D)
        return cells.flatten(1, 2)


def group_norm(width: int) -> nn.GroupNorm:
    """Normalisation over groups of channels of one picture (Wu and He 2018): a batch equals its members.

    Up to eight groups, one where eight would have fewer than four channels each.
    """
    return nn.GroupNorm(math.gcd(width, 8) if width >= 32 else 1, width)


def _check_sizes(d_model: int, size: int, dropout: float) -> None:
    check(d_model > 0, f"d_model must be positive, found {d_model}")
    check(size > 0, f"size must be positive, found {size}")
    check(0 <= dropout < 1, f"dropout must lie in [0, 1), found {dropout}")


def _check_picture(pictures: Tensor, size: int) -> None:
    if pictures.shape[2:] != torch.Size((size, size)):
        height, width = pictures.shape[2:]
        raise UsageError(f"the model reads pictures of {size} x {size} pixels, found {height} x {width}; resize them")
