"""The learning curve of a run: the loss of training and of what was held out, by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.charts.chart import Series, line_drawing
from regard.charts.plot import Axis
from regard.errors import UsageError
from regard.run.picture import Picture
from regard.training.metrics import thinned

if TYPE_CHECKING:
    from regard.data.records import Records

LOSS, VALID = "loss", "valid_"
STEP = "step"


def learning_curve(metrics: Records, name: str, score: str | None = None) -> Picture:
    """A picture of what a training measured.

    metrics  of `run.metrics`. name: of the run, for the title.
    score    a held-out score such as "accuracy" instead of the losses.
    """
    wanted = {"training": LOSS, "held out": f"{VALID}{LOSS}"} if score is None else {"held out": f"{VALID}{score}"}
    lines = []
    for label, key in wanted.items():
        points = [(float(row[STEP]), float(row[key])) for row in metrics if key in row]
        lines += [Series(label, thinned(points))] if points else []
    if not any(len(one.points) > 1 for one in lines):
        scores = sorted({key.removeprefix(VALID) for row in metrics for key in row if key.startswith(VALID)})
        known = f"; it measured {', '.join(scores)}" if score is not None and scores else ""
        raise UsageError(f"{name}: there is no curve to draw, for nothing was measured at two steps{known}")
    return Picture(line_drawing(f"{name}: {score or LOSS}", lines, Axis(STEP), Axis(score or LOSS)))
