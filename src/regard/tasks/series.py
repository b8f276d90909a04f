"""Series: a past is read and numbers are forecast (N-M of numbers), with what is known ahead of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from regard.core.device import device_of
from regard.core.model import logits_of
from regard.data.kind import Head
from regard.data.scaler import Scaler
from regard.data.series import Series, origins, read_series
from regard.data.settings import BY_HASH, DataSettings
from regard.data.worlds import PREFIX, from_spec
from regard.data.worlds.electricity import ElectricityMarket
from regard.errors import DataError, UsageError
from regard.evaluation.each import EachScore
from regard.evaluation.forecast import forecast_report, seasonal_naive, seasonal_scale
from regard.models.ensemble import EnsembleConfig
from regard.tasks import register_task
from regard.tasks.dataset import ExampleDataset
from regard.tasks.example_task import ExampleTask
from regard.tasks.moment import Moment, SeriesProcessor, next_moment, reading_of
from regard.tasks.processor import read_facts
from regard.tasks.reading import Capabilities, Reading
from regard.tasks.rolling import Block, blocks_of, continued
from regard.tasks.verbs import Answer, Report
from regard.training.losses import inputs_of, model_loss
from regard.training.problem import Objective

if TYPE_CHECKING:
    from torch import nn

    from regard.core.config import Config
    from regard.decoding.text import TextOptions
    from regard.tasks.task import Trained
    from regard.training.settings import TrainSettings

DAY = np.timedelta64(86_400, "s")
TAIL = re.compile(r"tail:(0[.]\d+|[1-9]\d*d)")
AT_ONCE = 256


@register_task
class SeriesTask(ExampleTask[SeriesProcessor]):
    """Forecasting with circumstances known ahead."""

    name: ClassVar[str] = "series"
    shape: ClassVar[str] = "N-M"
    used: ClassVar[frozenset[str]] = frozenset({"target", "time", "known", "history", "horizon", "gaps"})
    metric: ClassVar[str] = "mae"
    lower_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "values"
    model: ClassVar[str] = "forecaster"
    headed: ClassVar[str | None] = "forecaster"
    ladder: ClassVar[tuple[str, ...]] = (
        *("naive", "lear", "dlinear"),
        *("dan", "fnn", "lstm", "transformer", "mamba"),
    )
    world: ClassVar[str | None] = "world:electricity"
    can: ClassVar[Capabilities] = Capabilities(source=True, quantiles=True)
    turn: ClassVar[int] = 2
    by_time: ClassVar[bool] = True
    reads_files: ClassVar[bool] = True

    def recognises(self, head: Head) -> bool:
        return head.has_columns and head.is_series

    def prepare(
        self, settings: DataSettings, seed: int, processor: SeriesProcessor | None = None
    ) -> ExampleDataset[SeriesProcessor]:
        self.refuse_unused(settings)
        series, border, best = self._parts(settings, seed)
        places = origins(series, settings.history, settings.horizon, settings.horizon)
        train, valid = places[places + settings.horizon <= border], places[places >= border]
        if not len(train) or not len(valid):
            raise DataError(f"{series.name}: too short for a training part and a held-out part; give a longer series")
        processor = processor or self._processor(series, border, settings)
        moments = [Moment(series, int(place)) for place in valid]
        rows = processor.rows(series, train)
        held = replace(rows, origins=valid)
        return ExampleDataset(Path(settings.path).name, processor, rows, held, moments, best, series.notes)

    def examples(self, data: str, settings: DataSettings, seed: int) -> list[Moment]:
        if data.startswith(PREFIX):
            world = _world(data, seed)
            series, first = world.series, world.first_valid
        else:
            series, first = _read(data, settings), 0
        places = origins(series, settings.history, settings.horizon, settings.horizon)
        return [Moment(series, int(place)) for place in places if place >= first]

    def load_processor(self, verified: Callable[[str], Path]) -> SeriesProcessor:
        hints = {"history": int, "horizon": int, "columns": tuple[str, ...], "target_name": str, "scale": float}
        told = read_facts(verified, hints | {"target": Any, "known": Any})
        shapes = {"target": (), "known": (len(told["columns"]),)}
        scalers = {name: Scaler.from_dict(told.pop(name), shape, name) for name, shape in shapes.items()}
        return SeriesProcessor(**scalers, **told)

    def objective(self, settings: TrainSettings) -> Objective:
        return model_loss

    def inputs(self, text: str) -> list[Any]:
        """One series: the path of a CSV file, or the file itself."""
        return [text]

    def combined(self, config: Config, count: int) -> Config:
        return EnsembleConfig(config, count)

    def answers(
        self, model: nn.Module, processor: SeriesProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        for one in inputs:
            moment = one if isinstance(one, Moment) else next_moment(str(one), processor)
            found = self.forecast(model, processor, [moment])[0]
            times = moment.time + np.arange(processor.horizon) * moment.series.step
            yield Answer(_as_csv(times, found, self._quantiles(model)), _details(times, found, self._quantiles(model)))

    def evaluate(
        self,
        model: nn.Module,
        processor: SeriesProcessor,
        examples: Sequence[Moment],
        options: TextOptions | None = None,
    ) -> Report:
        return self._report(self._quantiles(model), processor, examples, self.forecast(model, processor, examples))

    def blocks(self, run: Trained, data: str | None, every: str) -> list[Block]:
        if data is None:
            held = run.held_out("valid")
            return blocks_of(held[0].series, held[0].origin, held[-1].origin, every, run.processor)
        if data.startswith(PREFIX):
            world = _world(data, run.seed)
            return blocks_of(world.series, world.first_valid, len(world.series), every, run.processor)
        own, border, _ = self._parts(run.settings, run.seed)
        series, first = continued(own, border, _read(data, run.settings))
        return blocks_of(series, first, len(series), every, run.processor)

    def told(self, model: nn.Module, processor: SeriesProcessor, examples: Sequence[Moment]) -> np.ndarray:
        return self.forecast(model, processor, examples)

    def judged(
        self,
        model: nn.Module,
        processor: SeriesProcessor,
        examples: Sequence[Moment],
        told: Sequence[np.ndarray],
        blocks: Sequence[Block],
    ) -> Report:
        found, quantiles = np.stack(told), self._quantiles(model)
        report, first, rows = self._report(quantiles, processor, examples, found), 0, list[dict[str, Any]]()
        for block in blocks:
            part = slice(first, min(first + len(block.examples), len(examples)))
            if part.start < part.stop:
                scores = self._report(quantiles, processor, examples[part], found[part]).scores
                rows.append(
                    {"from": str(block.examples[0].time), "horizons": part.stop - part.start, "mae": scores["mae"]}
                )
            first = part.stop
        return replace(report, tables={"by_block": rows, **report.tables})

    def _report(
        self, quantiles: tuple[float, ...], processor: SeriesProcessor, examples: Sequence[Moment], found: np.ndarray
    ) -> Report:
        """The scores of forecasts (n, H, Q)."""
        actual = np.stack([one.series.target[one.origin : one.origin + processor.horizon] for one in examples])
        median = found[..., quantiles.index(0.5)]
        naive = {name: _naive(examples, processor.horizon, season) for name, season in _seasons(examples).items()}
        report = forecast_report(
            actual, median, scale=processor.scale, quantiles=quantiles, quantile_forecasts=found
        ).to_dict()
        by_quantile = report.pop("pinball_by_quantile", None) or {}
        for name, guess in naive.items():
            report[f"{name}_naive_mae"] = float(np.abs(actual - guess).mean())
        worst = min((report[f"{name}_naive_mae"] for name in naive), default=0.0)
        if worst:
            report["relative_mae"] = report["mae"] / worst
        rows = [{"quantile": str(name), "pinball": value} for name, value in by_quantile.items()]
        hours = [
            {"step": str(h + 1), "mae": float(np.abs(actual - median)[:, h].mean())} for h in range(processor.horizon)
        ]
        each = np.abs(actual - median).mean(-1)
        return Report(report, {"by_quantile": rows, "by_step": hours}, each=lambda: EachScore.mean_of(each))

    def describe(self, example: Moment, answer: Answer) -> str:
        forecast = np.array(answer.details["forecast"])
        right = example.series.target[example.origin : example.origin + len(forecast)]
        shown = " ".join(f"{value:.1f}" for value in forecast[:6])
        told = " ".join(f"{value:.1f}" for value in right[:6])
        return f"{example.time}: {shown} ... (right: {told} ...), mean error {np.abs(forecast - right).mean():.2f}"

    def keys(self, examples: Sequence[Moment]) -> Iterable[str]:
        return (str(one.time) for one in examples)

    def command(self, run: str, example: Moment) -> str:
        return f"regard generate {run} {shlex.quote(example.series.name)}"

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        processor: SeriesProcessor = run.processor
        if given.startswith(PREFIX) or not given:
            moment = (run.held_out("valid") if not given else self.examples(given, run.settings, run.seed))[0]
        else:
            moment = next_moment(given, processor)
        return reading_of(run.model, processor, moment, given or str(moment.time), run.device)

    @torch.no_grad()
    def forecast(self, model: nn.Module, processor: SeriesProcessor, moments: Sequence[Moment]) -> np.ndarray:
        """Quantiles (n, H, Q) of the values from each moment on, none of them crossing."""
        device = device_of(model)
        found = []
        for series, places in _by_series(moments):
            start, stop = int(places.min()) - processor.history, int(places.max()) + processor.horizon
            rows = processor.rows(series.part(start, stop), places - start)
            for first in range(0, len(places), AT_ONCE):
                chosen = np.arange(first, min(first + AT_ONCE, len(places)))
                batch = rows.batch_of(chosen, chosen).to(device)
                found.append(logits_of(model, inputs_of(batch)).float().cpu().numpy())
        return np.sort(processor.target.invert(np.concatenate(found).astype(np.float64)), -1)

    def _quantiles(self, model: nn.Module) -> tuple[float, ...]:
        whole: Any = model
        return whole.config.quantiles

    def _parts(self, settings: DataSettings, seed: int) -> tuple[Series, int, dict[str, float]]:
        """The series, where its held-out part begins, and the best possible scores."""
        if settings.path.startswith(PREFIX):
            world = _world(settings.path, seed)
            return world.series, world.first_valid, world.best
        series = _read(settings.path, settings)
        return series, _border(series, settings.valid), {}

    def _processor(self, series: Series, border: int, settings: DataSettings) -> SeriesProcessor:
        week = max(1, int(7 * DAY / series.step))
        scale = seasonal_scale(series.target[:border], week if border > week else 1)
        known = Scaler.fit(series.known[:border]) if series.columns else Scaler(np.zeros(0), np.ones(0))
        target = Scaler.fit(series.target[:border])
        return SeriesProcessor(
            target, known, settings.history, settings.horizon, series.columns, series.target_name, float(scale)
        )


def _read(path: str, settings: DataSettings) -> Series:
    return read_series(path, time=settings.time, target=settings.target, known=settings.known, gaps=settings.gaps)


def _border(series: Series, valid: str) -> int:
    """Where the held-out part begins: a series is held out at its end."""
    found = TAIL.fullmatch("tail:0.1" if valid == BY_HASH else valid)
    if found is None:
        raise UsageError(f"valid = {valid!r}: of a series the end is held out; say tail:0.1, or tail:294d for days")
    amount = found[1]
    steps = int(amount[:-1]) * int(DAY / series.step) if amount.endswith("d") else int(len(series) * float(amount))
    return series.observed - steps


def _by_series(moments: Sequence[Moment]) -> Iterator[tuple[Series, np.ndarray]]:
    """Moments that follow each other in one series, together."""
    first = 0
    for place in range(1, len(moments) + 1):
        if place == len(moments) or moments[place].series is not moments[first].series:
            yield moments[first].series, np.array([one.origin for one in moments[first:place]])
            first = place


def _seasons(moments: Sequence[Moment]) -> dict[str, int]:
    """Steps of a day and of a week, where the past reaches so far."""
    step, least = moments[0].series.step, min(one.origin for one in moments)
    found = {"daily": int(DAY / step), "weekly": int(7 * DAY / step)}
    return {name: season for name, season in found.items() if 1 <= season <= least}


def _naive(moments: Sequence[Moment], horizon: int, season: int) -> np.ndarray:
    return np.stack([seasonal_naive(one.series.target[: one.origin], horizon, season) for one in moments])


def _as_csv(times: np.ndarray, found: np.ndarray, quantiles: tuple[float, ...]) -> str:
    head = ",".join(["time", *(f"q{quantile:g}" for quantile in quantiles)])
    lines = [f"{time},{','.join(f'{value:.4f}' for value in row)}" for time, row in zip(times, found, strict=True)]
    return "\n".join([head, *lines])


def _details(times: np.ndarray, found: np.ndarray, quantiles: tuple[float, ...]) -> dict[str, Any]:
    named = {f"q{quantile:g}": found[:, place].tolist() for place, quantile in enumerate(quantiles)}
    return {"time": [str(time) for time in times], "forecast": found[:, quantiles.index(0.5)].tolist(), **named}


def _world(spec: str, seed: int) -> ElectricityMarket:
    world = from_spec(spec, seed)
    if not isinstance(world, ElectricityMarket):
        raise UsageError(f"{spec} is no world of series")
    return world
