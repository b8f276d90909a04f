"""Readings: the data of a comparison as each of its models reads it, split once, and once for each fold.

Models read the same data. Their tokens may differ, as in `lstm?tokens=bytes`; then texts are told in bits a byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.worlds import PREFIX
from regard.errors import UsageError
from regard.run.dataset import load_dataset
from regard.run.settings import START, Layer, Origin, Settings, resolve
from regard.storage import manifest
from regard.studies.identity import fingerprint
from regard.studies.protocol import HAND, Protocol
from regard.tasks import task_named
from regard.tasks.dataset import Dataset
from regard.tasks.example_task import ExampleTask
from regard.tasks.verbs import ScoresPassages
from regard.training import run_folder

DATA = "data."
OWN = frozenset({"data.tokens", "data.vocab_size"})  # what a model may have of its own
MOST_FOLDS = 100


@dataclass(frozen=True)
class Readings:
    """Datasets of each label, one for each fold, the fingerprint of each, and the settings by which it was read."""

    data: Mapping[str, Sequence[Dataset[Any]]]
    fingerprints: Mapping[str, Sequence[str]]
    settings: Mapping[str, Sequence[Settings]]

    @property
    def fingerprint(self) -> str:
        """Of all of it."""
        every = list(dict.fromkeys(one for found in self.fingerprints.values() for one in found))
        return every[0] if len(every) == 1 else hashlib.sha256(" ".join(every).encode()).hexdigest()

    @property
    def first(self) -> Sequence[Dataset[Any]]:
        return next(iter(self.data.values()))

    def about(self) -> dict[str, Any]:
        """What the data is, in plain keys: of several folds all that is tested."""
        told = self.first[0].about()
        if len(self.first) == 1:
            return told
        return told | {"test": sum(one.about()["test"] for one in self.first), "folds": len(self.first)}


def read(layers: Mapping[str, Layer], protocol: Protocol) -> Readings:
    """The data of all models, each reading of it made once."""
    made: dict[str, tuple[Dataset[Any], str]] = {}
    found: dict[str, list[tuple[Dataset[Any], str]]] = {}
    read_by: dict[str, list[Settings]] = {}
    for label, layer in layers.items():
        for number in range(protocol.folds):
            changes = {key: Origin(value, HAND) for key, value in protocol.fold(number).items()}
            settings = resolve(layer, changes)
            key = repr([*sorted(settings.section("data").items()), settings["train.start"], settings["train.length"]])
            if key not in made:
                data = load_dataset(settings)
                made[key] = (data, fingerprint(data))
            found.setdefault(label, []).append(made[key])
            read_by.setdefault(label, []).append(settings)
    data = {label: [one for one, _ in pairs] for label, pairs in found.items()}
    return Readings(data, {label: [one for _, one in pairs] for label, pairs in found.items()}, read_by)


def own_tokens(task: str, changes: Mapping[str, Layer]) -> bool:
    """Whether models read a text in tokens of their own, so that losses by token are not compared.

    changes  what was said of each model. Any other setting of the data is refused: it is the same for all.
    """
    for label, layer in changes.items():
        other = next((key for key in layer if key.startswith(DATA) and key not in OWN), None)
        if other is not None:
            raise UsageError(f"--models {label}: {other} is the same for all models; give it with --set {other}=VALUE")
    own = [label for label, layer in changes.items() if not OWN.isdisjoint(layer)]
    begun = {label: _tokenizer(str(layer[START].value)) for label, layer in changes.items() if START in layer}
    if len(begun) < len(changes) or len(set(begun.values())) > 1:
        own += list(begun)
    known = task_named(task)
    if not own or not known.lower_is_better or known.metric != "loss":
        return False
    if not isinstance(known, ScoresPassages):
        raise UsageError(f"--models {own[0]}: a loss by token is not compared with one by other tokens; leave it out")
    return True


def _tokenizer(start: str) -> str:
    """The tokens of a run that a model begins with, by their hash."""
    return manifest.hash_file(run_folder.verified_tokenizer(Path(start).expanduser())).sha256


def refuse_folds(folds: int, task: str, path: str, layer: Layer) -> None:
    """Refuse folds where there is nothing to split, or where a split was given."""
    if folds == 1:
        return
    if not 2 <= folds <= MOST_FOLDS:
        raise UsageError(f"--folds: 2 to {MOST_FOLDS}, found {folds}")
    known = task_named(task)
    if not isinstance(known, ExampleTask) or known.by_time:
        raise UsageError(f"--folds is for examples that come in no order, and {path} is data of the task {task}")
    if path.startswith(PREFIX):
        raise UsageError(f"--folds: {path} makes as many test examples as are asked for, such as ?valid=1000")
    if "data.valid" in layer:
        raise UsageError("--folds says what is held out: leave valid out")
