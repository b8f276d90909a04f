"""How the input that a person gives becomes a reading: the task of the run says it, and the model's room is minded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from regard.errors import UsageError
from regard.tasks.reading import Reading


def read(run: Any, given: Any, target: str | None = None) -> Reading:
    """The reading of one input, as the run's task takes it.

    target  what a run of two texts is taken to write, instead of what it would write.
    """
    given = run.task.given(given)
    if target is not None and not run.task.writes:
        raise UsageError(f"a run of the task {run.task.name} writes nothing from a source: leave the target out")
    with torch.no_grad():
        reading = replace(run.task.reading(run, given, target), owner=run, can=run.task.can)
    _refuse_long(run, reading)
    return reading


def length_of(run: Any, given: Any) -> int | None:
    """How many tokens a typed input has, found without running the model; None where what is typed is no text."""
    ids = run.task.ids(run.processor, given) if isinstance(given, str) else None
    return None if ids is None else len(ids)


def target_length(run: Any, target: str) -> int | None:
    """The same of a text that is taken to be written from a source."""
    ids = run.task.target_ids(run.processor, target)
    return None if ids is None else len(ids)


def positions_of(run: Any) -> int | None:
    """How many tokens of a typed input the model has positions for; None: as many as there are."""
    if run.task.writes:
        return run.model.max_source_length
    encoder = getattr(run.model, "encoder", None)
    return getattr(run.model if encoder is None else encoder, "max_length", None)


def _refuse_long(run: Any, reading: Reading) -> None:
    limits = {reading.main.name: getattr(run.model, "max_length", None)}
    if len(reading.sides) == 2 and reading.sides[0].name == "source":
        limits["source"] = run.model.max_source_length
    for name, limit in limits.items():
        if limit is not None and name != "horizon" and len(reading.side(name)) > limit:
            raise UsageError(
                f"the {name} has {len(reading.side(name))} tokens and the model has positions for {limit}: give less"
            )
