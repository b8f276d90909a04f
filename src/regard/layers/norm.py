"""Normalisation of each vector on its own: LayerNorm (Ba et al. 2016) and RMSNorm (Zhang and Sennrich 2019).

Both answer in the number type of what they read, also under autocast, where torch's own would give float32: a residual
stream in half precision stays one, and half as many bytes move. Sums inside are in float32 all the same.

Where something is added to a stream just before it is normalised, the norm is told both and gives the sum and its norm:
without gradients on a GPU that is one kernel (kernels/norm_triton.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.core.dropout import dropout
from regard.kernels import decode_cpu
from regard.kernels.choice import HALF, takes_kernel
from regard.kernels.decode_cpu import Compiled, Step
from regard.kernels.operators import if_built
from regard.kernels.pointwise import rms_norm

# Beyond these torch's own norms are as fast.
WIDEST, MOST_ROWS = 16384, 4096


@dataclass(frozen=True)
class NormConfig(Config, kind="norm"):
    """form = "layer": (x - mean) / std * weight + bias;  form = "rms": x / rms(x) * weight.

    dropout acts after it, where the size of the vectors is settled; `locked`: on the same units of all of a row.
    """

    d_model: int
    form: Literal["layer", "rms"] = "layer"
    epsilon: float = 1e-5
    dropout: float = 0.0
    locked: bool = False

    def __post_init__(self) -> None:
        check(self.epsilon >= 0, f"epsilon must not be negative, found {self.epsilon}")
        check(0 <= self.dropout < 1, f"dropout must lie in [0, 1), found {self.dropout}")

    def build(self) -> nn.Module:
        rms = self.form == "rms"
        norm = RmsNorm(self.d_model, self.epsilon) if rms else LayerNorm(self.d_model, eps=self.epsilon)
        return nn.Sequential(norm, dropout(self.dropout, self.locked)) if self.dropout else norm


class LayerNorm(nn.LayerNorm):
    """(x - mean) / sqrt(variance + epsilon) * weight + bias."""

    adds = True

    @overload
    def forward(self, x: Tensor) -> Tensor: ...
    @overload
    def forward(self, x: Tensor, add: Tensor) -> tuple[Tensor, Tensor]: ...
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  # with something to add
        self, x: Tensor, add: Tensor | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The norm of x; or, of x + add, the sum and its norm."""
        return _normed(self.own, x, add, self.weight, self.bias, self.eps, True)

    def own(self, x: Tensor) -> Tensor:
        if x.dtype not in HALF or not torch.is_autocast_enabled(x.device.type):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            # Either may be left out, whatever their types say.
            parts: list[Tensor | None] = [self.weight, self.bias]
            weight, bias = (None if part is None else part.to(x.dtype) for part in parts)
            return F.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


class RmsNorm(Compiled, nn.Module):
    """x / sqrt(mean(x^2) + epsilon) * weight."""

    adds = True

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    @overload
    def forward(self, x: Tensor) -> Tensor: ...
    @overload
    def forward(self, x: Tensor, add: Tensor) -> tuple[Tensor, Tensor]: ...
    def forward(self, x: Tensor, add: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        """The norm of x; or, of x + add, the sum and its norm."""
        quick = self.compiled(x) if self.compiled is not None and add is None else None
        return _normed(self.own, x, add, self.weight, None, self.epsilon, False) if quick is None else quick

    def to_step(self) -> Step | None:
        return decode_cpu.rms_norm(self.weight, self.epsilon)

    def own(self, x: Tensor) -> Tensor:
        if x.dtype not in HALF or not torch.is_autocast_enabled(x.device.type):
            return rms_norm(x, self.weight, self.epsilon)
        with torch.autocast(x.device.type, enabled=False):
            return rms_norm(x, self.weight, self.epsilon)


def _normed(
    own: Callable[[Tensor], Tensor], x: Tensor, add: Tensor | None, weight: Tensor, bias: Tensor | None,
    epsilon: float, centred: bool,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """By the kernel where it takes x, else by `own`. centred: as LayerNorm is, and RMSNorm is not."""
    if _takes_kernel(x, weight, bias, add):
        found = if_built("norms", _by_kernel, x, weight, bias, epsilon, centred, add)
        if found is not None:
            return found
    total = x if add is None else x + add
    y = own(total)
    return y if add is None else (total, y)


def _takes_kernel(x: Tensor, weight: Tensor | None, bias: Tensor | None, add: Tensor | None) -> bool:
    """Of norms over the last axis that have a weight."""
    if torch.compiler.is_compiling():
        return False  # before sizes are looked at: what is compiled would be so for these alone
    width = x.shape[-1]
    few = weight is not None and weight.dim() == 1 and width <= WIDEST and x.numel() <= MOST_ROWS * width
    few = few and (add is None or add.shape == x.shape)
    return few and takes_kernel(x, weight, bias, add)


def _by_kernel(
    x: Tensor, weight: Tensor, bias: Tensor | None, epsilon: float, centred: bool, add: Tensor | None
) -> Tensor | tuple[Tensor, Tensor]:
    from regard.kernels.norm_triton import norm

    total, y = norm(x, weight, bias, epsilon, centred=centred, add=add)
    return y if add is None else (total, y)
