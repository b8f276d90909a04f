"""What a run is, beside what can be done with it: its parts, its folder, its data and what its training measured."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import torch
from torch import Tensor, nn

from regard.core.device import device_named, move
from regard.data import settings as data_settings
from regard.decoding.logits import model_device
from regard.errors import UsageError
from regard.kernels.operators import fallbacks
from regard.run.card import as_html, measured, short_name
from regard.run.curve import learning_curve
from regard.run.own_data import made_again
from regard.run.picture import Picture
from regard.run.saved import save_run
from regard.tasks.processor import Tokenizes
from regard.tasks.verbs import able
from regard.training.before_refit import put_back

if TYPE_CHECKING:
    from regard.data.records import Records
    from regard.data.tokenizer import Tokenizer
    from regard.tasks.dataset import Dataset
    from regard.tasks.processor import Processor
    from regard.tasks.task import Task

V = TypeVar("V")


class TrainedRun:
    """A trained model with its task and its processor.

    path       its folder.
    config     what config.json says: model, data, training settings and where each came from.
    task       what it is for.
    model      in evaluation mode.
    processor  what turns inputs into the model's own and answers into a person's.
    dataset    what it was trained on, where that is at hand.
    weights    what the weights are, for people, where they are not those of its folder.
    before     of one that has learnt its held-out part too, when all was chosen by that: what it was before, by name.
    """

    def __init__(
        self, path: Path, config: dict[str, Any], task: Task[Any], model: nn.Module, processor: Processor
    ) -> None:
        self.path, self.config, self.task = path, config, task
        self.model, self.processor = model, processor
        self.dataset: Dataset[Any] | None = None
        self.drafting: tuple[object, Any] | None = None
        self.weights: str | None = None
        self.before: dict[str, Tensor] = {}

    def __repr__(self) -> str:
        model = self.config.get("model", {}).get("name")
        return f"Run({str(self.path)!r}, task={self.task.name!r}, model={model!r})"

    def able(self, verb: type[V]) -> V:
        """The run's task as one that has a verb of `regard.tasks.verbs`; refused where it has not."""
        return able(self.task, verb, self.path)

    @property
    def tokenizer(self) -> Tokenizer:
        """The one it was trained with, of a run that has one."""
        if not isinstance(self.processor, Tokenizes):
            raise UsageError(f"{self.path}: a run of the task {self.task.name} has no tokenizer of its own")
        return self.processor.tokenizer

    @property
    def fitted(self) -> bool:
        """Whether the model was fitted at once and has nothing that is learnt by gradients."""
        return next(self.model.parameters(), None) is None

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        model: Any = self.model
        return model_device(model)

    @property
    def fallbacks(self) -> dict[str, int]:
        """What could not be made fast in this process, and how often its plain form ran instead."""
        return fallbacks()

    @property
    def settings(self) -> data_settings.DataSettings:
        """How the run reads data. No cache: a folder that one was handed does not say where anything is written."""
        return dataclasses.replace(data_settings.from_dict(self.config["data"]), cache=None)

    @property
    def seed(self) -> int:
        """The one that it was trained with."""
        return self.config["train"]["seed"]

    def held_out(self, part: str) -> Any:
        """A held-out part of the run's own data, made again and checked to be what it was."""
        if self.dataset is None:
            self.dataset = made_again(self)
        found = self.dataset.part(part)
        if found is None:
            raise UsageError(f"{self.path} was trained without a {part} part; set data.{part}, or name data")
        return found

    @property
    def is_refit(self) -> bool:
        """Whether it has learnt its held-out part too."""
        return bool(self.before)

    def before_refit(self) -> Self:
        """The run by which its own held-out part is judged: as it was before it learnt that too, or itself."""
        if not self.is_refit:
            return self
        found = copy.copy(self)
        found.model, found.before = copy.deepcopy(self.model), {}
        put_back(found.model, self.before)
        return found

    @property
    def metrics(self) -> Records:
        """What its training measured, a record for each step that was told; `.to_frame()` makes a frame of pandas."""
        return measured(self)

    def plot(self, score: str | None = None) -> Picture:
        """The learning curve: loss of training and of what was held out, or a held-out score such as "accuracy".

        A notebook shows it; `.save("curve.svg")` or `.png` writes it.
        """
        return learning_curve(self.metrics, short_name(self), score)

    def to(self, device: str) -> Self:
        """Move the model to a device: auto, cpu, cuda, cuda:N or mps. The run itself is given back."""
        move(self.model, device_named(device))
        return self

    def save(self, path: str | Path) -> Path:
        """Copy the run folder to another place, which must be free: checked, durable, whole or not at all."""
        if self.weights is not None:
            raise UsageError(f"weights of 8 bits are made anew from those of {self.path}: save the run that was loaded")
        target = Path(path).expanduser()
        save_run(self.path, target)
        return target

    def _repr_html_(self) -> str:
        return as_html(self)
