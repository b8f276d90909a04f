"""A run that starts from another: which task and model it has, at which rate it learns, and what it leaves as it is.

Of the data and of the run in the folder both say what they are. A table of reviews and a language model make a
classifier with its encoder; text and a language model make that model, continued.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import UsageError
from regard.run.dataset import LENGTH, ROWS, start_of
from regard.run.settings import LORA, RATE, START, TUNING, Layer, Origin, Settings
from regard.tasks import saved_task, task_named
from regard.tasks.pretrained import read_start
from regard.training.settings import TrainSettings

if TYPE_CHECKING:
    from torch import nn

    from regard.core.config import Config
    from regard.core.data_spec import DataSpec
    from regard.tasks.pretrained import Start

OPTIMISER, VECTORS = "train.optimiser", "train.vectors"
# What is known already is not to be unlearnt by large steps, and the wider the model the smaller they are: 1e-4 at
# MiniLM's width was measured (benchmarks/results/fine-tuning-cpu.md), 2.5e-5 at BERT's is among those of its paper.
# Changes of low rank begin at nothing and take larger steps.
RATE_AT, WIDTH_AT, LOWEST, HIGHEST = 1e-4, 384, 1e-5, 1e-3
OF_LORA = 1e-3


def task_of_start(path: str, kind: str, is_told: bool = False) -> tuple[str, str | None]:
    """The task of data that looks like `kind` where a run starts from another, and the model where that goes on.

    is_told  somebody has named the task.
    """
    from regard.training import run_folder

    where = Path(path).expanduser()
    saved = run_folder.read_config(where)
    own = saved_task(where / run_folder.CONFIG, saved)
    is_same = kind == own.name or (kind == task_named(own.name).same_data_as and not is_told)
    return (own.name, str(saved["model"].get("name"))) if is_same else (kind, None)


def with_tuning(layer: Layer) -> Layer:
    """The layer with what suits learning on, beneath what is given: rate, plainer optimiser, size of batches."""
    start = read_start(str(layer[START].value), task_named(str(layer["data.task"].value)))
    rate = OF_LORA if LORA in layer else tuning_rate(_width(start.found.to_dict()))
    usual = {RATE: Origin(rate, TUNING), OPTIMISER: Origin("adamw", TUNING)}
    if start.max_length is not None and start.max_length < TrainSettings.length:
        usual |= {LENGTH: Origin(start.max_length, TUNING)}
    if start.batch_size is not None:
        usual |= {ROWS: Origin(start.batch_size, TUNING)}
    return usual | layer


def tuning_rate(width: int) -> float:
    """The rate at which a model of some width learns on.

    >>> tuning_rate(64), tuning_rate(128), tuning_rate(384), tuning_rate(768)
    (0.001, 0.0009, 0.0001, 2.5e-05)
    """
    return float(f"{min(HIGHEST, max(LOWEST, RATE_AT * (WIDTH_AT / max(1, width)) ** 2)):.2g}")


def _width(tree: Any) -> int:
    """The widest part of a config that says its width."""
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    own = tree.get("d_model") if isinstance(tree, dict) else 0
    return max([own if isinstance(own, int) else 0, *map(_width, parts)])


def model_config(settings: Settings, spec: DataSpec | int, **changes: Any) -> Config:
    """The model that settings describe, for data that says this of itself."""
    from regard.core.registry import entry
    from regard.mixers.lora import with_lora

    refuse_lora_alone(settings)
    start, rank = start_of(settings), settings.lora
    plain = entry(settings["model.name"]).config(spec, settings["model.size"], **settings.model_changes | changes)
    if start is None:
        return plain
    is_sized = settings.table["model.size"].place != "default"
    config = start.config(plain, [*settings.model_changes, *changes, *(["size"] if is_sized else [])])
    if rank is None:
        return config
    try:
        return with_lora(config, rank)
    except UsageError as error:
        raise UsageError(f"{LORA}: {error}") from None


def refuse_lora_alone(settings: Settings) -> None:
    if settings.lora is not None and settings[START] is None:
        raise UsageError(f"{LORA}: changes what was learnt before; name a run with --from, or leave it out")


def refuse_vectors(settings: Settings) -> None:
    """Refuse vectors of words for embeddings that are those of another run."""
    if settings[VECTORS] is not None and settings[START] is not None:
        raise UsageError(f"{VECTORS}: the embeddings are those of --from {settings[START]}; leave one of them out")


def begin_from(start: Start, model: nn.Module, settings: Settings) -> None:
    """Give a model what was learnt before; where changes of low rank are learnt beside it, it stays as it is."""
    from regard.layers.low_rank import is_of_low_rank

    known = set(start.load(model))
    if settings.lora is None:
        return
    if not any(is_of_low_rank(name) for name, _ in model.named_parameters()):
        raise UsageError(f"{LORA}: {start.name} has no linear maps in its layers to change; leave it out")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in known)
