"""SeriesProcessor: in whose terms series are read, and the file of the run folder that holds it.

Every series has scales of its own, fitted to its training part alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.config import decode
from regard.core.data_spec import DataSpec
from regard.data.gaps import GAPS
from regard.data.grid import cycles, from_saved, is_by_the_day, named, saved, usual
from regard.data.panel import listed
from regard.data.rows import SeriesRows
from regard.data.scaler import Scaler
from regard.data.series import AT_ONCE, CALENDAR, Panel, Roles, Series, calendar
from regard.data.settings import DataSettings
from regard.data.static import StaticColumn
from regard.errors import DataError, UsageError
from regard.evaluation.forecast import seasonal_scale
from regard.storage.arrays import joined, slices
from regard.tasks.processor import PROCESSOR, Processor, read_facts

FAR = 6.0  # numbers known ahead and of the past are kept within so many deviations
ROLES = ("known", "past", "static")


@dataclass(frozen=True, eq=False)
class Scales:
    """Of one series. naive: what a seasonal naive forecast misses of its training part, None where that is nothing."""

    target: Scaler
    known: Scaler
    past: Scaler
    naive: float | None

    @classmethod
    def fit(cls, series: Series, border: int, period: int) -> Scales:
        """Those of the first `border` steps. period: steps after which the naive forecast repeats."""
        part = series.part(0, border)
        period = period if border > period else 1
        target, known, past = (_fit(values) for values in (part.target, part.known, part.past))
        return cls(target, known, past, seasonal_scale(part.target, period) if border > 1 else None)

    def to_dict(self) -> dict[str, Any]:
        scalers = {name: getattr(self, name).to_dict() for name in ("target", "known", "past")}
        return scalers | {"naive": self.naive}


@dataclass(frozen=True, eq=False)
class SeriesProcessor(Processor):
    """roles: of the columns. scales: of each series by its label, "" where a file holds one.

    history, horizon  steps that are read and forecast.
    stride            steps from one forecast to the next.
    season, week      steps after which things repeat; a week's where a season is a day, else 0.
    step              of the grid; None of a run that did not note it.
    gaps              what is done about holes.
    """

    roles: Roles
    scales: Mapping[str, Scales]
    history: int
    horizon: int
    stride: int
    season: int
    week: int = 0
    step: np.timedelta64 | None = None
    gaps: str = "refuse"
    static: tuple[StaticColumn, ...] = ()

    @classmethod
    def fit(cls, panel: Panel, borders: Sequence[int] | np.ndarray, settings: DataSettings) -> SeriesProcessor:
        """That of the training parts, which end at `borders`."""
        told, step = cycles(panel.step), panel.step
        season = settings.season or next(iter(told.values()))
        week = told.get("weekly", 0) if is_by_the_day(step) and settings.season is None else 0
        history, horizon = usual(step, settings.season)
        horizon = settings.horizon or horizon
        both = list(zip(panel.series, borders, strict=True))
        columns = zip(panel.roles.static, zip(*(one.static for one in panel.series), strict=True), strict=False)
        return cls(
            # The name of the time column is not kept where nobody gave one: another file may call it otherwise.
            replace(panel.roles, time=settings.time),
            {series.label: Scales.fit(series, border, week or season) for series, border in both},
            settings.history or history,
            horizon,
            settings.stride or (horizon if is_by_the_day(step) else 1),
            season,
            week,
            step,
            settings.gaps,
            tuple(StaticColumn.fit(name, cells) for name, cells in columns),
        )

    @property
    def target_name(self) -> str:
        return self.roles.target or "target"

    @property
    def columns(self) -> tuple[str, ...]:
        """Those known ahead."""
        return self.roles.known

    @property
    def measured(self) -> tuple[str, ...]:
        """Those of the past alone."""
        return self.roles.past or ()

    @property
    def number_names(self) -> tuple[str, ...]:
        """Of every number beside the value and the calendar: known ahead, past alone, static."""
        return (*self.columns, *self.measured, *(name for column in self.static for name in column.names))

    @property
    def spec(self) -> DataSpec:
        n_static = sum(len(column.names) for column in self.static)
        n_known, n_past = len(self.columns) + n_static + len(CALENDAR), len(self.measured)
        return DataSpec(
            n_channels=1 + n_known + n_past,
            n_known=n_known,
            horizon=self.horizon,
            history=self.history,
            n_past=n_past,
            n_static=n_static,
            season=self.season,
            week=self.week,
        )

    def of(self, series: Series) -> Scales:
        """The scales of a series with the columns of the training."""
        self.require_fits(series)
        if series.label not in self.scales:
            raise DataError(
                f"{series.name}: the run was not trained on this series, and has no scale for it; it knows "
                f"{listed(list(self.scales))}"
            )
        return self.scales[series.label]

    def require_fits(self, series: Series) -> None:
        """Refuse a series of other columns or of another step than the run's."""
        for role, found, own in (
            ("known", series.columns, self.columns),
            ("past", series.measured, self.measured),
        ):
            if found != own:
                raise DataError(
                    f"{series.name} has {', '.join(found) or 'nothing'} as {role}, and the run was trained with "
                    f"{', '.join(own) or 'nothing'}; give the same columns, or name them with data.{role}"
                )
        step = self.step
        if step is not None and (step.dtype != series.step.dtype or step != series.step):
            raise DataError(f"{series.name}: a step of {named(series.step)}, and the run was trained on {named(step)}")

    def rows(self, series: Sequence[Series], which: np.ndarray, places: np.ndarray) -> SeriesRows:
        """Windows, each at a place of one of the series."""
        both = [(self.of(one), one) for one in series]
        values = joined(scales.target.apply(some) for scales, one in both for (some,) in slices(one.target))
        known = joined((part for scales, one in both for part in self._known(scales, one)), (self.spec.n_known,))
        past = (_within(scales.past.apply(some)) for scales, one in both for (some,) in slices(one.past))
        origins = np.cumsum([0, *map(len, series)])[which] + places
        return SeriesRows(values, known, origins, self.history, self.horizon, joined(past, (len(self.measured),)))

    def _known(self, scales: Scales, series: Series) -> Iterator[np.ndarray]:
        """What is known ahead, static numbers and the calendar of some steps at a time, (R, K)."""
        cells = zip(self.static, series.static, strict=True)
        static = np.array([number for column, cell in cells for number in column.numbers(cell, series.name)], float)
        for times, known in slices(series.times, series.known, at_once=AT_ONCE):
            still = np.broadcast_to(static, (len(times), len(static)))
            yield np.concatenate([_within(scales.known.apply(known)), still, calendar(times, series.step)], 1)

    def files(self) -> dict[str, bytes]:
        if self.step is None:
            return {PROCESSOR: self._former_file()}
        told = {name: getattr(self, name) for name in ("history", "horizon", "stride", "season", "week", "gaps")}
        told |= {"step": saved(self.step), "roles": vars(self.roles)}
        told |= {"scales": {label: scales.to_dict() for label, scales in self.scales.items()}}
        told |= {"static": [column.to_dict() for column in self.static]}
        return {PROCESSOR: json.dumps(told, ensure_ascii=False).encode()}

    def _former_file(self) -> bytes:
        """What a run from before wrote, by whose hash its data is known again."""
        scales = self.scales[""]
        scalers = {"target": scales.target.to_dict(), "known": scales.known.to_dict()}
        plain = {"history": self.history, "horizon": self.horizon, "target_name": self.target_name}
        told = scalers | plain | {"scale": scales.naive, "columns": list(self.columns)}
        return json.dumps(told).encode()


