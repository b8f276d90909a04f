"""Moment: a place in a series from which on it is to be forecast; the next ones of a file, and how one is looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.core.inputs import PastKnown
from regard.core.model import logits_of
from regard.data.choices import OPEN, Choices
from regard.data.example import Examples
from regard.data.grid import stamp, written
from regard.data.packed import Chosen, Mapped, Numbers
from regard.data.panel import read_panel
from regard.data.series import Series, possible_origins
from regard.data.table import Table
from regard.data.tabular import held, is_address
from regard.data.unlabelled import Items
from regard.errors import DataError, UsageError
from regard.storage.arrays import slices
from regard.tasks.reading import Reading, Side
from regard.tasks.series_processor import SeriesProcessor


@dataclass(frozen=True)
class Moment:
    """A place in a series from which on it is to be forecast. asked: steps that somebody wants, None for a horizon."""

    series: Series
    origin: int
    asked: int | None = None

    @property
    def time(self) -> np.datetime64:
        return self.series.times[self.origin]

    @property
    def digest(self) -> bytes:
        """SHA-256 of what is known of the series, by which a moment is known again."""
        series = self.series
        found = hashlib.sha256(f"{series.label} {series.static} {self.asked}".encode())
        for numbers in (series.times, series.target, series.known, series.past):
            for (some,) in slices(numbers):
                found.update(np.ascontiguousarray(some).view(np.uint8).data)
        return found.digest()


def next_moments(data: str | Table, processor: SeriesProcessor, choices: Choices = OPEN) -> list[Moment]:
    """Where the values of each series of a file, or of a table in memory, end: from there on it is to be forecast."""
    if isinstance(data, Table):
        with held(data, "input") as address:
            return next_moments(address, processor)
    path = data
    if "\n" in path or not (is_address(path) or Path(path).exists()):
        raise DataError(
            f"there is no file {(path.splitlines() or [''])[0][:80]}; give the path of a file like that of the "
            f"training, whose last rows may lack {processor.target_name}"
        )
    try:
        panel = read_panel(path, processor.roles, processor.gaps, future=True, choices=choices)
    except UsageError as error:
        if f"={processor.target_name}: " not in str(error):
            raise
        raise DataError(
            f"{error}. A forecast reads the past too: begin the file with {processor.history} rows or more that have "
            f"{processor.target_name}, and end it with the rows that are to be forecast"
        ) from None
    return [_next(series, processor) for series in panel.series]


def _next(series: Series, processor: SeriesProcessor) -> Moment:
    """After the last value: the rows without one, or as many steps as the run forecasts where there are none."""
    history, horizon, target = processor.history, processor.horizon, processor.target_name
    origin = series.observed
    empty = len(series) - origin
    if origin < history:
        raise DataError(f"{series.name}: a forecast reads {history} rows with {target}, and there are {origin}")
    if empty > horizon:
        raise DataError(
            f"{series.name}: {empty} rows at the end lack {target}, and the run forecasts {horizon}; cut the others "
            f"off, or train with a longer data.horizon"
        )
    if empty < horizon and processor.columns:
        first = stamp(series.continued(1).times, origin)
        raise DataError(
            f"{series.name}: to forecast the {horizon} steps from {first} on, {', '.join(processor.columns)} must be "
            f"known of each; end the file with {horizon} rows that have them and no {target} (there are {empty})"
        )
    series = series.continued(horizon - empty) if empty < horizon else series
    if series.is_sparse and np.isnan(series.part(origin - history, origin).target).any():
        raise DataError(f"{series.name}: {target} has holes within the last {history} rows, which a forecast reads")
    return Moment(series, origin, empty or None)


def moments_of(series: Sequence[Series], which: np.ndarray, places: np.ndarray) -> Examples[Moment]:
    """Each is made when it is asked for."""
    return Examples(Moment, {"series": Chosen(Items(series), which), "origin": Mapped(Numbers(places), int)})


def windows_of(series: Sequence[Series], processor: SeriesProcessor) -> tuple[np.ndarray, np.ndarray]:
    """Every moment of some series at which the run could forecast, in the order of time: of which one, and where."""
    shape = (processor.history, processor.horizon, processor.stride)
    found = [possible_origins(one, *shape) for one in series]
    which = np.repeat(np.arange(len(series)), [len(places) for places in found])
    places = np.concatenate(found) if found else np.zeros(0, np.int64)
    times = np.concatenate([one.times[places] for one, places in zip(series, found, strict=True)])
    order = np.argsort(times, kind="stable")
    return which[order], places[order]


def by_series(moments: Sequence[Moment]) -> Iterator[tuple[Series, np.ndarray]]:
    """The series that moments are of, each with the numbers of its moments."""
    found: dict[int, list[int]] = {}
    for number, moment in enumerate(moments):
        found.setdefault(id(moment.series), []).append(number)
    for numbers in found.values():
        yield moments[numbers[0]].series, np.array(numbers)


def reading_of(model: Any, processor: SeriesProcessor, moment: Moment, given: str, device: torch.device) -> Reading:
    """The past and the horizon at a moment; a model without an encoder reads both as one."""
    origin, history, horizon = moment.origin, processor.history, processor.horizon
    series = moment.series.part(origin - history, origin + horizon)
    batch = processor.rows([series], np.zeros(1, int), np.array([history])).batch_of(np.arange(1), np.arange(1))
    batch = batch.to(device)
    assert batch.source is not None
    times = [time[:16].replace("T", " ") for time in written(series.times, series.step)]
    past, ahead = times[:history], tuple(times[history:])
    encoder = model.encoder
    patch = getattr(encoder.embedding, "patch", 1) if encoder is not None else 1
    read = tuple(past[::patch]) if encoder is not None else (*past, *ahead)
    quantiles = model.config.quantiles
    about = {
        "past": series.target[:history],
        "past_times": past,
        "came": series.target[history:],
        "unit": processor.target_name,
        "season": processor.season,
        "invert": processor.of(series).target.invert,
    }
    return Reading(
        model,
        (batch.source, batch.tokens),
        (Side("past", read), Side("horizon", ahead)),
        lambda a, b: logits_of(model, PastKnown(a, b)),
        lambda n: f"q{quantiles[n]:g}",
        (),
        given,
        about,
    )
