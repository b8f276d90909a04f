"""Linear forecasts: every time ahead a weighted sum of what is seen, with weights of its own, solved for exactly.

    y_h = b_h + sum_f x_f w_fh          minimise |y_h - b_h - X w_h|^2 / 2n + penalty(w_h)

What x is, a subclass says. The penalty, ridge or lasso, and how much of it is in regard/fitting/least_squares.py.
Several windows of the most recent seasons may be fitted apart and their weights averaged, as LEAR's are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.fitted import FitSettings, Tell
from regard.errors import DataError
from regard.fitting.lag_weights import LagGroup
from regard.fitting.least_squares import PenaltyName, Solution, solve
from regard.fitting.model import require
from regard.fitting.windows import WindowRows, Windows, in_parts
from regard.models.point_forecaster import PointConfig, PointForecaster

COPIES = 4  # of the table of columns that a fit holds at once
MOST_COLUMNS = 4096  # (F, F) are then 128 MiB, of which a fit holds a dozen


@dataclass(frozen=True)
class LinearForecasterConfig(PointConfig):
    """penalty: ridge or lasso. strength: lambda, of lasso a part of the least that leaves no weight; 0 is found.

    blocks   of time, each held out once to find lambda and the errors.
    windows  of the most recent horizons that are fitted to, 0 for all; of several the weights are averaged.
    """

    penalty: PenaltyName = "ridge"
    strength: float = 0.0
    blocks: int = 5
    windows: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.strength >= 0, f"strength must be 0, to be found, or more, found {self.strength}")
        part = self.penalty == "ridge" or self.strength <= 1
        check(part, f"strength of a lasso is a part of the largest, 1 at most, found {self.strength}")
        check(2 <= self.blocks <= 100, f"blocks must lie in 2 .. 100, found {self.blocks}")
        told = f"windows are counts of horizons, 0 for all of them, found {list(self.windows)}"
        check(bool(self.windows) and min(self.windows) >= 0, told)


class LinearForecaster(PointForecaster):
    """weights (F, H), bias (H,); spread (F,): the deviation of each column in training."""

    weights: Tensor
    bias: Tensor
    spread: Tensor

    def __init__(self, config: LinearForecasterConfig) -> None:
        super().__init__(config)
        self.config = config
        for name, axes in (("weights", 2), ("bias", 1), ("spread", 1)):
            self.register_buffer(name, torch.zeros((0,) * axes, dtype=torch.float64))

    @abstractmethod
    def learn_layout(self, rows: WindowRows, tell: Tell) -> None:
        """Take from the data what x is made of; data that is too short for it is refused."""

    @abstractmethod
    def columns(self, past: Tensor, known: Tensor) -> Tensor:
        """x (B, F) of stretched windows."""

    @property
    @abstractmethod
    def n_columns(self) -> int: ...

    @abstractmethod
    def groups(self, names: Sequence[str]) -> list[LagGroup]:
        """What the columns are, for the eye. names: of what is known ahead, past alone and static."""

    def fit(self, data: Windows, settings: FitSettings, tell: Tell) -> dict[str, Any]:
        config, rows = self.config, data.rows
        self.learn_layout(rows, tell)
        _require_room(self.n_columns)
        x, y = self._table(rows, settings, tell)
        # A window that is longer than the series is all of it, and is not solved for twice.
        sizes = dict.fromkeys(min(size or len(x), len(x)) for size in config.windows)
        found = [self._solved(x[-size:], y[-size:], tell) for size in sizes]
        longest = found[int(np.argmax([len(one.errors) for one in found]))]
        weights, bias, spread = (
            np.mean([getattr(one, name) for one in found], 0) for name in ("weights", "bias", "spread")
        )
        solved = {"weights": weights, "bias": bias, "spread": spread}
        self.take({name: torch.from_numpy(value) for name, value in solved.items()})
        self.take({"errors": self.quantiles_of(longest.errors)})
        used = float((weights != 0).mean())
        return {
            "told": f"{self.n_columns:,} columns, {used:.0%} of their weights in use, {config.penalty} "
            f"{longest.chosen:.2g}",
            "columns": self.n_columns,
            "windows": [len(one.errors) for one in found],
            "strength": [one.chosen for one in found],
            "events": sum(one.events for one in found),
            "converged": all(one.converged for one in found),
        }

    def middle(self, past: Tensor, known: Tensor) -> Tensor:
        return self.columns(past, known) @ self.weights + self.bias

    def lag_weights(self, names: Sequence[str]) -> list[tuple[LagGroup, np.ndarray]]:
        """By how much each time ahead (H, n) moves with one deviation of each column, by groups of columns."""
        effects = (self.weights * self.spread[:, None]).cpu().numpy().T
        return [(group, effects[:, group.first : group.first + len(group.columns)]) for group in self.groups(names)]

    def settle(self) -> None:
        super().settle()
        if self.weights.is_meta or not len(self.bias):
            return
        require(self.weights.shape == (self.n_columns, self.config.horizon), "the number of weights")
        require(len(self.bias) == self.config.horizon and len(self.spread) == self.n_columns, "the number of weights")

    def _table(self, rows: WindowRows, settings: FitSettings, tell: Tell) -> tuple[np.ndarray, np.ndarray]:
        """x (n, F) and stretched y (n, H) of all windows, of the most recent ones where memory ends."""
        n = len(rows.origins)
        room = max(2, settings.memory // (8 * COPIES * (self.n_columns + self.config.horizon)))
        if n > room:
            tell.note(f"{n - room:,} of {n:,} windows, the oldest, are left out: raise train.memory to fit all")
        chosen, x, y = np.arange(max(0, n - room), n), list[np.ndarray](), list[np.ndarray]()
        for window, came in in_parts(rows, chosen):
            x.append(self.columns(*self.stretched(window)).numpy())
            y.append(self.stretch(came, window).numpy())
            tell("reading", min(1.0, sum(map(len, x)) / len(chosen)))
        return np.concatenate(x), np.concatenate(y)

    def _solved(self, x: np.ndarray, y: np.ndarray, tell: Tell) -> Solution:
        config = self.config
        given = config.strength or None
        found = solve(
            x, y, config.penalty, blocks=config.blocks, given=given, judge=np.sinh if config.asinh else lambda z: z
        )
        tell("solving", 1.0)
        if not found.converged:
            tell.note(
                f"the solver did not converge: after {found.events:,} steps some paths of the lasso were not at their "
                f"end; raise model.strength, or take model.penalty=ridge"
            )
        return found


def _require_room(n_columns: int) -> None:
    if n_columns > MOST_COLUMNS:
        raise DataError(
            f"{n_columns:,} columns are more than the {MOST_COLUMNS:,} that can be solved for: give fewer model.lags, "
            f"a shorter data.history or fewer data.known"
        )
