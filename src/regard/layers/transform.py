"""The net between a stack and its head: t = norm(g(W h + b)), the same at every position (Devlin et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from regard.core.config import Config, check
from regard.layers.mlp import ACTIVATIONS, Activation
from regard.layers.norm import NormConfig


@dataclass(frozen=True)
class TransformConfig(Config, kind="transform"):
    """One linear map with an activation, and a norm after it."""

    d_model: int
    norm: NormConfig
    activation: Activation = "gelu"

    def __post_init__(self) -> None:
        check(self.norm.d_model == self.d_model, f"the norm has width {self.norm.d_model}, the map {self.d_model}")

    def build(self) -> Transform:
        return Transform(self)


class Transform(nn.Module):
    """What a vector is turned into before it is compared with the rows of the head."""

    def __init__(self, config: TransformConfig) -> None:
        super().__init__()
        self.vector_to_hidden = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = config.norm.build()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.activation(self.vector_to_hidden(x)))
