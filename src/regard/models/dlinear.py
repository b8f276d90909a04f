"""DLinear: the past taken apart into a moving average and the rest, and a linear map of each (Zeng et al. 2023).

    m_t = mean of x over `kernel` steps around t, the ends repeated        s = x - m
    y   = W_m m + W_s s + b

In the paper the maps are learnt by gradients. Here they are solved for: both together are one ridge regression, in
which the penalty is smaller for slow changes of the past than for fast ones, since only slow ones are in m. It sees the
value alone, and nothing that is known ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.config import check
from regard.core.data_spec import DataSpec
from regard.core.fitted import Tell
from regard.core.registry import register
from regard.fitting.lag_weights import LagGroup, laid_out
from regard.fitting.windows import WindowRows
from regard.models.linear_forecaster import LinearForecaster, LinearForecasterConfig


@dataclass(frozen=True)
class DlinearConfig(LinearForecasterConfig, kind="dlinear"):
    """kernel: steps of the moving average, an odd number."""

    kernel: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.kernel > 0 and self.kernel % 2 == 1, f"kernel must be an odd number of steps, found {self.kernel}")

    def build(self) -> Dlinear:
        return Dlinear(self)


class Dlinear(LinearForecaster):
    """Columns: m of the past, then s."""

    config: DlinearConfig

    def learn_layout(self, rows: WindowRows, tell: Tell) -> None:
        """There is nothing to learn: the columns are the history."""

    @property
    def n_columns(self) -> int:
        return 2 * self.config.history

    def columns(self, past: Tensor, known: Tensor) -> Tensor:
        values, side = past[:, :, 0], self.config.kernel // 2
        padded = F.pad(values[:, None], (side, side), mode="replicate")[:, 0]
        # Sums of a window by differences: the same whatever the length of the window.
        sums = F.pad(padded.cumsum(1), (1, 0))
        average = (sums[:, self.config.kernel :] - sums[:, : -self.config.kernel]) / self.config.kernel
        return torch.cat([average, values - average], 1)

    def groups(self, names: Sequence[str]) -> list[LagGroup]:
        steps = [str(step - self.config.history) for step in range(self.config.history)]
        return laid_out([("moving average", steps), ("what is left", steps)])


@register(
    "dlinear",
    sizes={size: {} for size in ("tiny", "small", "base", "paper")},
    paper="Zeng, Chen, Zhang, Xu 2023, Are transformers effective for time series forecasting?",
    task="series",
)
def dlinear(
    spec: DataSpec, *, kernel: int = 0, strength: float = 0.0, blocks: int = 5, asinh: bool = True
) -> DlinearConfig:
    """The past as a moving average and what is left, and a linear map of each, solved for.

    kernel: 0 for a season, made odd.
    """
    given = (spec.n_known, spec.history, spec.horizon, asinh)
    return DlinearConfig(
        *given, n_past=spec.n_past, n_static=spec.n_static, strength=strength, blocks=blocks,
        kernel=kernel or _kernel(spec),
    )  # fmt: skip


def _kernel(spec: DataSpec) -> int:
    """The odd number of steps from a season on, such as 25 of hours, which is the paper's."""
    return min(spec.season or 24, spec.history) // 2 * 2 + 1
