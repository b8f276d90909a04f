"""Fitted forecasts: one value for each time ahead, and quantiles from what such forecasts missed of the past.

    y_h = f(past, known)_h                     what a subclass says, in stretched units
    q_h = S^-1(y_h + e_h(q))                   e_h(q): quantile q of the misses of time h, those of 0.5 at 0
    S   = asinh, which treats spikes as a logarithm would, or nothing; of the value, or of what its level leaves of it

The misses are of windows that the fit did not see, so that the quantiles hold for what comes; the middle one is the
forecast itself. Windows are read in the run's own scale, see regard/data/scaler.py.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.context import EMPTY, Context
from regard.core.fitted import FitSettings, Tell
from regard.core.inputs import PastKnown
from regard.core.state import State
from regard.fitting.level import Level, stretched
from regard.fitting.model import FittedConfig, FittedModel, require
from regard.fitting.windows import CALENDAR, Channels, ExampleWindows, Windows, example_windows

QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FARTHEST = 20.0  # asinh of what is forecast at most: beyond it a sum of weights would be infinite
FARTHEST_FROM_LEVEL = 5.0  # the same of what is measured from its own level: 74 times the usual distance
ENOUGH = 50  # misses of one time of the horizon that have quantiles of their own; of fewer all times share theirs


@dataclass(frozen=True)
class PointConfig(FittedConfig):
    """n_known: numbers known ahead for each time, the calendar's 8 last. history, horizon: steps read and forecast.

    asinh     whether values are stretched.
    n_past    numbers measured of past times beside the value, which come last of what is read.
    n_static  numbers among those known that never change along a series, before the calendar's.
    """

    n_known: int
    history: int
    horizon: int
    asinh: bool = True
    quantiles: tuple[float, ...] = QUANTILES
    n_past: int = 0
    n_static: int = 0

    def __post_init__(self) -> None:
        least = CALENDAR + self.n_static
        check(self.n_known >= least, f"n_known counts the {least} numbers of calendar and series, found {self.n_known}")
        check(self.history > 0 and self.horizon > 0, "history and horizon must be 1 or more")
        check(all(0 < q < 1 for q in self.quantiles), f"quantiles lie between 0 and 1, found {self.quantiles}")
        check(0.5 in self.quantiles, "quantiles: 0.5 is missing, which is the forecast itself")

    @property
    def n_measured(self) -> int:
        """Numbers known ahead that change from time to time, beside the calendar."""
        return self.n_known - CALENDAR - self.n_static

    @property
    def channels(self) -> Channels:
        return Channels(self.n_measured, self.n_static, self.n_past)

    def build(self) -> PointForecaster:
        raise NotImplementedError(f"{type(self).__name__} must write build")

    def example(self) -> ExampleWindows:
        return example_windows(self.history, self.horizon, self.n_known, self.n_past)


class PointForecaster(FittedModel):
    """Base of `naive`, `lear` and `dlinear`. Past (B, S, 1 + K + P) and known ahead (B, H, K) to quantiles (B, H, Q).

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
        return self.plain(found, inputs).to(self.like.dtype), None

    @property
    def level_steps(self) -> int:
        """The last steps of a window that give its own level and spread; 0: it has none."""
        return 0

    def stretched(self, inputs: PastKnown) -> tuple[Tensor, Tensor]:
        """Past and what is known ahead in float64, S of all but the calendar."""
        window = PastKnown(inputs.past.double(), inputs.known.double())
        level = self._level(window)
        window = window if level is None else level.apply(window)
        if not self.config.asinh:
            return window.past, window.known
        window = stretched(window, self.config.channels)
        return window.past, window.known

    def stretch(self, values: Tensor, inputs: PastKnown) -> Tensor:
        """S of values (B, H) that came after a window."""
        level = self._level(inputs)
        if level is not None:
            middle, spread = level.value
            values = (values - middle) / spread
        return values.asinh() if self.config.asinh else values

    def plain(self, values: Tensor, inputs: PastKnown) -> Tensor:
        """S^-1 of what is forecast (B, H, Q) of a window."""
        level = self._level(inputs)
        if self.config.asinh:
            most = FARTHEST if level is None else FARTHEST_FROM_LEVEL
            values = values.clamp(-most, most).sinh()
        if level is None:
            return values
        middle, spread = level.value
        return values * spread[..., None] + middle[..., None]

    def _level(self, inputs: PastKnown) -> Level | None:
        steps = self.level_steps
        return Level.of(inputs.past.double(), self.config.channels, steps) if steps else None

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
