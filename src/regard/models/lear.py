"""LEAR: a linear forecast from whole days before and from what is known ahead (Uniejewski, Nowotarski, Weron 2016;
Lago, Marcjasz, De Schutter, Weron 2021).

    y_h = b_h + sum over lags l, times i of the day   w x_(-l days, i)        the value a day, two, three, a week ago
              + sum over columns k, times i           w k_(ahead, i)          what is known of the horizon
              + sum over k, near and far lag, i       w k_(-l days, i)        and what it was
              + sum over past columns p, the same     w p_(-l days, i)        what else was measured
              + sum over static numbers s             w s                     what a series is, among several
              + sum over weekdays d                   w [the first time is a d]

All of a day is seen from every hour, so that the lasso may find that the evening follows last evening and the coming
noon. x and k are asinh of values less their level over their spread: of the whole training part in the papers
(level = 0), of the last week before each forecast here, by which a year that is unlike the last costs less.
`regard evaluate RUN --every 1d` fits it anew every day, as in the papers; `windows` are the papers' calibration
windows, whose weights are averaged here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.config import check
from regard.core.data_spec import DataSpec
from regard.core.fitted import Tell
from regard.core.registry import register
from regard.errors import DataError
from regard.fitting.lag_weights import LagGroup, laid_out
from regard.fitting.least_squares import PenaltyName
from regard.fitting.model import require
from regard.fitting.windows import WholeSeasons, WindowRows, seasons_of
from regard.models.linear_forecaster import LinearForecaster, LinearForecasterConfig

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class LearConfig(LinearForecasterConfig, kind="lear"):
    """lags: seasons back whose values are seen. known_lags: those whose other columns are. Those that reach behind
    `history` are left out. season: steps of one, 0 for those of a day as the data's step gives them.

    level  seasons before each forecast over which levels and spreads are taken, 0 for those of the training part.
    """

    lags: tuple[int, ...] = (1, 2, 3, 7)
    known_lags: tuple[int, ...] = (1, 7)
    season: int = 0
    level: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        both = (*self.lags, *self.known_lags)
        check(bool(self.lags) and min(both) > 0, f"lags are seasons back, 1 or more of them, found {list(both)}")
        unlike = len(set(self.lags)) == len(self.lags) and len(set(self.known_lags)) == len(self.known_lags)
        check(unlike, f"lags are there twice: {list(self.lags)}, {list(self.known_lags)}")
        check(self.level >= 0, f"level counts seasons, 0 for the level of the training part, found {self.level}")
        told = f"season must lie in 0 .. {self.history}, which is data.history, found {self.season}"
        check(0 <= self.season <= self.history, told)

    def build(self) -> Lear:
        return Lear(self)


class Lear(LinearForecaster):
    """season (1,): steps of a day."""

    config: LearConfig
    season: Tensor

    def __init__(self, config: LearConfig) -> None:
        super().__init__(config)
        self.register_buffer("season", torch.zeros(0, dtype=torch.int64))

    def learn_layout(self, rows: WindowRows, tell: Tell) -> None:
        config = self.config
        season = config.season or seasons_of(rows.known).day
        if season > config.history:
            tell.note(f"a day is {season} steps and data.history {config.history}: those steps stand for a day")
            season = config.history
        self.take({"season": torch.tensor([season])})
        if not self.lags:
            raise DataError(
                f"model.lags: the nearest reaches {min(config.lags) * season} steps back and data.history is "
                f"{config.history}: raise that, or choose lags of at most {config.history // season}"
            )
        left = sorted({*config.lags, *config.known_lags} - {*self.lags, *self.known_lags})
        if left:
            told = ", ".join(map(str, left))
            tell.note(f"lags {told} of {season} steps reach behind data.history {config.history} and are left out")

    @property
    def level_steps(self) -> int:
        return min(self.config.level * int(self.season), self.config.history)

    @property
    def lags(self) -> tuple[int, ...]:
        """Those of the config that reach no farther back than is read."""
        return self._within(self.config.lags)

    @property
    def known_lags(self) -> tuple[int, ...]:
        return self._within(self.config.known_lags)

    @property
    def n_columns(self) -> int:
        return self._seasons.n_columns

    def columns(self, past: Tensor, known: Tensor) -> Tensor:
        return self._seasons.columns(past, known)

    @property
    def _seasons(self) -> WholeSeasons:
        return WholeSeasons(self.config.channels, self.config.horizon, int(self.season), self.lags, self.known_lags)

    def groups(self, names: Sequence[str]) -> list[LagGroup]:
        season, config = int(self.season), self.config
        times, ahead = [str(i + 1) for i in range(season)], [str(i + 1) for i in range(config.horizon)]
        changing = config.n_measured + config.n_past
        parts = [(f"value, {_ago(lag)}", times) for lag in self.lags]
        parts += [(f"{name}, ahead", ahead) for name in names[: config.n_measured]]
        parts += [(f"{name}, {_ago(lag)}", times) for lag in self.known_lags for name in names[:changing]]
        parts += [("series", tuple(names[changing:]))] if config.n_static else []
        return laid_out([*parts, ("weekday", DAYS)])

    def settle(self) -> None:
        if not self.season.is_meta and len(self.season):
            require(len(self.season) == 1 and 1 <= int(self.season) <= self.config.history, "the season")
            super().settle()

    def _within(self, lags: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(lag for lag in lags if lag * int(self.season) <= self.config.history)


def _ago(lag: int) -> str:
    return "a season ago" if lag == 1 else f"{lag} seasons ago"


@register(
    "lear",
    sizes={
        "tiny": {"penalty": "ridge"},
        "small": {},
        "base": {},
        "paper": {"windows": (56, 84, 1092, 1456), "level": 0},
    },
    paper="Lago, Marcjasz, De Schutter, Weron 2021, Forecasting day-ahead electricity prices",
    task="series",
)
def lear(
    spec: DataSpec,
    *,
    lags: tuple[int, ...] = (1, 2, 3, 7),
    known_lags: tuple[int, ...] = (1, 7),
    season: int = 0,
    level: int = 7,
    penalty: PenaltyName = "lasso",
    strength: float = 0.0,
    blocks: int = 5,
    windows: tuple[int, ...] = (0,),
    asinh: bool = True,
) -> LearConfig:
    """A weight for every hour of days before and for what is known ahead, by lasso or ridge."""
    told = season or (spec.season if spec.season <= spec.history else 0)
    return LearConfig(
        *(spec.n_known, spec.history, spec.horizon, asinh), n_past=spec.n_past, n_static=spec.n_static,
        penalty=penalty, strength=strength, blocks=blocks, windows=windows,
        lags=lags, known_lags=known_lags, season=told, level=level,
    )  # fmt: skip
