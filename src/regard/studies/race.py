"""The race: one model after the other, each with its rates and its seeds, on data that was prepared once.

A training is written down with what it is known by (see `ledger`), and a finished one is not made again: a comparison
that was cut off goes on where it was. A model that fails is a row with its reason; the others go on.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from regard.errors import NumericError, RegardError, ResourceError, Stopped, UsageError
from regard.run.dataset import work
from regard.run.rate import WIDTH
from regard.run.settings import Layer, Origin, Settings, resolve
from regard.run.train import Job, train_run
from regard.studies.board import Board
from regard.studies.entrant import Size
from regard.studies.identity import Peak, mark
from regard.studies.ledger import RATES, Ledger
from regard.studies.measure import measured
from regard.studies.protocol import HAND, TRIALS, Protocol
from regard.studies.row import Row
from regard.studies.search import Behind, Watched, search
from regard.tasks.dataset import Dataset
from regard.training.budget import parse
from regard.training.flops import flops_per_target
from regard.training.interrupt import Interrupt
from regard.training.metrics import curve
from regard.training.settings import DEFAULT_LR

T = TypeVar("T")
DIVERGED, BEHIND = "diverged", "behind"  # why a short training ended before its budget


@dataclass(frozen=True)
class _Trial:
    """One training to be made.

    ends  of the part of the model's budget that it is.
    best  held-out losses that it is ended for being behind of.
    """

    name: str
    told: str
    ends: tuple[float, float]
    changes: dict[str, Any]
    fold: int = 0
    best: Sequence[float] = ()


@dataclass
class Race:
    """Everything that the trainings of a comparison share. data, fingerprints: of each model, those of each fold."""

    protocol: Protocol
    layers: Mapping[str, Layer]
    sizes: Mapping[str, Size]
    data: Mapping[str, Sequence[Dataset[Any]]]
    out: Path
    board: Board
    interrupt: Interrupt
    fingerprints: Mapping[str, Sequence[str]]
    device: str = "cpu"

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.out, self.board.note)
        self.stopped = False

    def run(self) -> list[Row]:
        """A row for every model, in order; after a signal those of the models that were reached."""
        rows = []
        for label in self.layers:
            settings = self._settings(label)
            size = self.sizes[label]
            row = Row(label, settings["model.name"], size.parameters, size.note, pretrained=size.start)
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
        protocol, settings = self.protocol, self._settings(row.label)
        fitted = self.sizes[row.label].fitted
        is_given = settings.table["train.lr"].place == "--models"
        own = settings["train.lr"] or DEFAULT_LR
        searches = protocol.searches and not fitted and not is_given
        row.lr = None if fitted else own
        if searches:
            self._search(row, own)
        first = protocol.slice if searches else 0.0
        budget = protocol.main_budget if searches else protocol.whole_budget
        places = [(seed, fold) for seed in range(1 if fitted else protocol.seeds) for fold in range(protocol.folds)]
        for number, (seed, fold) in enumerate(places):
            ends = [first + (1 - first) * place / len(places) for place in (number, number + 1)]
            changes = {"train.seed": seed} | ({} if fitted else {"train.lr": row.lr, "train.budget": budget})
            name, told = self._named(row.label, seed, fold, fitted)
            trial = _Trial(name, told, (ends[0], ends[1]), changes, fold)
            row.runs.append(self._made(row, trial, self._tested))

    def _named(self, label: str, seed: int, fold: int, fitted: bool) -> tuple[str, str]:
        """The name of a training among those of its model, and what a person is told of it."""
        seeds, folds = 1 if fitted else self.protocol.seeds, self.protocol.folds
        name = "".join([label, f"-{seed}" if seeds > 1 else "", f"-fold{fold + 1}" if folds > 1 else ""])
        told = [f"seed {seed + 1} of {seeds}"] if seeds > 1 else []
        told += [f"fold {fold + 1} of {folds}"] if folds > 1 else []
        return name, ", ".join(told) or ("fitting" if fitted else "training")

    def _search(self, row: Row, own: float) -> None:
        """Short trainings until the best rate lies between two that are worse; the best on validation is taken."""
        trial = parse(self.protocol.trial_budget)
        spent, best = 0.0, None

        def tried(lr: float) -> float | None:
            nonlocal spent, best
            outcome = self._try(row, lr, [] if best is None else best["curve"])
            early = {"seconds": outcome["seconds"], "steps": outcome["step"]} if outcome["reason"] == BEHIND else {}
            spent += min(trial.amount, early.get(trial.kind, trial.amount))
            if outcome["valid"] is not None and (best is None or outcome["valid"] < best["valid"]):
                best = outcome
            row.rates = sorted([*row.rates, (lr, outcome["valid"])], key=lambda pair: pair[0])
            return outcome["valid"]

        found = search(own, tried, lambda: self.protocol.has_room(spent))
        if found.best is None:
            raise UsageError(f"every rate from {row.rates[0][0]:g} to {row.rates[-1][0]:g} diverged")
        row.lr, row.on_edge = found.rate(found.best), found.next is not None

    def _try(self, row: Row, lr: float, best: Sequence[dict[str, float]]) -> dict[str, Any]:
        """A short training at one rate. best: the curve of the best one so far."""
        number = len(row.rates)
        ends = [min(1.0, self.protocol.slice * place / TRIALS) for place in (number, number + 1)]
        changes = {
            "train.lr": lr,
            "train.budget": self.protocol.trial_budget,
            "train.seed": 0,
            "train.ensemble": 1,  # a rate that suits one suits its like
            "train.choose_by": "loss",
        }
        losses = [point["valid_loss"] for point in best]
        name = f"{RATES}/{row.label}-{lr:g}"
        return self._made(row, _Trial(name, f"rate {number + 1}", (ends[0], ends[1]), changes, best=losses))

    def _made(
        self, row: Row, trial: _Trial, measure: Callable[[Settings, Any], dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """The outcome of one training, made now or found in the state. measure: tells what is measured of it."""
        settings = self._settings(row.label, trial.changes | self.protocol.fold(trial.fold))
        path = self.ledger.folder(trial.name)
        known_by = mark(settings, self.fingerprints[row.label][trial.fold])
        display = Watched(self.board.stage(row.label, trial.told, *trial.ends), trial.best)
        known = self.ledger.outcome(trial.name, known_by)
        if known is not None:
            return known
        fitted = self.sizes[row.label].fitted
        goes_on = self.ledger.goes_on(trial.name, known_by, fitted)
        self.ledger.write_down(trial.name, known_by, None)
        peak = Peak(self.device)
        peak.start()
        job = Job(settings, path, "auto" if goes_on else "no", samples=False)
        data = self.data[row.label][trial.fold]
        try:
            # A fit leaves all or nothing, and is dropped at once; a training ends after its step and is saved.
            run, result = self._unless_stopped(lambda: train_run(job, display, data), at_once=fitted)
            found = {key: getattr(result, key) for key in ("step", "tokens", "seconds", "reason", "best_step")}
            found["valid"] = result.best_loss if result.best_score is None else result.best_score
            if measure is not None:
                found |= self._unless_stopped(lambda: measure(settings, run))
        except Stopped:
            if measure is not None:
                row.held_out = min((point["valid_loss"] for point in curve(path)), default=None)
            raise
        except NumericError as error:
            if measure is not None:
                raise
            found = _ended(error)
        found |= {"path": str(path), "seed": settings["train.seed"], "fold": trial.fold}
        outcome = found | {"peak_memory": peak.read(), "curve": curve(path)}
        self.ledger.write_down(trial.name, known_by, outcome)
        return outcome

    def _unless_stopped(self, work: Callable[[], T], at_once: bool = True) -> T:
        """What `work` gives; Stopped after a signal, which ends it in its middle unless it ends itself."""
        found = None
        if self.interrupt.received is None:
            found = self.interrupt.at_once(work) if at_once else work()
        if found is None or self.interrupt.received is not None:
            raise Stopped(f"stopped by {self.interrupt.received}")
        return found

    def _tested(self, settings: Settings, run: Any) -> dict[str, Any]:
        return measured(run, per_byte=self.protocol.per_byte) | self._read(settings, run)

    def _read(self, settings: Settings, run: Any) -> dict[str, Any]:
        """Of one model that learns by steps: operations of training for each target, and how its samples come."""
        if "fit" in run.config or settings["train.ensemble"] > 1:
            return {"flops_per_token": None, "samples": None}
        task, size = work(settings, run.dataset, run.model), settings["train.batch_size"]
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


def _ended(error: NumericError) -> dict[str, Any]:
    """Of a short training that did not reach its end: where it was, and its loss, None where that is no number."""
    if not isinstance(error, Behind):
        return {"step": 0, "tokens": 0, "seconds": 0.0, "reason": DIVERGED, "best_step": None, "valid": None}
    at = error.evaluation
    told = {"step": at.step, "tokens": 0, "seconds": error.seconds, "best_step": at.step}
    return told | {"reason": BEHIND, "valid": at.best_loss}
