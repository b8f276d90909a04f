"""What a run folder and an architecture say of themselves, without loading weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.errors import UsageError, blamed_on, nearest
from regard.run.index import TaskFacts, model_facts, task_facts
from regard.tasks import saved_name, shape_of


def run_summary(path: Path) -> dict[str, Any]:
    """The run in a folder: its settings, what it reached, what it holds."""
    from regard.storage import manifest
    from regard.training import metrics, run_folder

    config = run_folder.read_config(path)
    with blamed_on(f"{path / run_folder.CONFIG}: data.task"):
        task = task_facts(saved_name(config))
    last, held_out = None, []
    for record in metrics.read(path / run_folder.METRICS):
        last = record if record.keys() >= {"loss", "tokens", "seconds"} else last
        if "valid_loss" in record:
            held_out.append(record)
    return {
        "run": str(path),
        "config": config,
        "ended": manifest.read(path).facts.get("reason"),
        "last": last,
        "task": task.name,
        "best": _best(held_out, task) if held_out else None,
        "tokenizer": _tokenizer(path),
        "checkpoints": run_folder.checkpoint_steps(path),
        **(config.get("sizes") or _sizes(config, path)),
    }


def _best(held_out: list[dict[str, Any]], task: TaskFacts) -> dict[str, Any]:
    """The evaluation whose weights were kept: by the task's own score where it was taken, of equal ones by the loss."""
    # That of the task, or the one that its data asked for, such as F1 of spans.
    taken = {name for record in held_out for name in record if name.startswith("valid_")} - {"valid_loss"}
    score = min(taken, default=f"valid_{task.metric}")
    scored = [record for record in held_out if score in record]
    sign = 1 if task.lower_is_better else -1
    rank = {id(one): (sign * one[score], one["valid_loss"]) for one in scored}
    by_loss = min(held_out, key=lambda record: record["valid_loss"])
    return min(scored, key=lambda record: rank[id(record)]) if scored else by_loss


def _tokenizer(path: Path) -> dict[str, Any] | None:
    """Kind and size of the tokenizer, where the run has one."""
    from regard.data.tokenizer import load as load_tokenizer
    from regard.training import run_folder

    if not run_folder.has(path, run_folder.TOKENIZER):
        return None
    tokenizer = load_tokenizer(run_folder.verified(path, run_folder.TOKENIZER))
    return {"kind": tokenizer.kind, "vocab_size": tokenizer.vocab_size}


def _sizes(config: dict[str, Any], path: Path) -> dict[str, Any]:
    """Of a run from before they were kept: counted."""
    from regard.training.estimate import sizes
    from regard.training.saved_model import saved_model

    return sizes(saved_model(path, config).shapes, config["train"]["length"])


def model_summary(name: str) -> dict[str, Any]:
    """An architecture: its settings with their defaults, and what each size changes."""
    from regard.core.registry import names

    known = model_facts(name)
    if known is None and name not in names():
        raise UsageError(f"{name}: no such run folder and no such model{nearest(name, names())}")
    return known or described_model(name)


def described_model(name: str) -> dict[str, Any]:
    """The same, asked of the architecture itself."""
    from regard.core.registry import entry
    from regard.run.catalogue import parameters_by_size, vocabularies_by_size
    from regard.run.rate import rates_by_size

    known = entry(name)
    return {
        "model": known.name,
        "task": known.task,
        "shape": shape_of(known.task),
        "summary": known.summary,
        "paper": known.paper,
        "settings": known.parameters_of_preset(),
        "training": known.training,
        "rates": rates_by_size(known),
        "sizes": known.sizes,
        "parameters": parameters_by_size(known.name),
        "vocabulary": vocabularies_by_size(known.name),
        "published": known.parameters[0] if known.parameters else None,
    }
