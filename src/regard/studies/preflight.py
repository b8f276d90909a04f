"""Before anything is trained: is the budget enough for one step of every model?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch

from regard.core.facts import Facts
from regard.data import settings as data_settings
from regard.errors import UsageError
from regard.recipe import Settings
from regard.studies.entrant import Size, count
from regard.studies.protocol import Protocol
from regard.tasks import TASKS
from regard.tasks import task as task_of
from regard.training import budget
from regard.training.flops import flops_per_target
from regard.training.settings import from_dict
from regard.training.task import Task, language_task

ENOUGH_SECONDS = 3.0  # a training of more than that has room for a step of anything that fits these machines


def refuse_too_small(
    protocol: Protocol, settings: Mapping[str, Settings], found: Mapping[str, Size], data: Any, facts: Facts | int
) -> None:
    """Refuse a budget whose smallest training has no room for one step of some model, naming the smallest that has."""
    whole = budget.parse(protocol.budget)
    smallest = budget.parse(protocol.trial_budget if protocol.factors else protocol.main_budget)
    if smallest.kind == "steps" or (smallest.kind == "seconds" and smallest.amount >= ENOUGH_SECONDS):
        return
    for label, one in settings.items():
        if found[label].counts:
            continue
        need = _one_step(one, found[label], smallest.kind, protocol.task, data, facts)
        if need > smallest.amount:
            unit = {"seconds": "s", "tokens": "tokens", "flops": "flops"}[smallest.kind]
            least = need * whole.amount / smallest.amount
            raise UsageError(
                f"--budget {protocol.budget}: one step of {label} takes {need:.3g}{unit} and its shortest training "
                f"gets {smallest.amount:.3g}{unit}; the smallest budget that works is {least:.3g}{unit}"
            )


def _one_step(settings: Settings, size: Size, kind: str, task: str, data: Any, facts: Facts | int) -> float:
    """What one training step takes, in the unit of the budget."""
    width = {} if size.width is None else {"d_model": size.width}
    model = count(settings, facts, **width)[1].build()
    work = _work(settings, task, data, model)
    batch = work.sampler.batch(0, settings["train.batch_size"])
    if kind == "tokens":
        return float(batch.n_counted)
    if kind == "flops":
        return flops_per_target(model, batch, work.objective) * batch.n_counted
    took = []
    for _ in range(2):
        began = time.monotonic()
        loss, _, _ = work.objective(model, batch, None)
        loss.backward()
        took.append(time.monotonic() - began)
    torch.manual_seed(0)
    return min(took)


def _work(settings: Settings, task: str, data: Any, model: Any) -> Task:
    training = from_dict(settings.section("train"))
    if task not in TASKS:
        return language_task(data, model, training)
    kind = task_of(task).with_settings(training)
    return kind.training(data, model, training, data_settings.from_dict(settings.section("data")))
