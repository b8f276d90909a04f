"""Forecast: the values that are to come, as arrays, records or a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard.data.records import Records
from regard.errors import UsageError

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """What a run of a series says of one table, a row for each step; several series come one after the other.

    times      (n,) datetime64.
    values     (n, Q): a column for each quantile, none of them crossing.
    quantiles  such as (0.1, 0.5, 0.9).
    series     (n,): which series a row is of; None where there is one. by: the column that told them apart.
    """

    times: np.ndarray
    values: np.ndarray
    quantiles: tuple[float, ...]
    series: np.ndarray | None = None
    by: str | None = None

    def __len__(self) -> int:
        return len(self.times)

    @property
    def median(self) -> np.ndarray:
        """(n,): the forecast where one number is wanted."""
        return self.quantile(0.5)

    def quantile(self, level: float) -> np.ndarray:
        """(n,): one of `quantiles`."""
        if level not in self.quantiles:
            known = ", ".join(f"{one:g}" for one in self.quantiles)
            raise UsageError(f"there is no quantile {level}; the run was trained on {known}")
        return self.values[:, self.quantiles.index(level)]

    def records(self) -> Records:
        """A mapping for each row: series where there are several, time, forecast (the median), q0.1 and so on."""
        names = [f"q{level:g}" for level in self.quantiles]
        found = Records()
        for number, (time, middle, row) in enumerate(zip(self.times.tolist(), self.median, self.values, strict=True)):
            label = {} if self.series is None else {self.by or "series": str(self.series[number])}
            numbers = dict(zip(names, row.tolist(), strict=True))
            found.append({**label, "time": time, "forecast": float(middle), **numbers})
        return found

    def to_frame(self) -> pandas.DataFrame:
        """A frame of pandas with the columns of `records`."""
        return self.records().to_frame()

    def __repr__(self) -> str:
        levels = ", ".join(f"{one:g}" for one in self.quantiles)
        return f"Forecast({len(self)} steps from {self.times[0]}, quantiles {levels})"

    def _repr_html_(self) -> str:
        return self.records()._repr_html_()
