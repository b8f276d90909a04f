"""Feed-forward net at one position: h = g(x W_1 + b_1), y = h W_2 + b_2, and the gated form (Shazeer 2020)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.kernels.pointwise import gelu_tanh, relu_squared

Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "tanh", "relu_squared"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "silu": F.silu,
    "tanh": torch.tanh,
    "relu_squared": relu_squared,
}


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

    def __init__(self, config: MlpConfig) -> None:
        super().__init__()
        self.input_to_hidden = nn.Linear(config.d_model, config.d_hidden, bias=config.bias)
        self.input_to_gate = nn.Linear(config.d_model, config.d_hidden, bias=config.bias) if config.gated else None
        self.hidden_to_output = nn.Linear(config.d_hidden, config.d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        if self.input_to_gate is None:
            return self.hidden_to_output(self.activation(self.input_to_hidden(x)))
        return self.hidden_to_output(self.activation(self.input_to_gate(x)) * self.input_to_hidden(x))
