"""What a comparison looks like while it runs: one table and one bar in place, or plain lines in a pipe."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

from regard.core.progress import Progress
from regard.run.in_place import Place as InPlace
from regard.run.in_place import on_terminal, redrawn_on
from regard.run.live import Patient, progress_on
from regard.terminal.label import cut, width
from regard.terminal.table import human, span, visible, visible_line
from regard.training.display import Display, Evaluation, Result, Start, Update

COLUMNS = ("model", "stage", "step", "loss", "held out", "speed", "left")
WANTED = ("model", "stage", "left", "held out", "loss", "step", "speed")  # in a narrow terminal the first of these
NUMBERS = ("step", "loss", "speed", "left")
LEAST = {"stage": 11, "left": 6, "held out": 6, "loss": 6, "step": 5}  # what they take once they are known
LONGEST_STAGE = 20
GAP, BAR = 2, 50


@dataclass
class Place:
    """Where one model stands: the first of its trainings that run, and how much of all of them is done.

    before   the part of its budget that lies before what runs.
    parts    what is done of each training from there on, by where it begins. running: what those that run are called.
    """

    label: str
    stage: str = "waiting"
    step: int = 0
    loss: float | None = None
    score: str = ""
    speed: str = ""
    left: float | None = None
    before: float = 0.0
    parts: dict[float, float] = field(default_factory=dict)
    running: dict[float, str] = field(default_factory=dict)

    @property
    def share(self) -> float:
        return min(1.0, self.before + sum(part for first, part in self.parts.items() if first >= self.before))

    @property
    def shown(self) -> str:
        """What it is at."""
        return f"{len(self.running)} trainings" if len(self.running) > 1 else self.stage

    def begin(self, stage: str, first: float) -> None:
        self.stage = stage
        if not self.running:
            self.step, self.loss, self.score, self.left, self.before = 0, None, "", None, first
        self.running[first], self.parts[first] = stage, 0.0

    def end(self, text: str) -> None:
        self.stage, self.left, self.before = text, None, 1.0
        self.parts.clear()
        self.running.clear()


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
    place = redrawn_on(stream)
    return LineBoard(stream) if place is None else LiveBoard(stream, place)


class Lane:
    """The display of one training, which tells the board."""

    def __init__(self, board: Any, place: Place, first: float, last: float) -> None:
        self.board, self.place, self.first, self.last = board, place, first, last

    def start(self, start: Start) -> None:
        self.unit = start.unit
        self._move(start.progress)

    def update(self, update: Update) -> None:
        place = self.place
        if self._is_shown:
            place.step, place.loss, place.left = update.step, update.loss, update.remaining
            place.speed = f"{human(update.tokens_per_second)} {self.unit}/s"
        self._move(update.progress)

    def evaluated(self, evaluation: Evaluation) -> None:
        named = "".join(f", {name} {value:.4g}" for name, value in evaluation.scores.items())
        if self._is_shown:
            self.place.score = f"{evaluation.loss:.4f}{named}"
        self.board.draw()

    def saved(self, step: int, path: Path) -> None: ...
    def progress(self, progress: Progress) -> None:
        if self._is_shown:
            self.place.left = progress.remaining if math.isfinite(progress.remaining) else None
        self._move(progress.share)

    def note(self, text: str) -> None:
        if text.startswith("WARNING"):
            self.board.note(f"{self.place.label}: {text}")

    def finish(self, result: Result | None) -> None:
        if result is not None:
            self._move(1.0)
        self.place.running.pop(self.first, None)

    @property
    def _is_shown(self) -> bool:
        return self.first == min(self.place.running, default=self.first)

    def _move(self, progress: float) -> None:
        self.place.parts[self.first] = progress * (self.last - self.first)
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
        place.begin(stage, first)
        self.told(place)
        return Patient(Lane(self, place, first, last))

    def ended(self, label: str, text: str) -> None:
        place = self.places[label]
        place.end(text)
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

    def __init__(self, stream: TextIO, place: InPlace | None = None) -> None:
        super().__init__()
        self.stream = stream
        self.console, self.live = place or on_terminal(stream)

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

        cells = {place.label: _cells(place) for place in self.places.values()}
        shown = _shown(list(cells.values()), self.console.width)
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        for name in shown:
            least = max(width(one[name]) for one in cells.values()) if name == "model" and cells else None
            side = "right" if name in NUMBERS else "left"
            table.add_column(name, justify=side, no_wrap=True, min_width=least)
        room = self.console.width - sum(_wide(name, list(cells.values())) + GAP for name in shown if name != "stage")
        for place in self.places.values():
            cells[place.label]["stage"] = cut(cells[place.label]["stage"], max(1, room))
            style = "dim" if place.stage == "waiting" else "bold" if 0 < place.share < 1 else ""
            table.add_row(*(Text(cells[place.label][name]) for name in shown), style=style)
        told = f"{self.done:4.0%} of the comparison"
        bar = Table.grid(expand=False, padding=(0, 1))
        long = max(1, min(BAR, self.console.width - len(told) - GAP))
        bar.add_row(ProgressBar(total=1.0, completed=self.done, width=long), told)
        return Group(table, bar)

    def note(self, text: str) -> None:
        self.console.print(visible(text), style="yellow", markup=False)

    def finish(self) -> None:
        self.live.stop()


def _cells(place: Place) -> dict[str, str]:
    """What the table says of a model."""
    told = {
        "model": place.label,
        "stage": place.shown,
        "step": f"{place.step:,}" if place.step else "",
        "loss": "" if place.loss is None else f"{place.loss:.4f}",
        "held out": place.score,
        "speed": place.speed,
        "left": "" if place.left is None else span(place.left),
    }
    return {name: visible_line(text) for name, text in told.items()}


def _shown(rows: list[dict[str, str]], most: int) -> list[str]:
    """The columns for which a terminal has room: model and stage always, then those that say most."""
    kept: list[str] = list(WANTED[:2])
    taken = sum(_wide(name, rows) + GAP for name in kept)
    for name in WANTED[2:]:
        taken += _wide(name, rows) + GAP
        if taken - GAP > most:
            break
        kept.append(name)
    return [name for name in COLUMNS if name in kept]


def _wide(name: str, rows: list[dict[str, str]]) -> int:
    """Columns that a column takes; a stage that is a reason is cut."""
    most = max((width(row[name]) for row in rows), default=0)
    return max(len(name), min(most, LONGEST_STAGE) if name == "stage" else most, LEAST.get(name, 0))
