"""One training of a comparison, as a job: with all that its numbers come from, and where its run lies."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from regard.core.progress import Progress
from regard.errors import CheckpointError, DataError, NumericError, Stopped
from regard.run.dataset import load_dataset, work
from regard.run.settings import Settings
from regard.run.train import Job, train_run
from regard.storage import disk
from regard.studies.identity import Peak, fingerprint
from regard.studies.ledger import KEPT
from regard.studies.measure import measured
from regard.studies.outcome import NOTES, READS
from regard.studies.pool.parcel import packed_if_small, unpacked
from regard.studies.search import Behind, Watched
from regard.tasks.dataset import Dataset
from regard.training.display import Evaluation, Result, Start, Update
from regard.training.flops import flops_per_target
from regard.training.interrupt import Interrupt
from regard.training.metrics import curve
from regard.training.run_folder import CONFIG
from regard.training.saved_config import notes_of

T = TypeVar("T")
DIVERGED, BEHIND = "diverged", "behind"  # why a short training ended before its budget
LARGEST_TAKEN = 1 << 26  # bytes of data that go along with every training
Event = tuple[str, tuple[Any, ...]]  # a method of a display, and what it is given
_latest: dict[str, Dataset[Any]] = {}  # what this process read last, by its fingerprint


@dataclass(frozen=True)
class Training:
    """A training to be made.

    path         its run folder, in that of the comparison; what lies there is of an earlier attempt, and goes on.
    reading      the settings by which the data was read. data: what that gave; what is large, or cannot be pickled, is
                 read again in another process, and must be the same.
    fingerprint  of the data.
    best         held-out losses that it is ended for being behind of.
    tests        it is measured on the test part when it has ended.
    """

    settings: Settings
    path: Path
    out: Path
    reading: Settings
    data: Dataset[Any] | None
    fingerprint: str
    fold: int = 0
    best: tuple[float, ...] = ()
    fitted: bool = False
    tests: bool = True
    per_byte: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        values = tuple(getattr(replace(self, data=None), one.name) for one in fields(self))
        return _brought, (values, packed_if_small(self.data, LARGEST_TAKEN))

    def __call__(self, tell: Callable[[Event], None]) -> dict[str, Any]:
        """The outcome of the training; Stopped after a signal, with a checkpoint to go on from."""
        with Interrupt() as interrupt:
            data = unless_stopped(interrupt, self._read)
            display = Watched(Telling(tell), self.best)
            peak = Peak(str(self.settings["train.device"]))
            peak.start()
            job = Job(self.settings, self.path, "auto" if self._goes_on() else "no", samples=False)
            try:
                # A fit leaves all or nothing, and is dropped at once; a training ends after its step and is saved.
                run, result = unless_stopped(interrupt, lambda: train_run(job, display, data), at_once=self.fitted)
                found = {key: getattr(result, key) for key in ("step", "tokens", "seconds", "reason", "best_step")}
                found["valid"] = result.best_loss if result.best_score is None else result.best_score
                if self.tests:
                    found |= unless_stopped(interrupt, lambda: self._tested(run))
                    found |= {NOTES: notes_of(run.config), READS: getattr(run.model, "reads", "tokens")}
            except NumericError as error:
                if self.tests:
                    raise
                found = _ended(error)
        found |= {"path": str(self.path), "seed": self.settings["train.seed"], "fold": self.fold}
        return found | {"peak_memory": peak.read(), "curve": curve(self.path)}

    def _goes_on(self) -> bool:
        """Whether an attempt was made before; of a fit nothing is left to go on from."""
        is_begun = (self.path / CONFIG).exists()
        if is_begun and self.fitted:
            disk.remove_tree(self.path)
        return is_begun and not self.fitted

    def _read(self) -> Dataset[Any]:
        if self.data is not None:
            return self.data
        here = socket.gethostname()
        if not (self.out / KEPT).is_file():
            raise CheckpointError(
                f"{here} has no {self.out.absolute()}: give an --out on storage that all machines share"
            )
        if self.fingerprint not in _latest:
            read = load_dataset(self.reading)
            if fingerprint(read) != self.fingerprint:
                raise DataError(
                    f"{here} reads other data from {self.reading['data.path']} (in {os.getcwd()}) than the comparison "
                    f"began with; give data that is the same on all machines"
                )
            _latest.clear()
            _latest[self.fingerprint] = read
        return _latest[self.fingerprint]

    def _tested(self, run: Any) -> dict[str, Any]:
        return measured(run, per_byte=self.per_byte) | self._cost(run)

    def _cost(self, run: Any) -> dict[str, Any]:
        """Of one model that learns by steps: operations of training for each target, and how its samples come."""
        settings = self.settings
        if "fit" in run.config or settings["train.ensemble"] > 1:
            return {"flops_per_token": None, "samples": None}
        task, size = work(settings, run.dataset, run.model), settings["train.batch_size"]
        flops = flops_per_target(run.model, task.sampler.batch(0, size), task.objective)
        order = [type(task.sampler).__name__.lower(), size, settings["train.length"]]
        return {"flops_per_token": flops, "samples": order}


def _brought(values: tuple[Any, ...], taken: bytes | None) -> Training:
    """A training that came from another process."""
    training = Training(*values)
    return training if taken is None else replace(training, data=unpacked(taken))


class Telling:
    """A display that tells each call as an event, for a display elsewhere (see `show`)."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self.tell = tell

    def start(self, start: Start) -> None:
        self.tell(("start", (start,)))

    def update(self, update: Update) -> None:
        self.tell(("update", (update,)))

    def evaluated(self, evaluation: Evaluation) -> None:
        self.tell(("evaluated", (evaluation,)))

    def saved(self, step: int, path: Path) -> None:
        self.tell(("saved", (step, path)))

    def progress(self, progress: Progress) -> None:
        self.tell(("progress", (progress,)))

    def note(self, text: str) -> None:
        self.tell(("note", (text,)))

    def finish(self, result: Result | None) -> None:
        self.tell(("finish", (result,)))


def unless_stopped(interrupt: Interrupt, work: Callable[[], T], at_once: bool = True) -> T:
    """What `work` gives; Stopped after a signal, which ends it in its middle unless it ends itself."""
    found = None
    if interrupt.received is None:
        found = interrupt.at_once(work) if at_once else work()
    if found is None or interrupt.received is not None:
        raise Stopped(f"stopped by {interrupt.received}")
    return found


def held_out(paths: Sequence[Path]) -> float | None:
    """The lowest held-out loss of some trainings so far."""
    return min((point["valid_loss"] for path in paths for point in curve(path)), default=None)


def _ended(error: NumericError) -> dict[str, Any]:
    """Of a short training that did not reach its end: where it was, and its loss, None where that is no number."""
    if not isinstance(error, Behind):
        return {"step": 0, "tokens": 0, "seconds": 0.0, "reason": DIVERGED, "best_step": None, "valid": None}
    at = error.evaluation
    told = {"step": at.step, "tokens": 0, "seconds": error.seconds, "best_step": at.step}
    return told | {"reason": BEHIND, "valid": at.best_loss}
