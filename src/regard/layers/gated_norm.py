"""RMSNorm of what a gate lets through, with which Mamba-2 ends its mixing (Dao and Gu 2024)."""

from __future__ import annotations

from torch import Tensor

from regard.kernels.gated_norm import gated_rms_norm
from regard.layers.norm import RmsNorm


class GatedRmsNorm(RmsNorm):
    """RMSNorm of x silu(gate); of x alone where what is given has gone through its gate already."""

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  # a gate is no sum
        self, x: Tensor, gate: Tensor | None = None
    ) -> Tensor:
        return super().forward(x) if gate is None else gated_rms_norm(x, gate, self.weight, self.epsilon)
