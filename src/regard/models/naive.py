"""The naive forecast: what was at the same time of the day or of the week before. What every other model has to beat.

    y_h = x_(h - week)     on Mondays, Saturdays and Sundays     (Lago et al. 2021, the naive forecast of the EPF)
    y_h = x_(h - day)      on other days

Of steps of a day and longer ones it is the same time of the season before: of the week, of the year. season = n says
instead that the same time n steps ago is meant. Of a horizon that is longer than a season the last season is repeated.
How long a season is is told from the step of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, Tell
from regard.core.registry import register
from regard.fitting.model import require
from regard.fitting.windows import Windows, in_parts, seasons_of, weekdays
from regard.models.point_forecaster import PointConfig, PointForecaster

FAR_DAYS = (0, 5, 6)  # Monday, Saturday, Sunday: yesterday was another kind of day


@dataclass(frozen=True)
class NaiveConfig(PointConfig, kind="naive"):
    """season: steps back, 0 for a day as the calendar tells it. week: steps back on Mondays, Saturdays and Sundays,
    0 for those of a season.
    """

    season: int = 0
    week: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        told = f"season must lie in 0 .. {self.history}, which is data.history, found {self.season}"
        check(0 <= self.season <= self.history, told)

    def build(self) -> Naive:
        return Naive(self)


class Naive(PointForecaster):
    """seasons (2,): steps back on most days, and on Mondays, Saturdays and Sundays."""

    config: NaiveConfig
    seasons: Tensor

    def __init__(self, config: NaiveConfig) -> None:
        super().__init__(config)
        self.register_buffer("seasons", torch.zeros(0, dtype=torch.int64))

    def fit(self, data: Windows, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        config, rows = self.config, data.rows
        found = seasons_of(rows.known)
        near, far = (config.season, config.week or config.season) if config.season else (found.day, found.week)
        if far > config.history:
            tell.note(f"a week is {far} steps and data.history {config.history}: every day is told by the one before")
            far = near
        if near > config.history:
            tell.note(f"a day is {near} steps and data.history {config.history}: the last value is repeated")
            near = far = 1
        self.take({"seasons": torch.tensor([near, far])})
        errors = [
            self.stretch(came, window) - self.middle(*self.stretched(window))
            for window, came in in_parts(rows, np.arange(len(rows.origins)))
        ]
        self.take({"errors": self.quantiles_of(torch.cat(errors).numpy())})
        weekly = "" if near == far else f", or {far} around weekends"
        told = f"the same time {near} step{'' if near == 1 else 's'} ago{weekly}"
        return {"told": told, "near": near, "far": far}

    def middle(self, past: Tensor, known: Tensor) -> Tensor:
        near, far = self.seasons.tolist()
        steps = torch.arange(known.shape[1], device=past.device)
        values, length = past[..., 0], past.shape[1]
        by_day, by_week = (values[:, length - season + steps % season] for season in (near, far))
        is_far = torch.isin(weekdays(known), torch.tensor(FAR_DAYS, device=past.device))
        return torch.where(is_far, by_week, by_day)

    def settle(self) -> None:
        super().settle()
        if not self.seasons.is_meta and len(self.seasons):
            inside = bool(((self.seasons >= 1) & (self.seasons <= self.config.history)).all())
            require(len(self.seasons) == 2 and inside, "the season")


@register(
    "naive",
    sizes={size: {} for size in ("tiny", "small", "base", "paper")},
    paper="Lago, Marcjasz, De Schutter, Weron 2021, Forecasting day-ahead electricity prices",
    task="series",
)
def naive(spec: DataSpec, *, season: int = 0) -> NaiveConfig:
    """The same time a day ago, or a week ago around weekends; of days a week ago, of months a year ago."""
    told, week = (season, 0) if season else (spec.season if spec.season <= spec.history else 0, spec.week)
    return NaiveConfig(
        *(spec.n_known, spec.history, spec.horizon), n_past=spec.n_past, n_static=spec.n_static, season=told, week=week
    )
