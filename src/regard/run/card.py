"""What a notebook shows of a run: what it is, what it was trained on, and what it reached."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from regard.charts.notebook import facts_table
from regard.data.records import Records
from regard.errors import RegardError
from regard.training import metrics
from regard.training.run_folder import METRICS

if TYPE_CHECKING:
    from regard.run.trained import TrainedRun

VALID = "valid_"


def measured(run: TrainedRun) -> Records:
    """What the run's training measured, in the order in which it did."""
    return Records(metrics.read(run.path / METRICS))


def short_name(run: TrainedRun) -> str:
    """The model and the task in a few words."""
    model = run.config.get("model", {})
    return " ".join(filter(None, [model.get("name"), model.get("size")]))


def as_html(run: TrainedRun) -> str:
    """A small table."""
    understood = run.config.get("understood", {})
    n_parameters = sum(part.numel() for part in run.model.parameters())
    facts: dict[str, Any] = {
        "task": f"{run.task.name}, {run.task.shape}",
        "model": short_name(run),
        "parameters": n_parameters or "none: fitted at once",
        "data": understood.get("data") or run.config.get("data", {}).get("path", ""),
        "target": understood.get("target", ""),
        "learnt from": f"{understood['train']:,} {understood['unit']}" if understood.get("train") else "",
        "device": str(run.device),
        **held_out(run),
    }
    return facts_table({name: value for name, value in facts.items() if value != ""}, f"Run {run.path}")


def held_out(run: TrainedRun) -> dict[str, Any]:
    """The scores of the last evaluation, where the folder tells them."""
    try:
        rows = [row for row in measured(run) if f"{VALID}loss" in row]
    except RegardError:  # a damaged log is told where it is asked for
        return {}
    last = rows[-1] if rows else {}
    told = {key.removeprefix(VALID): value for key, value in last.items() if key.startswith(VALID)}
    return {f"held-out {name}, last": value for name, value in told.items() if math.isfinite(value)}
