"""Task: what a kind of data is learnt for, and all that the verbs ask of it.

    text -> dataset -> batches -> objective          training
    inputs -> processor -> model -> answers          use
    examples -> answers -> report                    evaluation
    input -> reading                                 explain

A task of examples is an `ExampleTask`, which needs less: regard/tasks/example_task.py.
"""

from __future__ import annotations

import dataclasses
import shlex
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from regard.data.in_memory import described
from regard.data.labelled import TEXT_NAMES
from regard.data.settings import DataSettings
from regard.data.unlabelled import Role, Unlabelled, read_unlabelled
from regard.data.worlds import world_of
from regard.errors import UsageError
from regard.tasks.data_kind import DataKind
from regard.tasks.dataset import Dataset
from regard.tasks.processor import Processor
from regard.tasks.reading import Capabilities, Reading
from regard.tasks.role import role_of
from regard.tasks.verbs import Answer, Generates, Report

if TYPE_CHECKING:
    import torch
    from torch import nn

    from regard.core.config import Config
    from regard.decoding.text import TextOptions
    from regard.tasks.outcome import Outcome
    from regard.tasks.pretrained import Start
    from regard.training.display import Result
    from regard.training.problem import TrainingProblem
    from regard.training.saved_model import SavedModel
    from regard.training.settings import TrainSettings

C = TypeVar("C", bound=Processor)
FEW_AT_ONCE, MANY_AT_ONCE = 1 << 9, 1 << 14
# Training settings that not every task has a use for, of labels and of how a long text is cut, with the values that ask
# for nothing: as they are unsaid, and what somebody may say who asks for none (a model, that it has no state to carry).
OF_LABELS = {"class_weights": ("none",), "calibrate": (True,), "refit": ("auto", False)}
OF_SAMPLES = {"samples": ("auto",), "carry_state": (None, False), "packed": (False,)}


class Trained(Protocol):
    """A run as its task sees it."""

    path: Path
    config: dict[str, Any]
    model: nn.Module
    processor: Any
    dataset: Dataset[Any] | None

    @property
    def is_refit(self) -> bool: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def settings(self) -> DataSettings: ...
    @property
    def seed(self) -> int: ...
    def held_out(self, part: str) -> Any: ...
    def before_refit(self) -> Self: ...


