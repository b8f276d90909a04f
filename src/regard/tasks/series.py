"""Series: a past is read and numbers are forecast (N-M of numbers), with what is known ahead of them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from regard.core.device import device_of
from regard.core.model import logits_of
from regard.data.example import taken
from regard.data.in_memory import is_frame, is_listed
from regard.data.panel import read_panel
from regard.data.series import origins
from regard.data.settings import DataSettings
from regard.data.table import Table
from regard.data.tabular import table_of
from regard.data.unlabelled import Items, Unlabelled
from regard.data.worlds import PREFIX
from regard.errors import DataError
from regard.models.ensemble import EnsembleConfig
from regard.tasks import register_task
from regard.tasks.dataset import ExampleDataset
from regard.tasks.example_task import ExampleTask
from regard.tasks.kinds import SeriesKind
from regard.tasks.moment import Moment, by_series, moments_of, next_moments, reading_of, windows_of
from regard.tasks.reading import Capabilities, Reading
from regard.tasks.rolling import Block, blocks_of, continued
from regard.tasks.series_parts import Parts, account_of, read_parts, refuse_empty, unscaled, world_parts
from regard.tasks.series_processor import SeriesProcessor, load_processor, roles_for
from regard.tasks.series_report import answer_of, report, rows_of
from regard.tasks.verbs import Answer, Report
from regard.training.losses import inputs_of, model_loss
from regard.training.problem import Objective

if TYPE_CHECKING:
    from torch import nn

    from regard.core.config import Config
    from regard.decoding.text import TextOptions
    from regard.tasks.task import Trained
    from regard.training.settings import TrainSettings

AT_ONCE = 256


@register_task
class SeriesTask(SeriesKind, ExampleTask[SeriesProcessor]):
    """Forecasting, with circumstances that are known ahead where there are any."""

    shape: ClassVar[str] = "N-M"
    metric: ClassVar[str] = "mae"
    lower_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "values"
    model: ClassVar[str] = "forecaster"
    headed: ClassVar[str | None] = "forecaster"
    ladder: ClassVar[tuple[str, ...]] = (
        *("naive", "lear", "dlinear"),
        *("dan", "fnn", "lstm", "transformer", "mamba"),
    )
    example: ClassVar[type | None] = Moment
    world: ClassVar[str | None] = "world:electricity"
    can: ClassVar[Capabilities] = Capabilities(source=True, quantiles=True)
    reads_files: ClassVar[bool] = True
    typed_example: ClassVar[str] = "FILE"
    reads_tables: ClassVar[bool] = True

    def prepare(
        self, settings: DataSettings, seed: int, processor: SeriesProcessor | None = None
    ) -> ExampleDataset[SeriesProcessor]:
        self.refuse_unused(settings)
        parts = read_parts(settings, seed, processor)
        panel, borders = parts.panel, parts.borders
        processor = processor or SeriesProcessor.fit(panel, borders, settings)
        which, places = windows_of(panel.series, processor)
        if not len(places):
            origins(max(panel.series, key=len), processor.history, processor.horizon, processor.stride)
        is_train, is_valid = places + processor.horizon <= borders[which], places >= borders[which]
        refuse_empty(parts, processor, bool(is_train.any()), bool(is_valid.any()))
        rows = processor.rows(panel.series, which, places)
        train, held = (replace(rows, origins=rows.origins[part]) for part in (is_train, is_valid))
        moments = moments_of(panel.series, which[is_valid], places[is_valid])
        notes = (*panel.notes, *unscaled(processor))
        told, name = account_of(panel, settings.path), Path(settings.path).name
        return ExampleDataset(name, processor, train, held, moments, parts.best, notes, account=told)

    def ready(
        self, settings: DataSettings, seed: int, processor: SeriesProcessor | None = None
    ) -> ExampleDataset[SeriesProcessor]:
        """The dataset; where a test is set apart, no horizon that training looks at reaches into it."""
        dataset = super().ready(settings, seed, processor)
        if dataset.kept is None:
            return dataset
        first, horizon = min(one.time for one in dataset.test), dataset.processor.horizon
        clear = [n for n, one in enumerate(dataset.examples) if one.series.times[one.origin + horizon - 1] < first]
        if not clear:
            raise DataError(f"{dataset.name}: the held-out part is too short to set a test part apart; hold out more")
        return replace(dataset, examples=taken(dataset.examples, np.array(clear)), kept=dataset.kept[clear])

    def examples(self, data: str, settings: DataSettings, seed: int) -> Sequence[Moment]:
        return self.part_of(data, settings, seed, None)

    def part_of(
        self, data: str, settings: DataSettings, seed: int, processor: SeriesProcessor | None
    ) -> Sequence[Moment]:
        if data.startswith(PREFIX):
            parts = world_parts(data, seed)
        else:
            panel = read_panel(data, roles_for(processor, settings), settings.gaps, choices=settings.choices)
            parts = Parts(panel, np.zeros(len(panel.series), int), {})
        series = parts.panel.series
        shape = processor or SeriesProcessor.fit(parts.panel, [len(one) for one in series], settings)
        which, places = windows_of(series, shape)
        if not len(places):
            origins(max(series, key=len), shape.history, shape.horizon, shape.stride)
        later = places >= parts.borders[which]
        return moments_of(series, which[later], places[later])

    def load_processor(self, verified: Callable[[str], Path]) -> SeriesProcessor:
        return load_processor(verified)

    def objective(self, settings: TrainSettings) -> Objective:
        return model_loss

    def inputs(self, text: str) -> list[Any]:
        """The path of a file."""
        return [text]

    def given(self, one: Any, where: str = "") -> Any:
        """The path of a file, or a table in memory, whose last rows may lack the target."""
        if isinstance(one, os.PathLike):
            return os.fspath(one)
        if is_frame(one) or is_listed(one):
            return table_of(one, f"{where}the table")
        return super().given(one, where)

    @property
    def takes(self) -> str:
        return "a table, or the path of one"

    def combined(self, config: Config, count: int) -> Config:
        return EnsembleConfig(config, count)

    def answers(
        self, model: nn.Module, processor: SeriesProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        for one in inputs:
            moments = [one] if isinstance(one, Moment) else next_moments(one, processor)
            found = self.forecast(model, processor, moments)
            yield answer_of(moments, found, self._quantiles(model), processor.roles.series)

    def evaluate(
        self,
        model: nn.Module,
        processor: SeriesProcessor,
        examples: Sequence[Moment],
        options: TextOptions | None = None,
    ) -> Report:
        return report(self._quantiles(model), processor, examples, self.forecast(model, processor, examples))

    def blocks(self, run: Trained, data: str | None, every: str) -> list[Block]:
        if data is None:
            held = run.held_out("valid")
            return blocks_of([one for one, _ in by_series(held)], (held[0].time, held[-1].time), every, run.processor)
        if data.startswith(PREFIX):
            parts = world_parts(data, run.seed)
            series = list(parts.panel.series)
            first = series[0].times[int(parts.borders[0])]
        else:
            own = read_parts(run.settings, run.seed, run.processor)
            other = read_panel(data, run.processor.roles, run.settings.gaps, choices=run.settings.choices)
            series, first = continued(own.panel.series, own.borders, other.series)
        last = max(one.times[-1] for one in series)
        return blocks_of(series, (first, last), every, run.processor)

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
        whole, first, rows = report(quantiles, processor, examples, found), 0, list[dict[str, Any]]()
        for block in blocks:
            part = slice(first, min(first + len(block.examples), len(examples)))
            if part.start < part.stop:
                scores = report(quantiles, processor, examples[part], found[part]).scores
                rows.append(
                    {"from": str(block.examples[0].time), "horizons": part.stop - part.start, "mae": scores["mae"]}
                )
            first = part.stop
        return replace(whole, tables={"by_block": rows, **whole.tables})

    def describe(self, example: Moment, answer: Answer) -> str:
        forecast = np.array(answer.details["forecast"])
        right = example.series.target[example.origin : example.origin + len(forecast)]
        shown = " ".join(f"{value:.4g}" for value in forecast[:6])
        told = " ".join(f"{value:.4g}" for value in right[:6])
        label = f"{example.series.label}, " if example.series.label else ""
        error = np.abs(forecast - right).mean()
        return f"{label}{answer.details['time'][0]}: {shown} ... (right: {told} ...), mean error {error:.4g}"

    def keys(self, examples: Sequence[Moment]) -> Iterable[str]:
        return (f"{one.time} {one.series.label}" for one in examples)

    def command(self, run: str, example: Moment) -> str:
        path = example.series.path
        # A world is no file, and what is known ahead is not in one that ends today: what was held out is looked at.
        is_to_come = path and not example.series.columns
        return f"regard generate {run} {shlex.quote(path)}" if is_to_come else f"regard explain {run}"

    def unlabelled(self, run: Trained, data: str, settings: DataSettings) -> Unlabelled:
        """Where each series of a file ends: from there on it is forecast."""
        moments = next_moments(data, run.processor, settings.choices)
        places = Items([one.series.name for one in moments])
        return Unlabelled(Items(moments), {}, places, mark=lambda one: one.digest)

    def answer_rows(self, answer: Answer) -> list[dict[str, Any]]:
        return rows_of(answer)

    def reading(self, run: Trained, given: str | Table, target: str | None) -> Reading:
        processor: SeriesProcessor = run.processor
        name = given if isinstance(given, str) else ""
        if isinstance(given, str) and (given.startswith(PREFIX) or not given):
            held = run.held_out("valid") if not given else self.part_of(given, run.settings, run.seed, processor)
            moment = held[0]
        else:
            moment = next_moments(given, processor)[0]
        return reading_of(run.model, processor, moment, name or str(moment.time), run.device)

    @torch.no_grad()
    def forecast(self, model: nn.Module, processor: SeriesProcessor, moments: Sequence[Moment]) -> np.ndarray:
        """Quantiles (n, H, Q) of the values from each moment on, none of them crossing."""
        device = device_of(model)
        found = np.zeros((len(moments), processor.horizon, len(self._quantiles(model))))
        for series, numbers in by_series(moments):
            places = np.array([moments[number].origin for number in numbers])
            start, stop = int(places.min()) - processor.history, int(places.max()) + processor.horizon
            rows = processor.rows([series.part(start, stop)], np.zeros(len(places), int), places - start)
            scaler = processor.of(series).target
            for first in range(0, len(places), AT_ONCE):
                chosen = np.arange(first, min(first + AT_ONCE, len(places)))
                batch = rows.batch_of(chosen, chosen).to(device)
                told = logits_of(model, inputs_of(batch)).float().cpu().numpy()
                found[numbers[chosen]] = scaler.invert(told.astype(np.float64))
        return np.sort(found, -1)

    def _quantiles(self, model: nn.Module) -> tuple[float, ...]:
        whole: Any = model
        return whole.config.quantiles
