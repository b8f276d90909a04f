"""ExampleTask: a task whose data comes in examples, each an input and its target."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from regard.data.example import ExampleData
from regard.data.mask import WordDropout
from regard.data.rows import Rows, Shuffled, Some, once
from regard.data.settings import DataSettings
from regard.data.source import shown
from regard.data.split import fold, here_and_there, overlap, places, rule, split_examples
from regard.errors import UsageError
from regard.tasks.dataset import Dataset, ExampleDataset
from regard.tasks.task import C, Task
from regard.tasks.verbs import Answer
from regard.training.fitted_run import FittingProblem
from regard.training.losses import loss_of
from regard.training.problem import Metric, Objective, Sampler, TrainingProblem

if TYPE_CHECKING:
    from torch import nn

    from regard.training.settings import TrainSettings

E = TypeVar("E")
JUDGED = 200  # examples by which weights are compared while training
SHOWN = 3  # examples in a sample
MOST_ANSWERS = 1 << 28  # probabilities by which a fitted model is judged


class ExampleTask(Task[C]):
    """Base of the tasks of examples."""

    @abstractmethod
    def prepare(self, settings: DataSettings, seed: int, processor: C | None = None) -> ExampleDataset[C]:
        """The dataset of a path or a world, in the terms of `processor` where one is given."""

    @abstractmethod
    def examples(self, data: str, settings: DataSettings, seed: int) -> Sequence[Any]:
        """All of another file, or the held-out part of a world."""

    @abstractmethod
    def keys(self, examples: Sequence[Any]) -> Iterable[str]:
        """What each example shares with its duplicates and with nothing else: its input."""

    @abstractmethod
    def objective(self, settings: TrainSettings) -> Objective:
        """What is minimised: (model, batch, state) to (summed loss, count, state)."""

    @abstractmethod
    def describe(self, example: Any, answer: Answer) -> str: ...

    def ready(self, settings: DataSettings, seed: int, processor: C | None = None) -> ExampleDataset[C]:
        """The dataset with its test set apart, where the settings ask for one: the last ones, or here and there.

        Examples with the same input are kept or set apart together.
        """
        dataset = self.prepare(settings, seed, processor)
        if not settings.test:
            return dataset
        number = np.arange(len(dataset.examples))
        last = number >= round(len(number) * (1 - settings.test))
        chosen = last if self.by_time else here_and_there(places(self.keys(dataset.examples)), settings.test)
        return dataset.set_apart(chosen)

    def part_of(self, data: str, settings: DataSettings, seed: int, processor: C) -> Sequence[Any]:
        return self.examples(data, settings, seed)

    def held_out(
        self, found: Sequence[E], valid: str, read: Callable[[str], Sequence[E]]
    ) -> tuple[Sequence[E], Sequence[E], tuple[str, ...]]:
        """Examples to train on, those held out by the rule `valid` or read from that file, and what is to be said."""
        if rule(valid) is not None or fold(valid) is not None:
            return *split_examples(found, valid, self.keys(found)), ()
        other = read(valid)
        common = overlap(self.keys(found), self.keys(other))
        note = f"{shown(valid)}: {common:,} of {len(other):,} inputs are also in the training part"
        return found, other, (note,) if common else ()

    def fit(self, rows: Rows, model: nn.Module, settings: DataSettings) -> Rows:
        """The rows as the model can read them; one that is too long is refused, or cut where that was asked for."""
        return rows

    def training(
        self, dataset: Dataset[C], model: nn.Module, settings: TrainSettings, data: DataSettings
    ) -> TrainingProblem:
        assert isinstance(dataset, ExampleDataset)
        train, valid = self.fit(dataset.train, model, data), self.fit(dataset.valid, model, data)
        valid = valid if dataset.kept is None else Some(valid, dataset.kept)
        sampler: Sampler = Shuffled(train, settings.seed)
        if settings.word_dropout:
            hidden, share, ramp = self.hidden(dataset.processor), settings.word_dropout, settings.word_dropout_ramp
            sampler = WordDropout(sampler, share, ramp, hidden, settings.seed)
        return TrainingProblem(
            sampler,
            partial(once, valid, settings.batch_size),
            valid.n_targets,
            self.objective(settings),
            identity=_identity(dataset),
            files=dataset.processor.files(),
            metric=Metric(self.metric, partial(self._judge, dataset=dataset), self.lower_is_better),
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
            self.metric,
            identity=_identity(dataset),
            files=dataset.processor.files(),
            unit=self.unit,
            loss=(lambda fitted: self.losses(fitted, few)["loss"]) if self.writes else None,
        )

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

    def _judge(self, model: nn.Module, dataset: ExampleDataset[C]) -> float:
        # Every so many of them: a file may be sorted, and its head then is of one kind.
        judged = dataset.examples[:: max(1, len(dataset.examples) // JUDGED)][:JUDGED]
        report = self.evaluate(model, dataset.processor, judged)
        return float(report.scores[self.metric])


def _identity(dataset: Dataset[Any]) -> dict[str, str]:
    """What a run notes of its data."""
    return {"name": dataset.name, "hash": dataset.hash, "tokenizer": dataset.processor.hash}
