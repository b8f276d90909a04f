"""Task: what a kind of data is learnt for, and how a model of it is trained, judged and used.

    text -> dataset -> rows -> batches -> objective          training
    inputs -> processor -> model -> answers                       use
    examples -> answers -> report                             evaluation

A new task is one file here and one line in `regard.tasks`: it then trains, generates and evaluates like the others.
"""

from __future__ import annotations

import hashlib
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from regard.core.data_spec import DataSpec
from regard.data.example import taken
from regard.data.mask import WordDropout
from regard.data.rows import Rows, Shuffled, Some, once
from regard.data.settings import DataSettings
from regard.data.source import shown
from regard.data.split import here_and_there, overlap, places, rule, split_examples
from regard.errors import DataError, UsageError
from regard.tasks.processor import Processor
from regard.training.problem import Metric, Objective, TrainingProblem

if TYPE_CHECKING:
    from torch import Tensor, nn

    from regard.decoding.text import TextOptions
    from regard.tasks.pretrained import Start
    from regard.training.settings import TrainSettings

C = TypeVar("C", bound="Processor")
E = TypeVar("E")
EVERYWHERE = frozenset({"path", "task", "valid", "test"})
JUDGED = 200  # examples by which weights are compared while training
SHOWN = 3  # examples in a sample


@dataclass(frozen=True, eq=False)
class Dataset(Generic[C]):
    """Data ready for training.

    name      what it was made of, for display.
    examples  the held-out examples as people write them, in the order of the rows `valid`.
    best      the best possible scores, in a world.
    notes     what a person should be told, a line each.
    kept      numbers of the rows of `valid` that training looks at; None for all.
    test      further held-out examples, which neither training nor choosing sees.
    """

    name: str
    processor: C
    spec: DataSpec
    train: Rows
    valid: Rows
    examples: Sequence[Any]
    best: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kept: np.ndarray | None = None
    test: Sequence[Any] = ()

    def set_apart(self, chosen: np.ndarray) -> Self:
        """The same with the `chosen` ones of the held-out examples taken away as a test."""
        if chosen.all() or not chosen.any():
            raise DataError(f"{self.name}: the {len(chosen)} held-out examples are too few to set a test part apart")
        kept = np.flatnonzero(~chosen)
        test = taken(self.examples, np.flatnonzero(chosen))
        return replace(self, examples=taken(self.examples, kept), kept=kept, test=test)

    @cached_property
    def hash(self) -> str:
        parts = f"{self.processor.hash} {self.train.hash} {self.valid.hash}"
        return hashlib.sha256(parts.encode()).hexdigest()


@dataclass(frozen=True)
class Answer:
    """What a model says to one input: the line that is printed, and more for a program."""

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, **self.details}


@dataclass(frozen=True)
class Report:
    """Scores by plain names, and tables of them by length, class or category; a row is a mapping."""

    scores: Mapping[str, Any]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {**self.scores, **{name: [dict(row) for row in rows] for name, rows in self.tables.items()}}


