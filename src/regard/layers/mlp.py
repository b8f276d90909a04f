"""Feed-forward nets at one position: h = g(x W_1 + b_1), y = h W_2 + b_2, and the gated form (Shazeer 2020).

The net between a stack and its head is t = norm(g(W h + b)) (Devlin et al. 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from regard.core.config import Config, check
from regard.core.mixer import Shows
from regard.core.tap import Tap
from regard.layers.linear import ACTIVATIONS, Activation, Linear, followed
from regard.layers.norm import NormConfig


@dataclass(frozen=True)
class MlpConfig(Config, kind="mlp"):
    """d_hidden is the inner width F. gated: h = g(x W_g) * (x W_1), which with silu is SwiGLU."""

    d_model: int
    d_hidden: int
    activation: Activation = "gelu_tanh"
    gated: bool = False
    bias: bool = True

    def __post_init__(self) -> None:
        check(self.d_hidden > 0, f"d_hidden must be positive, found {self.d_hidden}")

    def build(self) -> Mlp:
        return Mlp(self)


class Mlp(nn.Module):
    """Two linear maps with an activation between them, the same at every position."""

    writes_to_stream = ("hidden_to_output",)
    adds = True
    shows: ClassVar[Shows] = {"neurons": "neurons"}

    def __init__(self, config: MlpConfig) -> None:
        super().__init__()
        self.input_to_hidden = Linear(config.d_model, config.d_hidden, bias=config.bias)
        self.input_to_gate = Linear(config.d_model, config.d_hidden, bias=config.bias) if config.gated else None
        self.hidden_to_output = Linear(config.d_hidden, config.d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.activation]
        self._activation: Activation = config.activation
        self.neurons = Tap()

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """y, or residual + y."""
        if self.input_to_gate is None:
            hidden = followed(self.input_to_hidden, x, self._activation)
        else:
            hidden = followed(self.input_to_gate, x, self._activation) * self.input_to_hidden(x)
        return followed(self.hidden_to_output, self.neurons(hidden), residual=residual)


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
        self.vector_to_hidden = Linear(config.d_model, config.d_model)
        self._activation: Activation = config.activation
        self.norm = config.norm.build()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(followed(self.vector_to_hidden, x, self._activation))