def load_processor(verified: Callable[[str], Path]) -> SeriesProcessor:
    """The processor of a run folder."""
    own = {"history": int, "horizon": int, "stride": int, "season": int, "week": Any, "gaps": str, "step": str}
    former = {"columns": tuple[str, ...], "target_name": str, "scale": float, "target": Any, "known": Any}
    told = read_facts(verified, own | {"roles": Any, "scales": Any, "static": Any} | former)
    return _former(told) if "columns" in told else _present(told)


def _present(told: dict[str, Any]) -> SeriesProcessor:
    missing = {
        "history",
        "horizon",
        "stride",
        "season",
        "week",
        "gaps",
        "step",
        "roles",
        "scales",
        "static",
    } - told.keys()
    if missing:
        raise UsageError(f"{PROCESSOR}: {', '.join(sorted(missing))} is missing")
    roles = _roles(told["roles"])
    static = tuple(
        StaticColumn.from_dict(one, f"static.{i}") for i, one in enumerate(_of(told["static"], list, "static"))
    )
    if tuple(column.name for column in static) != roles.static:
        raise UsageError("static: other columns than those of roles.static")
    scales = {
        label: _scales(facts, roles, f"scales.{label[:40]}")
        for label, facts in _of(told["scales"], dict, "scales").items()
    }
    step, week = from_saved(told["step"]), decode(told["week"], int, "week")
    if not scales or step is None or told["gaps"] not in GAPS or not 0 <= week < 1 << 31:
        raise UsageError(f"{PROCESSOR}: expected scales, a step such as 3600s, a week and a way with gaps")
    plain = {name: told[name] for name in ("history", "horizon", "stride", "season", "gaps")}
    return SeriesProcessor(roles, scales, **plain, week=week, step=step, static=static)


