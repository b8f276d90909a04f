"""A trained run's chances brought nearer to the truth, where its task has chances, and kept in its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.tasks.verbs import Calibrates
from regard.training.run_folder import CALIBRATION, claim

if TYPE_CHECKING:
    from regard.run.run import Run


def calibrate(run: Run, wanted: bool) -> None:
    """Find a temperature on what was held out, keep it and answer by it; nothing of a task without chances."""
    if not (wanted and isinstance(run.task, Calibrates)):
        return
    found = run.task.calibration(run.before_refit())
    with claim(run.path) as folder:
        folder.publish({CALIBRATION: [found.to_file()]})
    run.task.calibrate(run, found)
