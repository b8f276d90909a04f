"""What a comparison looks like while it runs: one table and one bar on a terminal, plain lines in a pipe."""

from __future__ import annotations

import math
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

from regard.core.progress import Progress
from regard.run.live import Patient, progress_on
from regard.terminal.table import human, span, visible, visible_line
from regard.training.display import Display, Evaluation, Result, Start, Update


@dataclass
class Place:
    """Where one model stands."""

    label: str
    stage: str = "waiting"
    step: int = 0
    loss: float | None = None
    score: str = ""
    speed: str = ""
    left: float | None = None
    share: float = 0.0


class Board(Protocol):
    """What the race tells. `done` is the share of the whole comparison that is behind it."""

    def preparing(self) -> AbstractContextManager[None]:
        """A context in which it is shown how far the reading of the data is."""
        ...

    def begin(self, labels: list[str]) -> None: ...
    def stage(self, label: str, stage: str, first: float, last: float) -> Display:
        """A training begins that takes the model from `first` to `last` of its budget: the display for it."""
        ...

    def ended(self, label: str, text: str) -> None: ...
    def note(self, text: str) -> None: ...
    def finish(self) -> None: ...


def board_for(stream: TextIO, *, quiet: bool) -> Board:
    """The board that suits a stream."""
    if quiet:
        return LineBoard(None)
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        return LiveBoard(stream)
    return LineBoard(stream)


class Lane:
    """The display of one training, which tells the board."""

    def __init__(self, board: Any, place: Place, first: float, last: float) -> None:
        self.board, self.place, self.first, self.last = board, place, first, last

    def start(self, start: Start) -> None:
        self.unit = start.unit
        self._move(start.progress)

    def update(self, update: Update) -> None:
        place = self.place
        place.step, place.loss, place.left = update.step, update.loss, update.remaining
        place.speed = f"{human(update.tokens_per_second)} {self.unit}/s"
        self._move(update.progress)

    def evaluated(self, evaluation: Evaluation) -> None:
        named = "".join(f", {name} {value:.4g}" for name, value in evaluation.scores.items())
        self.place.score = f"{evaluation.loss:.4f}{named}"
        self.board.draw()

    def saved(self, step: int, path: Path) -> None: ...
    def progress(self, progress: Progress) -> None:
        self.place.left = progress.remaining if math.isfinite(progress.remaining) else None
        self._move(progress.share)

    def note(self, text: str) -> None:
        if text.startswith("WARNING"):
            self.board.note(f"{self.place.label}: {text}")

    def finish(self, result: Result | None) -> None:
        if result is not None:
            self._move(1.0)

    def _move(self, progress: float) -> None:
        self.place.share = self.first + progress * (self.last - self.first)
        self.board.draw()


@dataclass
class _Places:
    """The rows of a board."""

    places: dict[str, Place] = field(default_factory=dict)

    def preparing(self) -> AbstractContextManager[None]:
        return nullcontext() if self.people is None else progress_on(self.people, "reading the data")

    @property
    def people(self) -> TextIO | None:
        """Where a person looks."""
        return None

    def begin(self, labels: list[str]) -> None:
        self.places = {label: Place(label) for label in labels}

    def stage(self, label: str, stage: str, first: float, last: float) -> Display:
        place = self.places[label]
        place.stage, place.step, place.loss, place.score, place.left = stage, 0, None, "", None
        self.told(place)
        return Patient(Lane(self, place, first, last))

    def ended(self, label: str, text: str) -> None:
        place = self.places[label]
        place.stage, place.share, place.left = text, 1.0, None
        self.told(place)

    @property
    def done(self) -> float:
        return sum(place.share for place in self.places.values()) / max(1, len(self.places))

    def told(self, place: Place) -> None:
        """A model has a new stage."""

    def draw(self) -> None:
        """A number has changed."""

    def note(self, text: str) -> None: ...
    def finish(self) -> None: ...


class LineBoard(_Places):
    """A line at every stage; nothing without a stream."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self.stream = stream

    @property
    def people(self) -> TextIO | None:
        return self.stream

    def told(self, place: Place) -> None:
        self.note(f"{self.done:4.0%}  {place.label}: {place.stage}")

    def note(self, text: str) -> None:
        if self.stream is not None:
            try:
                print(visible(text), file=self.stream, flush=True)
            except OSError:
                self.stream = None


class LiveBoard(_Places):
    """A table that is redrawn in place, and one bar for the whole."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__()
        self.stream = stream
        self.console = Console(file=stream, highlight=False)
        self.live = Live(console=self.console, auto_refresh=False, transient=True)

    @property
    def people(self) -> TextIO | None:
        return self.stream

    def begin(self, labels: list[str]) -> None:
        super().begin(labels)
        self.live.start()
        self.draw()

    def told(self, place: Place) -> None:
        self.draw()

    def draw(self) -> None:
        self.live.update(self.picture(), refresh=True)

    def picture(self) -> Any:
        """The table and the bar."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for name, justify in (("model", "left"), ("stage", "left"), ("step", "right"), ("loss", "right")):
            table.add_column(name, justify=justify, no_wrap=True)  # pyright: ignore[reportArgumentType]
        table.add_column("held out", no_wrap=True)
        table.add_column("speed", justify="right", no_wrap=True)
        table.add_column("left", justify="right", no_wrap=True)
        for place in self.places.values():
            style = "dim" if place.stage == "waiting" else "bold" if 0 < place.share < 1 else ""
            loss = "" if place.loss is None else f"{place.loss:.4f}"
            left = "" if place.left is None else span(place.left)
            step = f"{place.step:,}" if place.step else ""
            cells = (place.label, place.stage, step, loss, place.score, place.speed, left)
            table.add_row(*(Text(visible_line(cell)) for cell in cells), style=style)
        bar = Table.grid(expand=False, padding=(0, 1))
        bar.add_row(ProgressBar(total=1.0, completed=self.done, width=50), f"{self.done:4.0%} of the comparison")
        return Group(table, bar)

    def note(self, text: str) -> None:
        self.console.print(visible(text), style="yellow", markup=False)

    def finish(self) -> None:
        self.live.stop()
