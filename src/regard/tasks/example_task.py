"""ExampleTask: a task whose data comes in examples, each an input and its target."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.core.device import device_named
from regard.data.account import Account
from regard.data.example import ExampleData
from regard.data.mask import WordDropout
from regard.data.rows import Rows, Shuffled, Some, once
from regard.data.settings import DataSettings
from regard.data.split import here_and_there, places
from regard.errors import UsageError
from regard.tasks.data_kind import ExampleKind
from regard.tasks.dataset import Dataset, ExampleDataset
from regard.tasks.task import C, Task
from regard.tasks.verbs import Answer
from regard.training.class_weights import NONE, class_weights
from regard.training.fitted_run import FittingProblem
from regard.training.losses import Loss, loss_of
from regard.training.problem import Metric, Objective, Sampler, TrainingProblem

if TYPE_CHECKING:
    from torch import nn

    from regard.training.settings import TrainSettings

# Examples by which weights are compared while training: few where answers are written, else as many as are read soon.
JUDGED, MOST_JUDGED, JUDGED_TOKENS = 200, 2_000, 60_000
SHOWN = 3  # examples in a sample
MOST_ANSWERS = 1 << 28  # probabilities by which a fitted model is judged
# What to do where too few are held out to take a test from them.
MORE = "give more examples, or compare with folds=5 (--folds 5), by which most are tested"
LONGER = "give a longer series"


class ExampleTask(ExampleKind, Task[C]):
    """Base of the tasks of examples."""

    def survey(self, settings: DataSettings, seed: int) -> Account:
        if not self.by_time:
            return super().survey(settings, seed)
        # What is held out depends on the grid of time, and is soon found.
        return self.ready(settings, seed).account or Account(task=self.name, data=settings.path)

    @abstractmethod
    def prepare(self, settings: DataSettings, seed: int, processor: C | None = None) -> ExampleDataset[C]:
        """The dataset of a path or a world, in the terms of `processor` where one is given."""

    @abstractmethod
    def objective(self, settings: TrainSettings) -> Objective:
        """What is minimised: (model, batch, state) to (summed loss, count, state)."""

    @abstractmethod
    def describe(self, example: Any, answer: Answer) -> str: ...

    def ready(self, settings: DataSettings, seed: int, processor: C | None = None) -> ExampleDataset[C]:
        """The dataset with its test set apart, where the settings ask for one: the last ones, or here and there.

        Examples with the same input are kept or set apart together.
        """
        dataset = self._divided(settings, seed, processor)
        told = dataset.account or Account(data=dataset.name, unit="examples")
        return dataset.counted(replace(told, task=self.name, held_out_by=self.held_out_by(settings)))

    def _divided(self, settings: DataSettings, seed: int, processor: C | None) -> ExampleDataset[C]:
        dataset = self.prepare(settings, seed, processor)
        if not settings.test:
            return dataset
        number = np.arange(len(dataset.examples))
        last = number >= round(len(number) * (1 - settings.test))
        chosen = last if self.by_time else here_and_there(places(self.keys(dataset.examples)), settings.test)
        return dataset.set_apart(chosen, LONGER if self.by_time else MORE)

    def part_of(self, data: str, settings: DataSettings, seed: int, processor: C) -> Sequence[Any]:
        return self.examples(data, settings, seed)

    def fit(self, rows: Rows, model: nn.Module, settings: DataSettings) -> Rows:
        """The rows as the model can read them; one that is too long is refused, or cut where that was asked for."""
        return rows

    def training(
        self, dataset: Dataset[C], model: nn.Module, settings: TrainSettings, data: DataSettings
    ) -> TrainingProblem:
        assert isinstance(dataset, ExampleDataset)
        train, valid = self.fit(dataset.train, model, data), self.fit(dataset.valid, model, data)
        valid = valid if dataset.kept is None else Some(valid, dataset.kept)
        if settings.ar or settings.tar:
            raise UsageError("train.ar and train.tar are for language models, which read on and on; leave them out")
        objective: Callable[..., Loss] = self.objective(settings)
        weights = self.class_weights(dataset, model, settings)
        if weights is not None:
            device = device_named(settings.device)
            objective = partial(objective, class_weights=torch.tensor(weights, device=device))
        sampler: Sampler = Shuffled(train, settings.seed)
        if settings.word_dropout:
            hidden, share, ramp = self.hidden(dataset.processor), settings.word_dropout, settings.word_dropout_ramp
            sampler = WordDropout(sampler, share, ramp, hidden, settings.seed)
        return TrainingProblem(
            sampler,
            partial(once, valid, settings.batch_size),
            valid.n_targets,
            objective,
            identity=_identity(dataset),
            files=dataset.processor.files(),
            metric=Metric(
                self.judged_by(dataset.processor), partial(self.judge, dataset=dataset), self.lower_is_better
            ),
            unit=self.unit,
        )

    def fitting(
        self, dataset: Dataset[C], model: nn.Module, settings: TrainSettings, data: DataSettings
    ) -> FittingProblem[ExampleData[Any, Any]]:
        """What a model that is fitted at once needs: every example, and the scores on those held out."""
        assert isinstance(dataset, ExampleDataset)
        rows, valid = self.fit(dataset.train, model, data), self.fit(dataset.valid, model, data)
        valid = valid if dataset.kept is None else Some(valid, dataset.kept)
        few = Some(valid, np.arange(0, len(valid.sizes), max(1, len(valid.sizes) // JUDGED)))
        # Of very many classes every so many examples: a million answers to each are as much as a training.
        judged = dataset.examples[:: 1 + len(dataset.examples) * dataset.spec.n_classes // MOST_ANSWERS]
        return FittingProblem(
            ExampleData(rows, dataset.training),
            rows.n_targets,
            lambda fitted: {**self.evaluate(fitted, dataset.processor, judged).scores, **self.losses(fitted, valid)},
            self.judged_by(dataset.processor),
            identity=_identity(dataset),
            files=dataset.processor.files(),
            unit=self.unit,
            loss=(lambda fitted: self.losses(fitted, few)["loss"]) if self.writes else None,
            class_weights=self.class_weights(dataset, model, settings),
        )

    def class_weights(
        self, dataset: ExampleDataset[C], model: nn.Module, settings: TrainSettings
    ) -> tuple[float, ...] | None:
        """How much targets of each class count; None where all count the same. A model that cannot is refused."""
        found = None if settings.class_weights == NONE else self.numbered_classes(dataset)
        if found is None:
            return None
        weights = class_weights(settings.class_weights, *found)
        if not getattr(model, "weighs_classes", False):
            named = f"{type(model).__name__} has no loss in which classes could count more or less"
            raise UsageError(f"train.class_weights: {named}; leave it out, or choose another model")
        return None if weights is None else tuple(weights.tolist())

    def numbered_classes(self, dataset: ExampleDataset[C]) -> tuple[Sequence[str], np.ndarray] | None:
        """The names of classes, and the number of that of each target of training; None of a task without classes."""
        return None

    def losses(self, model: nn.Module, rows: Rows) -> dict[str, float]:
        """The loss of a fitted model on rows, where `evaluate` does not tell it, as of a task that writes."""
        return {"loss": loss_of(model, rows)} if self.writes else {}

    def hidden(self, processor: C) -> int:
        """The token that stands for a hidden word."""
        raise UsageError(f"train.word_dropout: the task {self.name} has no words to hide; leave it out")

    def sample(self, model: nn.Module, dataset: Dataset[C]) -> str:
        """A few held-out examples and what the model makes of them."""
        assert isinstance(dataset, ExampleDataset)
        shown = dataset.examples[:SHOWN]
        answers = self.answers(model, dataset.processor, shown)
        return "\n".join(self.describe(example, answer) for example, answer in zip(shown, answers, strict=True))

    def judge(self, model: nn.Module, dataset: ExampleDataset[C]) -> float:
        """That score, on some of what was held out."""
        scores = self.evaluate(model, dataset.processor, self.judged_examples(dataset)).scores
        return float(scores[self.judged_by(dataset.processor)])

    def judged_examples(self, dataset: ExampleDataset[C]) -> Sequence[Any]:
        """Every so many of the held-out examples: a file may be sorted, and its head then is of one kind."""
        n = JUDGED if self.writes else _soon_read(dataset.valid)
        return dataset.examples[:: max(1, len(dataset.examples) // n)][:n]


def _soon_read(rows: Rows) -> int:
    """How many examples of this length have about JUDGED_TOKENS tokens."""
    length = float(np.mean(rows.sizes)) if len(rows.sizes) else 1.0
    return max(JUDGED, min(MOST_JUDGED, int(JUDGED_TOKENS / max(1.0, length))))


def _identity(dataset: Dataset[Any]) -> dict[str, str]:
    """What a run notes of its data."""
    return {"name": dataset.name, "hash": dataset.hash, "tokenizer": dataset.processor.hash}
