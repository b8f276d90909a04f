"""The display of a run, drawn into memory."""

from __future__ import annotations

import io
from pathlib import Path

from regard.core.progress import Progress
from regard.run.live import CURVE_POINTS, Live, Patient, sparkline
from regard.training.display import Evaluation, Lines, Result, Start, Update

START = Start(Path("runs/x"), "2m", 1000, "cpu", 0, 0.0)


def update(step: int, loss: float) -> Update:
    return Update(step, step / 100, float(step), 100.0 - step, step * 10, 1234.0, loss, 1.0, 1e-3)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(live: Live) -> str:
    """The panel as text."""
    with live.console.capture() as captured:
        live.console.print(live.picture())
    return captured.get()


def test_the_panel_shows_progress_losses_speed_and_the_sample():
    live = Live(Terminal(), "gpt small")
    live.start(START)
    live.update(update(10, 3.0))
    live.update(update(20, 2.0))
    live.evaluated(Evaluation(20, 2.125, 2.125, True, 500, 0.1, "the cat [bold] sat"))
    live.evaluated(Evaluation(30, 2.5, 2.125, False, 500, 0.1, None))
    text = drawn(live)
    live.finish(None)
    for part in (
        "gpt small",
        "20%",
        "2m",
        "1m 20s left",
        "step 20",
        "2.0000",
        "2.5000",
        "best 2.1250",
        "1.23k tokens/s",
    ):
        assert part in text
    assert "the cat [bold] sat" in text, "a sample is text, never markup, and stays until the next one"


def test_the_curve_stays_short_however_long_the_run():
    live = Live(Terminal(), "x")
    for step in range(5000):
        live.update(update(step, 5000.0 - step))
    assert len(live.curve) < 2 * CURVE_POINTS
    assert live.curve == sorted(live.curve, reverse=True)
    assert len(sparkline(live.curve)) <= CURVE_POINTS


def test_a_sparkline_falls_with_the_loss_and_survives_what_is_not_finite():
    assert sparkline([3.0, 2.0, 1.0]) == "█▅▁"
    assert sparkline([1.0, 1.0]) == "▁▁"
    assert sparkline([float("nan"), 1.0, 2.0]) == "!▁█"


def test_a_closed_pipe_silences_the_display_and_not_the_run():
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    display = Patient(Lines(Closed()))
    display.start(START)
    display.update(update(1, 1.0))
    display.note("still here")
    display.finish(Result(Path("x"), 1, 1, 1.0, 1.0, None, None, None, "budget"))


def test_that_work_is_whole_is_told_once_in_a_pipe():
    stream = io.StringIO()
    lines = Lines(stream)
    for done in (5.0, 10.0, 10.0):
        lines.progress(Progress("evaluating", done, 10.0, "tokens", 1.0))
    assert stream.getvalue().splitlines() == [
        "evaluating   50%  5 tokens/s, 1s left",
        "evaluating  100%  10 tokens/s",
    ]