class Task(ABC, Generic[C]):
    """Base of all tasks but that of plain text.

    name       as in `--task`.
    shape      as in the taxonomy: 1-1, 1-N, N-1, N-N, N-M.
    used       data settings that mean something to it.
    metric     the score by which the best weights are chosen; lower is better where it says so.
    objective  (model, batch, state) to (summed loss, count, state).
    unit       what a target is, for messages.
    writes     whether a text is written, so that options of beams and of chance mean something.
    by_time    whether its examples come one after the other in time, so that a test must come last.
    """

    name: ClassVar[str]
    shape: ClassVar[str]
    used: ClassVar[frozenset[str]]
    metric: ClassVar[str]
    lower_is_better: ClassVar[bool] = False
    unit: ClassVar[str] = "tokens"
    writes: ClassVar[bool] = True
    by_time: ClassVar[bool] = False

    def with_settings(self, settings: TrainSettings) -> Self:
        """The task as a run with these training settings has it."""
        return self

    def starting_from(self, start: Start) -> Self:
        """The task in the tokens of a pre-trained encoder."""
        raise UsageError(f"--from: a run of the task {self.name} has no encoder to load; labelled and tagged have")

    @abstractmethod
    def prepare(self, settings: DataSettings, seed: int, processor: C | None = None) -> Dataset[C]:
        """The dataset of a path or a world, in the terms of `processor` where one is given."""

    def ready(self, settings: DataSettings, seed: int, processor: C | None = None) -> Dataset[C]:
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

    @abstractmethod
    def keys(self, examples: Sequence[Any]) -> Iterable[str]:
        """What each example shares with its duplicates and with nothing else: its input."""

    def held_out(
        self, found: Sequence[E], valid: str, read: Callable[[str], Sequence[E]]
    ) -> tuple[Sequence[E], Sequence[E], tuple[str, ...]]:
        """Examples to train on, those held out by the rule `valid` or read from that file, and what is to be said."""
        if rule(valid) is not None:
            return *split_examples(found, valid, self.keys(found)), ()
        other = read(valid)
        common = overlap(self.keys(found), self.keys(other))
        note = f"{shown(valid)}: {common:,} of {len(other):,} inputs are also in the training part"
        return found, other, (note,) if common else ()

    @abstractmethod
    def examples(self, data: str, settings: DataSettings, seed: int) -> Sequence[Any]:
        """All of another file, or the held-out part of a world."""

    @abstractmethod
    def load_processor(self, verified: Callable[[str], Path]) -> C:
        """The processor of a run folder, whose files `verified` gives by name, each checked."""

    @abstractmethod
    def objective(self, settings: TrainSettings) -> Objective:
        """What is minimised."""

    @abstractmethod
    def answers(
        self, model: nn.Module, processor: C, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        """An answer to each input, in order. An input is what a person types, or an example without its target."""

    @abstractmethod
    def evaluate(
        self, model: nn.Module, processor: C, examples: Sequence[Any], options: TextOptions | None = None
    ) -> Report:
        """The scores on examples."""

    @abstractmethod
    def describe(self, example: Any, answer: Answer) -> str:
        """An example and what a model made of it, in a line."""

    def is_right(self, example: Any, answer: Answer) -> bool | None:
        """Whether the answer is the example's own; None where an answer is only more or less right."""
        return None

    def encode(self, model: nn.Module, processor: C, text: str) -> Tensor:
        """The context-sensitive vectors of the tokens of a text, (T, D)."""
        raise UsageError(f"a run of the task {self.name} has no vectors for each token of a text")

    def command(self, run: str, example: Any) -> str:
        """A command that shows the run at work on something like `example`."""
        return f"regard generate {run} {shlex.quote(self.typed(example))}"

    def typed(self, example: Any) -> str:
        """The example's input as a person would type it."""
        return str(example)

    def inputs(self, text: str) -> list[Any]:
        """What the text that a person pipes in holds: an input a line."""
        return [line.removesuffix("\r") for line in text.split("\n")]

    def fit(self, rows: Rows, model: nn.Module, settings: DataSettings) -> Rows:
        """The rows as the model can read them; one that is too long is refused, or cut where that was asked for."""
        return rows

    def training(
        self, dataset: Dataset[C], model: nn.Module, settings: TrainSettings, data: DataSettings
    ) -> TrainingProblem:
        """What the training loop needs."""
        train, valid = self.fit(dataset.train, model, data), self.fit(dataset.valid, model, data)
        valid = valid if dataset.kept is None else Some(valid, dataset.kept)
        sampler: Any = Shuffled(train, settings.seed)
        if settings.word_dropout:
            hidden, share, ramp = self.hidden(dataset.processor), settings.word_dropout, settings.word_dropout_ramp
            sampler = WordDropout(sampler, share, ramp, hidden, settings.seed)
        return TrainingProblem(
            sampler,
            partial(once, valid, settings.batch_size),
            valid.n_targets,
            self.objective(settings),
            identity={"name": dataset.name, "hash": dataset.hash, "tokenizer": dataset.processor.hash},
            files=dataset.processor.files(),
            metric=Metric(self.metric, partial(self._judge, dataset=dataset), self.lower_is_better),
            unit=self.unit,
        )

    def hidden(self, processor: C) -> int:
        """The token that stands for a hidden word."""
        raise UsageError(f"train.word_dropout: the task {self.name} has no words to hide; leave it out")

    def sample(self, model: nn.Module, dataset: Dataset[C]) -> str:
        """A few held-out examples and what the model makes of them."""
        shown = dataset.examples[:SHOWN]
        answers = self.answers(model, dataset.processor, shown)
        return "\n".join(self.describe(example, answer) for example, answer in zip(shown, answers, strict=True))

    def _judge(self, model: nn.Module, dataset: Dataset[C]) -> float:
        # Every so many of them: a file may be sorted, and its head then is of one kind.
        judged = dataset.examples[:: max(1, len(dataset.examples) // JUDGED)][:JUDGED]
        report = self.evaluate(model, dataset.processor, judged)
        return float(report.scores[self.metric])

    def refuse_unused(self, settings: DataSettings) -> None:
        settings.refuse_unused(self.name, self.used | EVERYWHERE)


def require_task(found: str, wanted: str, where: str) -> None:
    """Refuse a run of another task."""
    if found != wanted:
        raise UsageError(f"{where} is a run of the task {found}, and this needs one of {wanted}")