def _former(told: dict[str, Any]) -> SeriesProcessor:
    """The processor of a run from before there were past columns and several series: of hours, a horizon apart."""
    roles = Roles(None, told["target_name"], told["columns"], ())
    scales = _scales({**told, "past": _none().to_dict(), "naive": told["scale"]}, roles, PROCESSOR)
    horizon = told["horizon"]
    return SeriesProcessor(roles, {"": scales}, told["history"], horizon, stride=horizon, season=24, week=168)


def _roles(facts: Any) -> Roles:
    if not isinstance(facts, dict) or facts.keys() != vars(Roles()).keys():
        raise UsageError("roles: expected an object with time, target, known, past, series and static")
    lists = {name: decode(facts[name], tuple[str, ...], f"roles.{name}") for name in ROLES}
    time, series = (decode(facts[name], str | None, f"roles.{name}") for name in ("time", "series"))
    return Roles(time, decode(facts["target"], str, "roles.target"), series=series, **lists)


def _scales(facts: Any, roles: Roles, where: str) -> Scales:
    if not isinstance(facts, dict) or not facts.keys() >= {"target", "known", "past", "naive"}:
        raise UsageError(f"{where}: expected an object with target, known, past and naive")
    shapes = {"target": (), "known": (len(roles.known),), "past": (len(roles.past or ()),)}
    scalers = {name: Scaler.from_dict(facts[name], shape, f"{where}.{name}") for name, shape in shapes.items()}
    naive = decode(facts["naive"], float | None, f"{where}.naive")
    if naive is not None and not (math.isfinite(naive) and naive > 0):
        raise UsageError(f"{where}.naive: expected a number above 0, or null")
    return Scales(**scalers, naive=naive)


def _of(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise UsageError(f"{where}: expected {'a list' if kind is list else 'an object'}")
    return value


def _fit(values: np.ndarray) -> Scaler:
    """The scaler of (n,) or (n, C) values, holes left out."""
    if values.ndim == 1:
        return Scaler.fit(np.concatenate([np.zeros(0), *(some[~np.isnan(some)] for (some,) in slices(values))]))
    if not values.shape[1]:
        return _none()
    each = [_fit(column) for column in values.T]
    return Scaler(np.array([one.centre for one in each]), np.array([one.scale for one in each]))


def _within(values: np.ndarray) -> np.ndarray:
    return np.clip(values, -FAR, FAR)


def _none() -> Scaler:
    """That of no columns."""
    return Scaler(np.zeros(0), np.ones(0))


def roles_for(processor: SeriesProcessor | None, settings: DataSettings) -> Roles:
    """The roles that a run's processor has, or those that settings ask for."""
    if processor is not None:
        return processor.roles
    lists = {name: _names(getattr(settings, name)) for name in ROLES}
    asked = Roles(settings.time, settings.target, series=settings.series)
    return replace(asked, known=lists["known"] or (), past=lists["past"], static=lists["static"] or ())


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
