"""A run of any task but plain text: a trained model with its processor, in memory and in its folder.

run = regard.train("transformer", "world:translation")
print(run.generate("the small dog sees the cat"))
run.evaluate("valid.tsv").to_dict()
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data import settings as data_settings
from regard.decoding.text import TextOptions, options_from
from regard.errors import DataError, UsageError, blamed_on
from regard.tasks import task_named
from regard.tasks.processor import PROCESSOR
from regard.tasks.task import Answer, Dataset, Report, Task
from regard.training import run_folder
from regard.training.loop import device_of
from regard.training.saved_model import saved_model
from regard.training.settings import TrainSettings
from regard.training.settings import from_dict as settings_from_dict

if TYPE_CHECKING:
    from torch import nn

    from regard.core.trace import Trace
    from regard.explain.view import View
    from regard.tasks.processor import Processor

GREEDY = {"temperature": 0.0}


class TaskRun:
    """A trained model ready for use.

    path    its folder.
    config  what config.json says.
    task    what it is for.
    model   in evaluation mode.
    processor   what turns inputs into its own and answers into a person's.
    """

    def __init__(
        self, path: Path, config: dict[str, Any], task: Task[Any], model: nn.Module, processor: Processor
    ) -> None:
        self.path, self.config, self.task = path, config, task
        self.model, self.processor = model, processor
        self.dataset: Dataset[Any] | None = None

    def __repr__(self) -> str:
        return f"TaskRun({str(self.path)!r}, task={self.task.name!r}, model={self.config['model'].get('name')!r})"

    def generate(self, given: Any, **options: Any) -> str:
        """The answer to one input: a translation, a label, tags, a caption, a forecast."""
        return self.answers([given], **options)[0].text

    def answers(self, inputs: Sequence[Any], **options: Any) -> list[Answer]:
        """An answer to each input. Options are those of `TextOptions`, where something is written."""
        return list(self.task.answers(self.model, self.processor, inputs, self._chosen(options)))

    def evaluate(
        self, data: str | None = None, *, limit: int | None = None, part: str = "valid", **options: Any
    ) -> Report:
        """The scores on `data`, or on what the run's own data held out: the part "valid", or the "test" set apart."""
        examples = self.held_out(part) if data is None else self.task.examples(data, self.settings, self.seed)
        return self.task.evaluate(self.model, self.processor, examples[:limit], self._chosen(options))

    def explain(self, given: str = "", view: str | None = None, **options: Any) -> View:
        """A look inside: the view that tells most of such a model, or the one that is named; see `views`."""
        from regard.explain import registry

        return registry.view(self, view, given, **options)

    @property
    def views(self) -> dict[str, str]:
        """The views that `explain` can make of this run, and what each shows."""
        from regard.explain import registry

        return registry.views(self)

    def trace(self, given: str = "", pattern: str = "*") -> Trace:
        """Everything that the taps of the model see of one input."""
        from regard.explain.inputs import read

        return read(self, given).trace(pattern)

    @torch.no_grad()
    def encode(self, text: str) -> Float[Tensor, "T D"]:
        """The context-sensitive vectors of the tokens of `text`, of a model that has them."""
        return self.task.encode(self.model, self.processor, text)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def settings(self) -> data_settings.DataSettings:
        """How the run reads data. No cache: a folder that one was handed does not say where anything is written."""
        return dataclasses.replace(data_settings.from_dict(self.config["data"]), cache=None)

    @property
    def seed(self) -> int:
        return self.config["train"]["seed"]

    def unused(self, options: dict[str, Any]) -> list[str]:
        """Options that mean nothing to a run of this task."""
        known = {field.name for field in dataclasses.fields(TextOptions)} & options.keys()
        return sorted(known & {"stop"} if self.task.writes else known - {"seed"})

    def _chosen(self, options: dict[str, Any]) -> TextOptions | None:
        """How texts are written: without a beam, and without a word on chance, the most probable one."""
        if self.unused(options):
            names = ", ".join(self.unused(options))
            raise UsageError(f"{self.path}: {names} means nothing to a run of the task {self.task.name}; leave it out")
        if not options:
            return None
        drawn = {"beam", "temperature", "top_k", "top_p", "min_p"} & options.keys()
        return options_from(({} if drawn else GREEDY) | options)

    def held_out(self, part: str) -> Sequence[Any]:
        """A held-out part of the run's own data, made again and checked to be what it was."""
        if self.dataset is None:
            if self.config["data"].get("path") == "-":
                raise UsageError(f"{self.path} was trained on standard input, which is gone: name data to evaluate on")
            dataset = self.task.ready(self.settings, self.seed, self.processor)
            if dataset.hash != self.config["data"].get("hash"):
                path = self.settings.path
                raise DataError(f"{path} is not what {self.path} was trained on: name data to evaluate on")
            self.dataset = dataset
        if part == "test" and not self.dataset.test:
            raise UsageError(f"{self.path} was trained without a test part; set data.test, or name data to evaluate on")
        return self.dataset.test if part == "test" else self.dataset.examples


def load_task_run(path: Path, *, device: str = "auto", processor: Processor | None = None) -> TaskRun:
    """The run in a folder, every file checked against its hash before it is used.

    processor: its own, where that is in memory already.
    """
    config = run_folder.read_config(path)
    with blamed_on(path / run_folder.CONFIG):
        task = task_named(config["data"]["task"]).with_settings(settings_from_dict(config["train"]))
    with blamed_on(path / PROCESSOR):
        own = processor or task.load_processor(lambda name: run_folder.verified(path, name))
    weights = run_folder.verified_weights(path)
    saved = saved_model(path, config)
    saved.require_for(own.spec)
    model = saved.with_weights(weights)
    model.to(device_of(TrainSettings(device=device)))
    return TaskRun(path, config, task, model.eval(), own)
