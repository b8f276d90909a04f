"""Fitted forecasts: one value for each time ahead, and quantiles from what such forecasts missed of the past.

    y_h = f(past, known)_h                     what a subclass says, in stretched units
    q_h = S^-1(y_h + e_h(q))                   e_h(q): quantile q of the misses of time h, those of 0.5 at 0
    S   = asinh, which treats spikes as a logarithm would, or nothing

The misses are of windows that the fit did not see, so that the quantiles hold for what comes; the middle one is the
forecast itself. Windows are read in the run's own scale, see regard/data/scaler.py.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from regard.core.config import Config, check
from regard.core.context import EMPTY, Context
from regard.core.fitted import FitSettings, Nobody, Tell
from regard.core.inputs import PastKnown
from regard.core.state import State
from regard.fitting.model import FittedModel, require
from regard.fitting.windows import CALENDAR, Windows, example_windows

QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FARTHEST = 20.0  # asinh of what is forecast at most: beyond it a sum of weights would be infinite
ENOUGH = 50  # misses of one time of the horizon that have quantiles of their own; of fewer all times share theirs


@dataclass(frozen=True)
class PointConfig(Config):
    """n_known: numbers known ahead for each time, the calendar's 8 last. history, horizon: steps read and forecast.

    asinh  whether values are stretched.
    """

    fitted: ClassVar[bool] = True

    n_known: int
    history: int
    horizon: int
    asinh: bool = True
    quantiles: tuple[float, ...] = QUANTILES

    def __post_init__(self) -> None:
        check(self.n_known >= CALENDAR, f"n_known counts the calendar's {CALENDAR} numbers, found {self.n_known}")
        check(self.history > 0 and self.horizon > 0, "history and horizon must be 1 or more")
        check(all(0 < q < 1 for q in self.quantiles), f"quantiles lie between 0 and 1, found {self.quantiles}")
        check(0.5 in self.quantiles, "quantiles: 0.5 is missing, which is the forecast itself")

    @property
    def n_measured(self) -> int:
        """Numbers known ahead beside the calendar."""
        return self.n_known - CALENDAR

    def build(self) -> PointForecaster:
        raise NotImplementedError(f"{type(self).__name__} must write build")

    def build_example(self) -> PointForecaster:
        """A model of a few windows: what the laws are checked on."""
        model = self.build()
        model.fit(example_windows(self.history, self.horizon, self.n_known), FitSettings(), Nobody())
        return model


class PointForecaster(FittedModel):
    """Base of `naive`, `lear` and `dlinear`. Past (B, S, 1 + K) and known ahead (B, H, K) to quantiles (B, H, Q).

    errors  (H, Q): e.
    """

    errors: Tensor
    reads = "numbers"
    encoder = None

    def __init__(self, config: PointConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("errors", torch.zeros(0, 0, dtype=torch.float64))

    @abstractmethod
    def fit(self, data: Windows, settings: FitSettings, tell: Tell) -> dict[str, Any]: ...

    @abstractmethod
    def middle(self, past: Tensor, known: Tensor) -> Tensor:
        """y (B, H) of stretched windows, in float64."""

    def forward(
        self, inputs: PastKnown, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """Quantiles (B, H, Q)."""
        found = self.middle(*self.stretched(inputs))[..., None] + self.errors
        return self.plain(found).to(self.like.dtype), None

    def stretched(self, inputs: PastKnown) -> tuple[Tensor, Tensor]:
        """Past and what is known ahead in float64, S of all but the calendar."""
        past, known = inputs.past.double(), inputs.known.double()
        if not self.config.asinh:
            return past, known
        return _all_but_calendar(past), _all_but_calendar(known)

    def stretch(self, values: Tensor) -> Tensor:
        """S of values."""
        return values.asinh() if self.config.asinh else values

    def plain(self, values: Tensor) -> Tensor:
        """S^-1 of values."""
        return values.clamp(-FARTHEST, FARTHEST).sinh() if self.config.asinh else values

    def quantiles_of(self, errors: np.ndarray) -> Tensor:
        """e (H, Q) of misses (n, H)."""
        wanted, middle = list(self.config.quantiles), self.config.quantiles.index(0.5)
        shared = errors.shape[0] < ENOUGH
        found = np.quantile(errors.reshape(-1, 1) if shared else errors, wanted, axis=0).T
        found = np.broadcast_to(found - found[:, middle : middle + 1], (errors.shape[1], len(wanted)))
        return torch.from_numpy(found.copy())

    def settle(self) -> None:
        shape = (self.config.horizon, len(self.config.quantiles))
        require(self.errors.shape in ((0, 0), shape), "the number of quantiles")


def _all_but_calendar(numbers: Tensor) -> Tensor:
    return torch.cat([numbers[..., :-CALENDAR].asinh(), numbers[..., -CALENDAR:]], -1)
