"""`regard evaluate RUN --every 28d`: block after block, each by the model after it has learnt all that came before.

A model that is fitted at once is fitted anew for every block. One that learns by steps goes on from where the block
before left it, for a tenth of its run's budget at a third of its rate: long enough for what is new, too short to
forget; what it has that is solved for before the first step is solved for anew. The parts of an ensemble go on each for
itself. Nothing of it is kept, and the run stays as it is.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from regard.core.config import from_dict
from regard.core.fitted import Begins, FitSettings, Nobody
from regard.core.progress import stage
from regard.errors import Stopped, UsageError
from regard.storage import tensors
from regard.tasks.dataset import ExampleDataset
from regard.tasks.verbs import Fits, Report, Rolls, able
from regard.training import loop
from regard.training.budget import share
from regard.training.run_folder import verified_weights
from regard.training.settings import TrainSettings
from regard.training.settings import from_dict as settings_from_dict

if TYPE_CHECKING:
    from regard.run.run import Run

USUAL = {"part": "valid"}  # what an evaluation is asked for where nothing is said
SHARE, RATE = 0.1, 1 / 3  # of the run's budget and rate, for each block


def evaluate_rolling(run: Run, data: str | None, every: str, limit: int | None, others: Mapping[str, Any]) -> Report:
    """The scores over all blocks of the run's held-out part, or of `data`. others: what else was said of it."""
    unused = [name for name, value in others.items() if value != USUAL.get(name)]
    if unused:
        raise UsageError(f"every: {', '.join(unused)} means nothing beside it; leave one of them out")
    task = run.able(Rolls)
    blocks, model, told = task.blocks(run, data, every), copy.deepcopy(run.model), list[Any]()
    examples = [one for block in blocks for one in block.examples][:limit]
    with stage("rolling", len(examples), "horizons") as advance:
        for block in blocks:
            asked = block.examples[: len(examples) - len(told)]
            if not asked:
                break
            model = _learnt(run, model, block.dataset)
            told += list(task.told(model, run.processor, asked))
            advance(len(asked))
    return task.judged(model, run.processor, examples, told, blocks)


def _learnt(run: Run, model: nn.Module, dataset: ExampleDataset[Any]) -> nn.Module:
    """The model after all of a block's training data."""
    training = settings_from_dict(run.config["train"])
    if run.fitted:
        fresh = from_dict(run.config["model"]["config"], "model.config").build()
        problem = able(run.task, Fits, run.path).fitting(dataset, fresh, training, run.settings)
        fresh.fit(problem.data, FitSettings(training.seed, training.memory_bytes), Nobody())
        return fresh.to(run.device).eval()
    whole: Any = model
    parts: list[nn.Module] = [model] if training.ensemble == 1 else list(whole.parts)
    for number, part in enumerate(parts):
        _gone_on(run, part, dataset, _further(training, number))
    return model.eval()


def _further(training: TrainSettings, number: int) -> TrainSettings:
    """The settings with which one part goes on."""
    return replace(
        training,
        budget=share(training.budget, SHARE / training.ensemble),
        lr=training.rate * RATE,
        seed=training.seed + number,
        ensemble=1,
        sample_every=0,
        keep=1,
        start=None,
        compile=False,
        graphs=False,
    )


def _gone_on(run: Run, model: nn.Module, dataset: ExampleDataset[Any], training: TrainSettings) -> None:
    """Train a model further, without choosing among its weights: the block is not to be looked at."""
    if isinstance(model, Begins):
        fitting = able(run.task, Fits, run.path).fitting(dataset, model, training, run.settings)
        model.begin(fitting.data, FitSettings(training.seed, training.memory_bytes), Nobody())
    problem = replace(run.task.training(dataset, model, training, run.settings), held_out=None, metric=None)
    with tempfile.TemporaryDirectory() as folder:
        try:
            loop.train(model, problem, replace(training, device=str(run.device)), Path(folder) / "run")
        except Stopped:
            raise Stopped(
                f"stopped while a block was learnt; nothing was written, and {run.path} is as it was"
            ) from None
        tensors.load_weights(model, verified_weights(Path(folder) / "run"))
