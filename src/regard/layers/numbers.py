"""Numbers over time to vectors: a linear map of each time, or of several times side by side.

    x_j = W [u_(jP+1) ; .. ; u_(jP+P)] + b        P times make a patch, such as the 24 hours of a day

A patch makes the sequence P times shorter and shows a layer the shape of a whole day at once (Nie et al. 2023).
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.errors import UsageError
from regard.layers.position import PositionConfig, check_width


@dataclass(frozen=True)
class NumbersConfig(Config, kind="numbers"):
    """n_channels: numbers at each time. patch: P. position: added to each vector where given."""

    n_channels: int
    d_model: int
    patch: int = 1
    position: PositionConfig | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check(min(self.n_channels, self.d_model, self.patch) > 0, "n_channels, d_model and patch must be positive")
        check_width(self.position, self.d_model)
        check(0 <= self.dropout < 1, f"dropout must lie in [0, 1), found {self.dropout}")

    def build(self) -> Numbers:
        return Numbers(self)


class Numbers(nn.Module):
    """(B, S, C) to (B, S / P, D)."""

    reads = "numbers"

    def __init__(self, config: NumbersConfig) -> None:
        super().__init__()
        self.patch = config.patch
        self.patch_to_vector = nn.Linear(config.n_channels * config.patch, config.d_model)
        self.position = config.position.build() if config.position else None
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    @property
    def max_length(self) -> int | None:
        """Of a series none: how much is read is a setting of the data."""
        return None

    def forward(self, numbers: Float[Tensor, "B S C"], start: Int[Tensor, "B"]) -> Float[Tensor, "B _ D"]:
        if numbers.shape[1] % self.patch:
            raise UsageError(f"a history of {numbers.shape[1]} steps does not divide into patches of {self.patch}")
        x = self.patch_to_vector(self.dropout(numbers).unflatten(1, (-1, self.patch)).flatten(2))
        return x if self.position is None else x + self.position(start, x.shape[1]).to(x.dtype)