class Task(DataKind, Generic[C]):
    """Base of all tasks. What it declares, beside what its data is known by:

    shape           as in the taxonomy: 1-1, 1-N, N-1, N-N, N-M.
    metric          the score by which models are ranked and the best weights chosen, unless the data asks for another
                    (`judged_by`); lower_is_better where it is.
    unit            what a target is, for messages.
    model           what is trained when nobody names a model.
    ladder          the models of a comparison, simple ones first.
    headed          the model that takes the name of an encoder under its own head, where the task has one.
    world           built-in data for it.
    gives_encoder   `--from`: a run of it has an encoder that others can start from. takes_encoder: it starts from one.
    writes          a text is written from what is read, so that options of beams and of chance mean something.
    of_labels       training settings of labels (`OF_LABELS`) that mean something to it; of_samples: of `OF_SAMPLES`.
    reads_files     an input is the name of a file: without one the first that was held out is looked at.
    example         the class of its examples, where one may be given as an input.
    reads_tables    an input is a whole table, and not a cell of one.
    echoes          a line of its samples begins with the input.
    takes_ids       a text may be given by the ids of its tokens (`Ids`) where its vector is asked for.
    can             what looks can ask of its readings.
    data_example    how its data and its inputs are written in commands that are shown. typed_example: an input.
    """

    shape: ClassVar[str]
    metric: ClassVar[str]
    lower_is_better: ClassVar[bool] = False
    unit: ClassVar[str] = "tokens"
    model: ClassVar[str]
    ladder: ClassVar[tuple[str, ...]] = ()
    headed: ClassVar[str | None] = None
    world: ClassVar[str | None] = None
    gives_encoder: ClassVar[bool] = False
    takes_encoder: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    of_labels: ClassVar[frozenset[str]] = frozenset()
    of_samples: ClassVar[frozenset[str]] = frozenset()
    reads_files: ClassVar[bool] = False
    example: ClassVar[type | None] = None
    reads_tables: ClassVar[bool] = False
    echoes: ClassVar[bool] = False
    takes_ids: ClassVar[bool] = False
    can: ClassVar[Capabilities] = Capabilities()
    data_example: ClassVar[str] = "DATA"
    typed_example: ClassVar[str] = "TEXT"

    def with_settings(self, training: TrainSettings, data: DataSettings) -> Self:
        """The task as a run with these settings has it."""
        return self

    def starting_from(self, start: Start) -> Self:
        """The task in the tokens of a pre-trained encoder."""
        raise NotImplementedError(f"{type(self).__name__} says takes_encoder and not how")

    @abstractmethod
    def ready(self, settings: DataSettings, seed: int, processor: C | None = None) -> Dataset[C]:
        """The dataset of a path or a world, in the terms of `processor` where one is given."""

    @abstractmethod
    def part_of(self, data: str, settings: DataSettings, seed: int, processor: C) -> Sequence[Any]:
        """All of another file, or the held-out part of a world, to be evaluated on."""

    @abstractmethod
    def load_processor(self, verified: Callable[[str], Path]) -> C:
        """The processor of a run folder, whose files `verified` gives by name, each checked."""

    def require_fit(self, saved: SavedModel, processor: C) -> None:
        """Refuse a saved model that was built for other data than the processor's."""
        saved.require_for(processor.spec)

    @abstractmethod
    def training(
        self, dataset: Dataset[C], model: nn.Module, settings: TrainSettings, data: DataSettings
    ) -> TrainingProblem:
        """What the training loop needs."""

    def combined(self, config: Config, count: int) -> Config:
        """The model of `count` models of one config whose answers are averaged."""
        raise UsageError(f"train.ensemble: the task {self.name} has no mean of several answers; leave it out")

    @abstractmethod
    def answers(
        self, model: nn.Module, processor: C, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        """An answer to each input, in order. An input is what a person types, or an example without its target."""

    def given(self, one: Any, where: str = "") -> Any:
        """One input as `answers` takes it, of what a program hands over; what it cannot mean is refused.

        Texts and the task's own examples are taken as they are. where: which one it is, before what is told.
        """
        if isinstance(one, str) or (self.example is not None and isinstance(one, self.example)):
            return one
        raise UsageError(f"{where}expected {self.takes}, found {described(one)}")

    def of_cell(self, cell: str) -> Any:
        """The input that a cell of a table stands for."""
        return cell

    @property
    def takes(self) -> str:
        """What one input is, for messages."""
        return "the path of a file" if self.reads_files else "a text"

    @abstractmethod
    def evaluate(
        self, model: nn.Module, processor: C, examples: Sequence[Any], options: TextOptions | None = None
    ) -> Report:
        """The scores on examples."""

    def judged_by(self, processor: C) -> str:
        """The score by which models are ranked and weights chosen: that of the task, or one that its data asks for."""
        return self.metric

    def limited(self, examples: Sequence[Any], limit: int | None) -> Sequence[Any]:
        """The first of the examples."""
        return examples[:limit]

    @abstractmethod
    def sample(self, model: nn.Module, dataset: Dataset[C]) -> str:
        """What the model makes of a little held-out data, or writes from nothing."""

    def describe(self, example: Any, answer: Answer) -> str:
        """An example and what a model made of it, in a line."""
        return answer.text

    def said(self, example: Any, answer: Answer) -> str:
        """The same without the example, where that stands beside it."""
        return answer.text

    def truth(self, example: Any) -> str:
        """The example's own answer, in a line; nothing where it has none."""
        return ""

    def is_right(self, example: Any, answer: Answer) -> bool | None:
        """Whether the answer is the example's own; None where an answer is only more or less right."""
        return None

    def outcome(self, run: Trained, result: Result) -> Outcome:
        """What a training came to, for the card at its end."""
        from regard.tasks.outcome import by_scores

        return by_scores(self, run, result)

    def command(self, run: str, example: Any) -> str:
        """A command that shows the run at work on something like `example`."""
        return f"regard generate {run} {shlex.quote(self.typed(example))}"

    def typed(self, example: Any) -> str:
        """The example's input as a person would type it."""
        return str(example)

    def inputs(self, text: str) -> list[Any]:
        """What the text that a person pipes in holds: an input a line."""
        return [line.removesuffix("\r") for line in text.split("\n")]

    def unlabelled(self, run: Trained, data: str, settings: DataSettings) -> Unlabelled:
        """What a file holds for a run to answer, targets not asked for: texts of a column of a table, or of lines.

        settings: how it is to be read, which may be otherwise than the run's own data was.
        """
        return read_unlabelled(data, self.input_role(run, settings), settings.choices, settings.missing)

    def input_role(self, run: Trained, settings: DataSettings) -> Role:
        """The column of another table that a run reads, in a file or in memory."""
        return role_of(run, settings, "text", TEXT_NAMES)

    def answer_rows(self, answer: Answer) -> Sequence[Mapping[str, Any]]:
        """The columns that an answer adds to what it was asked, the same ones of every answer; mostly one row."""
        chances = answer.details.get("probabilities")
        if chances is None:
            return [{"answer": answer.text}]
        chance = chances.get(answer.text)
        return [{"answer": answer.text, "probability": None if chance is None else round(chance, 6)}]

    @property
    def at_once(self) -> int:
        """Inputs that are answered together: so many that lengths can be sorted, so few that a stop loses little."""
        return FEW_AT_ONCE if self.writes or isinstance(self, Generates) else MANY_AT_ONCE

    def unused(self, options: Collection[str]) -> list[str]:
        """Options of `TextOptions` that mean nothing to a run of this task."""
        from regard.decoding.text import TextOptions

        known = {field.name for field in dataclasses.fields(TextOptions)} & set(options)
        return sorted(known & {"stop", "draft"} if self.writes else known - {"seed"})

    def openings(self, examples: Sequence[Any], count: int) -> list[str]:
        """Some inputs of a held-out part as a person would type them."""
        return [self.typed(one) for one in examples[:count]]

    def openings_of_world(self, address: str, seed: int, processor: C, count: int) -> list[str]:
        """The same of a world, which makes its first examples without the rest."""
        return [self.typed(one) for one in world_of(address, self.name, seed).examples("valid", count)]

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        """What a run reads of a typed input. target: what it is taken to write from it, of a task that writes."""
        raise UsageError(f"{run.path}: there is no way to look at a run of the task {self.name} yet")

    def ids(self, processor: C, text: str) -> np.ndarray | None:
        """The ids of a typed text as the model reads them; None where what is typed is no text."""
        return None

    def target_ids(self, processor: C, text: str) -> np.ndarray | None:
        """The ids of a text that is taken to be written; None of a task that writes none."""
        return None

    def refuse_untrained(self, settings: TrainSettings) -> None:
        """Refuse a training setting that was changed though the task has no use for it."""
        for name, asks_nothing in (OF_LABELS | OF_SAMPLES).items():
            if name not in self.of_labels | self.of_samples and getattr(settings, name) not in asks_nothing:
                raise UsageError(f"train.{name} means nothing to the task {self.name}; leave it out")
