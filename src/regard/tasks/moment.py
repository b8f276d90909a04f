"""Moment: a place in a series from which on it is to be forecast, and SeriesProcessor, in whose terms it is read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.core.data_spec import DataSpec
from regard.core.inputs import PastKnown
from regard.core.model import logits_of
from regard.data.rows import SeriesRows
from regard.data.scaler import Scaler
from regard.data.series import CALENDAR, Series, calendar, read_series
from regard.errors import DataError
from regard.tasks.processor import PROCESSOR, Processor
from regard.tasks.reading import Reading, Side

FAR = 6.0  # numbers known ahead are kept within so many deviations


@dataclass(frozen=True)
class Moment:
    """A place in a series from which on it is to be forecast."""

    series: Series
    origin: int

    @property
    def time(self) -> np.datetime64:
        return self.series.times[self.origin]


@dataclass(frozen=True, eq=False)
class SeriesProcessor(Processor):
    """Scales of the target and of what is known ahead, how much is read and forecast, and the names of the columns.

    scale  of the values of the training part: what a seasonal naive forecast misses on average.
    """

    target: Scaler
    known: Scaler
    history: int
    horizon: int
    columns: tuple[str, ...]
    target_name: str
    scale: float

    def files(self) -> dict[str, bytes]:
        scalers = {"target": self.target.to_dict(), "known": self.known.to_dict()}
        plain = {name: getattr(self, name) for name in ("history", "horizon", "target_name", "scale")}
        return {PROCESSOR: json.dumps(scalers | plain | {"columns": list(self.columns)}).encode()}

    @property
    def spec(self) -> DataSpec:
        n_known = len(self.columns) + len(CALENDAR)
        return DataSpec(n_channels=1 + n_known, n_known=n_known, horizon=self.horizon, history=self.history)

    def rows(self, series: Series, places: np.ndarray) -> SeriesRows:
        """Windows at `places` of a series with the same columns."""
        if series.columns != self.columns:
            raise DataError(
                f"{series.name} knows {', '.join(series.columns) or 'nothing'} ahead, and the run was trained with "
                f"{', '.join(self.columns) or 'nothing'}; give the same columns, or name them with data.known"
            )
        known = np.clip(self.known.apply(series.known), -FAR, FAR) if self.columns else series.known
        everything = np.concatenate([known, calendar(series.times)], 1)
        return SeriesRows(self.target.apply(series.target), everything, places, self.history, self.horizon)


def next_moment(text: str, processor: SeriesProcessor) -> Moment:
    """Where the values of a file end: from there on it is to be forecast."""
    if not Path(text).exists():
        raise DataError(
            f"there is no file {text}; give the path of a CSV file whose last rows lack {processor.target_name}"
        )
    known = ",".join(processor.columns)
    series = read_series(text, target=processor.target_name, known=known, future=True)
    origin = series.observed
    if origin < processor.history or len(series) < origin + processor.horizon:
        if len(series) == origin and origin >= processor.history + processor.horizon:
            return Moment(series, origin - processor.horizon)
        raise DataError(
            f"{text}: a forecast needs {processor.history} rows with {processor.target_name} and then "
            f"{processor.horizon} without, found {origin} and {len(series) - origin}"
        )
    return Moment(series, origin)


def reading_of(model: Any, processor: SeriesProcessor, moment: Moment, given: str, device: torch.device) -> Reading:
    """The past and the horizon at a moment; a model without an encoder reads both as one."""
    rows = processor.rows(moment.series, np.array([moment.origin]))
    batch = rows.batch_of(np.arange(1), np.arange(1)).to(device)
    assert batch.source is not None
    times = [str(time)[:16].replace("T", " ") for time in moment.series.times]
    past = times[moment.origin - processor.history : moment.origin]
    horizon = tuple(times[moment.origin : moment.origin + processor.horizon])
    encoder = model.encoder
    patch = getattr(encoder.embedding, "patch", 1) if encoder is not None else 1
    read = tuple(past[::patch]) if encoder is not None else (*past, *horizon)
    values, quantiles = moment.series.target, model.config.quantiles
    about = {
        "past": values[moment.origin - processor.history : moment.origin],
        "came": values[moment.origin : moment.origin + processor.horizon],
        "unit": processor.target_name,
        "invert": processor.target.invert,
    }
    return Reading(
        model,
        (batch.source, batch.tokens),
        (Side("past", read), Side("horizon", horizon)),
        lambda a, b: logits_of(model, PastKnown(a, b)),
        lambda n: f"q{quantiles[n]:g}",
        (),
        given,
        about,
    )
