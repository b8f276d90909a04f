"""Display: what a run tells while it goes on. The loop calls these methods and knows nothing of screens.

`Silent` says nothing, `Lines` prints plain lines for logs and pipes. A live screen belongs to the command line.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

from regard.core.progress import Progress
from regard.terminal.label import wrapped
from regard.terminal.table import human, span, visible

SAMPLE_LINES, SAMPLE_WIDTH = 4, 100  # of a sample in plain lines


@dataclass(frozen=True)
class Start:
    """A run as it begins or goes on.

    step    above 0 after a resume.
    unit    what its speed counts.
    choice  how its steps are made, in a few words.
    """

    folder: Path
    budget: str
    parameters: int
    device: str
    step: int
    progress: float
    unit: str = "tokens"
    choice: str = ""


@dataclass(frozen=True)
class Update:
    """Where a run stands, told at most a few times a second. Means are over the steps since the last update.

    progress        part of the budget spent, 0 to 1
    seconds         time spent in training, over all resumes
    remaining       seconds left at the present pace, the last evaluation among them
    """

    step: int
    progress: float
    seconds: float
    remaining: float
    tokens: int
    tokens_per_second: float
    loss: float
    gradient_norm: float
    rate: float


@dataclass(frozen=True)
class Evaluation:
    """The loss on held-out data, nats a token, what the model writes now, and the task's own score by name.

    best_loss, best_score: of the weights that are kept.
    """

    step: int
    loss: float
    best_loss: float
    is_best: bool
    tokens: int
    seconds: float
    sample: str | None
    scores: Mapping[str, float] = field(default_factory=dict)
    best_score: float | None = None

    @property
    def standing(self) -> str:
        """How it compares with the best before it, by what chooses the weights: the task's score where there is one."""
        if not self.scores or self.best_score is None:
            return "best so far" if self.is_best else f"best {self.best_loss:.4f}"
        name = next(iter(self.scores))
        return f"best {name} so far" if self.is_best else f"best {name} {self.best_score:.4g}"


@dataclass(frozen=True)
class Result:
    """What a run came to. Losses are nats a token; `valid_loss` is None without held-out data.

    reason: "budget" when it was spent, "patience" when held-out loss no longer improved, "fitted" of a model
    that is fitted at once.
    choice: how steps were made, and what of it failed; None where there were no steps.
    padding: the part of the batches that was padding.
    """

    folder: Path
    step: int
    tokens: int
    seconds: float
    train_loss: float | None
    valid_loss: float | None
    best_loss: float | None
    best_step: int | None
    reason: str
    best_score: float | None = None
    choice: Mapping[str, Any] | None = None
    padding: float | None = None


class Display(Protocol):
    """What a screen must offer. `note` is for warnings and other single lines; `saved` follows a verified save."""

    def start(self, start: Start) -> None: ...
    def update(self, update: Update) -> None: ...
    def evaluated(self, evaluation: Evaluation) -> None: ...
    def saved(self, step: int, path: Path) -> None: ...
    def progress(self, progress: Progress) -> None:
        """How far work without steps is, such as reading or counting; it may come before the start."""
        ...

    def note(self, text: str) -> None: ...
    def finish(self, result: Result | None) -> None:
        """Called once at the end, also after a failure, when there is no result: leave the terminal as it was."""
        ...


class Silent:
    """Says nothing."""

    def start(self, start: Start) -> None: ...
    def update(self, update: Update) -> None: ...
    def evaluated(self, evaluation: Evaluation) -> None: ...
    def saved(self, step: int, path: Path) -> None: ...
    def progress(self, progress: Progress) -> None: ...
    def note(self, text: str) -> None: ...
    def finish(self, result: Result | None) -> None: ...


class Passing:
    """Passes all on to another display: for one that watches or changes a part of it."""

    def __init__(self, inner: Display) -> None:
        self.inner = inner

    def start(self, start: Start) -> None:
        self.inner.start(start)

    def update(self, update: Update) -> None:
        self.inner.update(update)

    def evaluated(self, evaluation: Evaluation) -> None:
        self.inner.evaluated(evaluation)

    def saved(self, step: int, path: Path) -> None:
        self.inner.saved(step, path)

    def progress(self, progress: Progress) -> None:
        self.inner.progress(progress)

    def note(self, text: str) -> None:
        self.inner.note(text)

    def finish(self, result: Result | None) -> None:
        self.inner.finish(result)


def _told_in(sample: str, most: int) -> list[str]:
    """The first lines of what a model writes now, none of them long."""
    return [part for line in sample.splitlines() if line.strip() for part in wrapped(line, SAMPLE_WIDTH)][:most]


class Lines:
    """Plain lines: one every few seconds, one an evaluation, one a save."""

    def __init__(self, stream: TextIO | None = None, every: float = 5.0) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.every = every
        self.next_update = time.monotonic()
        self.part, self.share = "", 0.0
        self.unit = "tokens"

    def start(self, start: Start) -> None:
        self.unit = start.unit
        if not start.parameters:
            self._print(f"{start.folder} starts: {start.budget} over the training part")
            return
        verb = f"continues at step {start.step}" if start.step else "starts"
        way = f"{start.device} in {start.choice}" if start.choice else start.device
        self._print(f"{start.folder} {verb}: {start.parameters:,} parameters, budget {start.budget}, {way}")

    def update(self, update: Update) -> None:
        if time.monotonic() >= self.next_update:
            self.next_update = time.monotonic() + self.every
            self._print(
                f"step {update.step}  {update.progress:4.0%}  loss {update.loss:.4f}  rate {update.rate:.2e}  "
                f"{update.tokens_per_second:,.0f} {self.unit}/s  {update.remaining:.0f} s left"
            )

    def evaluated(self, evaluation: Evaluation) -> None:
        scores = "".join(f", {name} {value:.4g}" for name, value in evaluation.scores.items())
        self._print(f"step {evaluation.step}  held-out loss {evaluation.loss:.4f}{scores}, {evaluation.standing}")
        for line in _told_in(evaluation.sample or "", SAMPLE_LINES):
            self._print(f"  | {line}")

    def saved(self, step: int, path: Path) -> None:
        self._print(f"step {step}  saved {path}")

    def progress(self, progress: Progress) -> None:
        is_new = progress.part != self.part or progress.share < self.share
        is_due = time.monotonic() >= self.next_update or progress.share == 1.0
        is_told = progress.share == self.share == 1.0  # that it is whole
        self.part, self.share = progress.part, progress.share
        if is_new or (is_due and not is_told):
            self.next_update = time.monotonic() + self.every
            self._print(told(progress))

    def note(self, text: str) -> None:
        self._print(text)

    def finish(self, result: Result | None) -> None:
        if result is not None:
            held_out = "" if result.best_loss is None else f", held-out loss {result.best_loss:.4f}"
            steps = "fitted" if result.reason == "fitted" else f"{result.step} steps"
            self._print(f"{result.folder}: {steps}, {result.seconds:.1f} s{held_out}")

    def _print(self, text: str) -> None:
        print(visible(text), file=self.stream, flush=True)


def told(progress: Progress) -> str:
    """Progress in a line, such as "reading  42%  11.3M bytes/s, 1:02 left"."""
    left = f", {span(progress.remaining)} left" if 0 < progress.remaining < math.inf else ""
    share = f"  {progress.share:4.0%}" if progress.total else f"  {human(progress.done)} {progress.unit}"
    return f"{progress.part}{share}  {human(progress.rate)} {progress.unit}/s{left}"
