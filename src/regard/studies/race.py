"""The race: one model after the other, each with its rates and its seeds, on data that was prepared once.

A training is written down with what it is known by (see `ledger`), and a finished one is not made again: a comparison
that was cut off goes on where it was. A model that fails is a row with its reason; the others go on.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from regard.errors import NumericError, RegardError, ResourceError, Stopped, UsageError
from regard.run.dataset import work
from regard.run.settings import Layer, Origin, Settings, resolve
from regard.run.train import Job, train_run
from regard.studies.board import Board
from regard.studies.entrant import WIDTH, Size
from regard.studies.identity import Peak, mark
from regard.studies.ledger import RATES, Ledger
from regard.studies.measure import measured
from regard.studies.protocol import HAND, RATE_STEP, Protocol
from regard.tasks.dataset import Dataset
from regard.training.budget import share
from regard.training.flops import flops_per_target
from regard.training.interrupt import Interrupt
from regard.training.metrics import curve
from regard.training.settings import DEFAULT_LR

T = TypeVar("T")


@dataclass
class Row:
    """What became of one model.

    rates    learning rates that were tried, and the held-out score of each; None where it diverged.
    on_edge  the best rate is the lowest or the highest that was tried.
    runs     what was measured of each seed.
    failed   why there is nothing, if there is nothing. code: the exit code of that failure.
    stopped  by a signal: tested are the seeds that had ended. held_out: the lowest loss of the one that had not.
    """

    label: str
    model: str
    parameters: int
    note: str = ""
    lr: float | None = None
    rates: list[tuple[float, float | None]] = field(default_factory=list)
    on_edge: bool = False
    runs: list[dict[str, Any]] = field(default_factory=list)
    failed: str = ""
    code: int = 0
    stopped: bool = False
    held_out: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Race:
    """Everything that the trainings of a comparison share."""

    protocol: Protocol
    layers: Mapping[str, Layer]
    sizes: Mapping[str, Size]
    data: Dataset[Any]
    out: Path
    board: Board
    interrupt: Interrupt
    fingerprint: str
    device: str = "cpu"

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.out, self.board.note)
        self.stopped = False

    def run(self) -> list[Row]:
        """A row for every model, in order; after a signal those of the models that were reached."""
        rows = []
        for label in self.layers:
            settings = self._settings(label)
            row = Row(label, settings["model.name"], self.sizes[label].parameters, self.sizes[label].note)
            try:
                self._entrant(row)
            except Stopped:
                self.stopped = row.stopped = True
            except Exception as error:
                # Whatever it is, also in a model from outside: the trainings of the others must not be lost to it.
                row.failed, row.code = _reason(error)
            gc.collect()
            rows.append(row)
            self.board.ended(label, f"failed: {row.failed}" if row.failed else "stopped" if row.stopped else "done")
            if self.stopped:
                break
        return rows

    def _entrant(self, row: Row) -> None:
        settings = self._settings(row.label)
        fitted = self.sizes[row.label].fitted
        is_given = settings.table["train.lr"].place == "--models"
        own = (settings["train.lr"] or DEFAULT_LR) * (1.0 if is_given else self.sizes[row.label].factor)
        searches = bool(self.protocol.factors) and not fitted and not is_given
        row.lr = None if fitted else own
        if searches:
            self._search(row, own)
        first = self.protocol.slice if searches else 0.0
        budget = self.protocol.main_budget if searches else share(self.protocol.budget, 1 / self.protocol.seeds)
        seeds = 1 if fitted else self.protocol.seeds
        for seed in range(seeds):
            ends = [first + (1 - first) * place / seeds for place in (seed, seed + 1)]
            name = row.label if seeds == 1 else f"{row.label}-{seed}"
            changes = {"train.seed": seed} | ({} if fitted else {"train.lr": row.lr, "train.budget": budget})
            told = "fitting" if fitted else f"seed {seed + 1} of {seeds}" if seeds > 1 else "training"
            row.runs.append(self._made(row, name, told, (ends[0], ends[1]), changes, intervals=seeds == 1))

    def _search(self, row: Row, own: float) -> None:
        """A short training at each rate, and at one further out where the best is at the edge; the best chooses."""
        for factor in self.protocol.factors:
            self._try(row, own * factor)
        best = self._best_rate(row)
        if row.on_edge and self.protocol.may_extend:
            self._try(row, best * RATE_STEP if best == row.rates[-1][0] else best / RATE_STEP)
            best = self._best_rate(row)
        row.lr = best

    def _try(self, row: Row, lr: float) -> None:
        """A short training at one rate, put among the others in their order."""
        lr, number = float(f"{lr:.2g}"), len(row.rates)
        of = len(self.protocol.factors)
        ends = [self.protocol.slice * place / (of + 1) for place in (number, number + 1)]
        changes = {"train.lr": lr, "train.budget": self.protocol.trial_budget, "train.seed": 0, "train.sample_every": 0}
        told = f"rate {number + 1} of {of}" if number < of else "one rate further"
        try:
            score = self._made(row, f"{RATES}/{row.label}-{lr:g}", told, (ends[0], ends[1]), changes)["valid"]
        except NumericError:
            score = None
        row.rates = sorted([*row.rates, (lr, score)], key=lambda pair: pair[0])

    def _best_rate(self, row: Row) -> float:
        """The rate with the best held-out score, and whether it is at the edge of those that were tried."""
        known = [(lr, score) for lr, score in row.rates if score is not None]
        if not known:
            raise UsageError(f"every rate from {row.rates[0][0]:g} to {row.rates[-1][0]:g} diverged")
        best = min(known, key=lambda pair: pair[1] if self.protocol.lower_is_better else -pair[1])[0]
        row.on_edge = best in (row.rates[0][0], row.rates[-1][0])
        return best

    def _made(
        self,
        row: Row,
        name: str,
        told: str,
        ends: tuple[float, float],
        changes: dict[str, Any],
        intervals: bool | None = None,
    ) -> dict[str, Any]:
        """The outcome of one training, made now or found in the state. intervals None: nothing is measured of it."""
        settings = self._settings(row.label, changes)
        path, known_by = self.ledger.folder(name), mark(settings, self.fingerprint)
        display = self.board.stage(row.label, told, *ends)
        known = self.ledger.outcome(name, known_by)
        if known is not None:
            return known
        fitted = self.sizes[row.label].fitted
        goes_on = self.ledger.goes_on(name, known_by, fitted)
        self.ledger.write_down(name, known_by, None)
        peak = Peak(self.device)
        peak.start()
        try:
            job = Job(settings, path, "auto" if goes_on else "no")
            # A fit leaves all or nothing, and is dropped at once; a training ends after its step and is saved.
            run, result = self._unless_stopped(lambda: train_run(job, display, self.data), at_once=fitted)
            tested = {} if intervals is None else self._unless_stopped(lambda: self._tested(settings, run, intervals))
        except Stopped:
            if intervals is not None:
                row.held_out = min((point["valid_loss"] for point in curve(path)), default=None)
            raise
        outcome: dict[str, Any] = {
            "path": str(path),
            "seed": settings["train.seed"],
            **{key: getattr(result, key) for key in ("step", "tokens", "seconds", "reason", "best_step")},
            "valid": result.best_loss if result.best_score is None else result.best_score,
            "peak_memory": peak.read(),
            "curve": curve(path),
            **tested,
        }
        self.ledger.write_down(name, known_by, outcome)
        return outcome

    def _unless_stopped(self, work: Callable[[], T], at_once: bool = True) -> T:
        """What `work` gives; Stopped after a signal, which ends it in its middle unless it ends itself."""
        found = None
        if self.interrupt.received is None:
            found = self.interrupt.at_once(work) if at_once else work()
        if found is None or self.interrupt.received is not None:
            raise Stopped(f"stopped by {self.interrupt.received}")
        return found

    def _tested(self, settings: Settings, run: Any, intervals: bool) -> dict[str, Any]:
        return measured(run, intervals=intervals) | self._read(settings, run)

    def _read(self, settings: Settings, run: Any) -> dict[str, Any]:
        """Of one model that learns by steps: operations of training for each target, and how its samples come."""
        if "fit" in run.config or settings["train.ensemble"] > 1:
            return {"flops_per_token": None, "samples": None}
        task, size = work(settings, self.data, run.model), settings["train.batch_size"]
        flops = flops_per_target(run.model, task.sampler.batch(0, size), task.objective)
        order = [type(task.sampler).__name__.lower(), size, settings["train.length"]]
        return {"flops_per_token": flops, "samples": order}

    def _settings(self, label: str, changes: dict[str, Any] | None = None) -> Settings:
        width = self.sizes[label].width
        layer = dict(self.layers[label])
        if width is not None:
            layer[f"model.{WIDTH}"] = Origin(width, HAND)
        layer |= {key: Origin(value, HAND) for key, value in (changes or {}).items()}
        return resolve(layer)


def _reason(error: Exception) -> tuple[str, int]:
    """Why a model failed, in a line, and the exit code of that."""
    text = str(error).partition("\n")[0]
    if isinstance(error, RegardError):
        return text, error.exit_code
    if isinstance(error, MemoryError):
        return text or "out of memory", ResourceError.exit_code
    return f"{type(error).__name__}: {text}" if text else type(error).__name__, RegardError.exit_code


def finished(rows: Sequence[Row]) -> list[Row]:
    """Those of which something was measured."""
    return [row for row in rows if row.runs]
