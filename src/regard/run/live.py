"""What a training run looks like: redrawn in place on a terminal and in a notebook, plain lines in a pipe.

A screen that is gone, such as a closed pipe, never ends a run: the display falls silent and training goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from regard.core.progress import Progress, watching
from regard.run.in_place import Place, on_terminal, redrawn_on
from regard.terminal.table import human, span, visible, visible_line
from regard.training.display import SAMPLE_LINES, Display, Evaluation, Lines, Result, Silent, Start, Update, told

if TYPE_CHECKING:
    from rich.console import RenderableType

BARS = "▁▂▃▄▅▆▇█"
CURVE_POINTS = 60
PANEL_WIDTH = 104


def display_for(stream: TextIO, title: str, *, quiet: bool = False) -> Display:
    """The display that suits a stream: in place on a terminal and in a notebook, lines in a pipe, none when quiet."""
    if quiet:
        return Silent()
    place = redrawn_on(stream)
    return Patient(Lines(stream) if place is None else Live(stream, title, place))


@contextmanager
def working(display: Display) -> Iterator[None]:
    """Within the context the display shows how far long work is, and leaves the terminal as it was when it fails."""
    try:
        with watching(display.progress):
            yield
    except BaseException:
        display.finish(None)
        raise


@contextmanager
def progress_on(stream: TextIO, title: str, *, quiet: bool = False) -> Iterator[None]:
    """The same for a command that shows nothing else meanwhile."""
    display = display_for(stream, title, quiet=quiet)
    with working(display):
        yield
    display.finish(None)


class Patient:
    """A display whose stream may go away."""

    def __init__(self, inner: Display) -> None:
        self.inner = inner

    def start(self, start: Start) -> None:
        self._try(self.inner.start, start)

    def update(self, update: Update) -> None:
        self._try(self.inner.update, update)

    def evaluated(self, evaluation: Evaluation) -> None:
        self._try(self.inner.evaluated, evaluation)

    def saved(self, step: int, path: Path) -> None:
        self._try(self.inner.saved, step, path)

    def progress(self, progress: Progress) -> None:
        self._try(self.inner.progress, progress)

    def note(self, text: str) -> None:
        self._try(self.inner.note, text)

    def finish(self, result: Result | None) -> None:
        self._try(self.inner.finish, result)

    def _try(self, method: Callable[..., None], *arguments: Any) -> None:
        try:
            method(*arguments)
        except OSError:
            self.inner = Silent()


class Live:
    """A bar against the budget, the losses and their curve, speed, time left, and the last sample."""

    def __init__(self, stream: TextIO, title: str, place: Place | None = None) -> None:
        self.title = title
        self.console, self.live = place or on_terminal(stream)
        self.start_facts: Start | None = None
        self.last: Update | None = None
        self.held_out: Evaluation | None = None
        self.sample: str | None = None
        self.saved_step = 0
        self.curve: list[float] = []
        self.per_point, self.waiting = 1, list[float]()
        self.working: Progress | None = None

    def start(self, start: Start) -> None:
        self.start_facts, self.working = start, None
        if start.choice:
            self.note(f"on {start.device} in {start.choice}")
        self.live.start()
        self._draw()

    def update(self, update: Update) -> None:
        self.last, self.working = update, None
        self._add(update.loss)
        self._draw()

    def evaluated(self, evaluation: Evaluation) -> None:
        self.held_out = evaluation
        self.sample = evaluation.sample or self.sample
        self._draw()

    def saved(self, step: int, path: Path) -> None:
        self.saved_step = step
        self._draw()

    def progress(self, progress: Progress) -> None:
        if not self.live.is_started:
            self.live.start()
        self.working = progress
        self._draw()

    def note(self, text: str) -> None:
        self.console.print(visible(text), style="yellow" if text.startswith("WARNING") else "dim", markup=False)

    def finish(self, result: Result | None) -> None:
        self.live.stop()

    def _add(self, loss: float) -> None:
        """Keep the curve short: when it is full, neighbours are averaged and later points stand for twice as many."""
        self.waiting.append(loss)
        if len(self.waiting) == self.per_point:
            self.curve.append(sum(self.waiting) / len(self.waiting))
            self.waiting = []
        if len(self.curve) == 2 * CURVE_POINTS:
            self.curve = [(a + b) / 2 for a, b in zip(self.curve[::2], self.curve[1::2], strict=True)]
            self.per_point *= 2

    def _draw(self) -> None:
        self.live.update(self.picture(), refresh=True)

    def picture(self) -> RenderableType:
        """The whole panel."""
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        parts: list[RenderableType] = [self._bar(), Text(self._numbers())]
        if len(self.curve) > 1:
            parts.append(Text(f"loss  {self.curve[0]:.2f} {sparkline(self.curve)} {self.curve[-1]:.2f}", style="cyan"))
        if self.sample:
            lines = [line for line in visible(self.sample).split("\n") if line.strip()][:SAMPLE_LINES]
            parts += [Text(), Text("\n".join(lines)[:600], style="dim italic")]
        # The echo of a Ctrl-C must find room beside the panel: on a new line it would shift what is redrawn.
        width = min(PANEL_WIDTH, self.console.width - len("^C^C"))
        title = Text(visible_line(self.title))
        return Panel(Group(*parts), title=title, title_align="left", border_style="dim", padding=(0, 1), width=width)

    def _bar(self) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        row = Table.grid(expand=True, padding=(0, 1))
        row.add_column(ratio=1)
        row.add_column(justify="right")
        if self.working is not None:
            row.add_row(ProgressBar(total=1.0, completed=self.working.share), told(self.working))
            return row
        spent = self.last.progress if self.last else self.start_facts.progress if self.start_facts else 0.0
        is_timed = self.last is not None and math.isfinite(self.last.remaining)
        left = f"{span(self.last.remaining)} left" if self.last and is_timed else "starting"
        budget = self.start_facts.budget if self.start_facts else ""
        row.add_row(ProgressBar(total=1.0, completed=spent), f"{spent:4.0%} of {budget}, {left}")
        return row

    def _numbers(self) -> str:
        words = []
        if self.last:
            words += [f"step {self.last.step:,}", f"loss {self.last.loss:.4f}"]
        if self.held_out:
            scores = "".join(f", {name} {value:.4g}" for name, value in self.held_out.scores.items())
            words.append(f"held-out {self.held_out.loss:.4f}{scores} ({self.held_out.standing})")
        if self.last:
            unit = self.start_facts.unit if self.start_facts else "tokens"
            words.append(f"{human(self.last.tokens_per_second)} {unit}/s")
        if self.saved_step:
            words.append(f"saved at {self.saved_step:,}")
        return "   ".join(words)


def sparkline(values: list[float]) -> str:
    """The values as one line of bars, the lowest the shortest; at most 60, neighbours averaged.

    >>> sparkline([3.0, 2.0, 1.0])
    '█▅▁'
    """
    group = math.ceil(len(values) / CURVE_POINTS)
    means = [sum(part) / len(part) for i in range(0, len(values), group) if (part := values[i : i + group])]
    finite = [value for value in means if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] if math.isfinite(value) else "!" for value in means)
