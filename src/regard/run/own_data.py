"""The data of a run met again: what it held out, known by its hash, and other data that is read as its own was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from regard.data.settings import COLUMNS, DataSettings
from regard.data.source import STDIN
from regard.data.tabular import is_held, open_table
from regard.errors import DataError, UsageError

if TYPE_CHECKING:
    from regard.run.trained import TrainedRun
    from regard.tasks.dataset import Dataset


def made_again(run: TrainedRun) -> Dataset[Any]:
    """The dataset of a run, which must be what it was."""
    told = run.config["data"]
    path = told.get("path")
    if path is None:
        raise UsageError(f"{run.path} says nothing of the text it was counted on: name data to evaluate on")
    if path == STDIN:
        raise UsageError(f"{run.path} was trained on standard input, which is gone: name data to evaluate on")
    if is_held(path) or is_held(str(told.get("valid"))):
        raise UsageError(f"{run.path} was trained on data in memory, which is gone: give data to evaluate on")
    dataset = run.task.ready(run.settings, run.seed, run.processor)
    if dataset.hash != told.get("hash"):
        raise DataError(f"{path} is not what {run.path} was trained on: name data to evaluate on")
    return dataset


def other_examples(run: TrainedRun, data: str) -> Sequence[Any]:
    """All examples of other data, which is read by the columns that the run's own was."""
    return run.task.part_of(data, _columns_as_before(run, data), run.seed, run.processor)


def _columns_as_before(run: TrainedRun, data: str) -> DataSettings:
    """The run's settings. Of a table in memory, which may be short, columns are not told anew where they have names
    that training met."""
    settings = run.settings
    if not is_held(data):
        return settings
    names = open_table(data).names
    met = run.config.get("understood", {}).get("columns", {})
    known = {role: name for role, name in met.items() if role in COLUMNS and role in run.task.used and name in names}
    return replace(settings, **{role: name for role, name in known.items() if getattr(settings, role) is None})
