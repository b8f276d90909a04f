"""What only some tasks can do. A run has these verbs where its task has them; every task answers and evaluates.

Answer and Report: what a model says to one input, and what it scores on many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from regard.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from regard.data.settings import DataSettings
    from regard.decoding.completion import Completion
    from regard.decoding.scored_text import ScoredText
    from regard.decoding.text import TextGenerator
    from regard.evaluation.each import EachScore
    from regard.tasks.dataset import Dataset
    from regard.tasks.encoding import Encoded
    from regard.tasks.rolling import Block
    from regard.tasks.task import Task, Trained
    from regard.training.fitted_run import FittingProblem
    from regard.training.settings import TrainSettings

V = TypeVar("V")


@runtime_checkable
class Generates(Protocol):
    """Goes on with a text."""

    def writer(self, model: nn.Module, processor: Any) -> TextGenerator:
        """What continues prompts, piece by piece where that is asked for."""
        ...


@runtime_checkable
class Completes(Protocol):
    """Writes texts from inputs that are no part of them, token by token."""

    def completion(self, model: nn.Module, processor: Any) -> Completion:
        """What an engine needs to write many of them side by side."""
        ...


@runtime_checkable
class Scores(Protocol):
    """Tells how probable a text is, token by token."""

    def score(self, model: nn.Module, processor: Any, text: str) -> ScoredText: ...


@runtime_checkable
class ScoresPassages(Scores, Protocol):
    """Scores texts, and has some at hand."""

    def passages(self, processor: Any, examples: Any, count: int, tokens: int) -> Sequence[str]:
        """The first documents of a held-out part, each cut to so many tokens."""
        ...


@runtime_checkable
class Encodes(Protocol):
    """Has vectors of the tokens of a text in their context."""

    def encoded(self, model: nn.Module, processor: Any, texts: Sequence[Any]) -> Iterator[Encoded]:
        """The vectors of the tokens of each text, batch by batch in any order: regard/tasks/encoding.py."""
        ...


@runtime_checkable
class Classifies(Protocol):
    """Gives a probability to each of several classes."""

    def classes(self, processor: Any) -> Sequence[str]:
        """Their names, in the order of the probabilities."""
        ...

    def probabilities(self, model: nn.Module, processor: Any, inputs: Sequence[Any]) -> np.ndarray:
        """(n, C): a row for each input, which sums to 1; where words have classes, (n,) arrays (words, C)."""
        ...


@runtime_checkable
class Fits(Protocol):
    """Has models that are fitted at once."""

    def fitting(
        self, dataset: Dataset[Any], model: nn.Module, settings: TrainSettings, data: DataSettings
    ) -> FittingProblem[Any]:
        """What the fit of `model` needs."""
        ...


@runtime_checkable
class Refits(Fits, Protocol):
    """Has models of which a part is solved for once more, when all is chosen by what was held out."""

    def with_held_out(self, dataset: Dataset[Any]) -> Dataset[Any]:
        """The same with what was held out in the training part too."""
        ...


@runtime_checkable
class Rolls(Protocol):
    """Has data that comes one after the other, and can be told block by block."""

    def blocks(self, run: Trained, data: str | None, every: str) -> Sequence[Block]:
        """Blocks of a span of time, of the run's held-out part or of `data`."""
        ...

    def told(self, model: nn.Module, processor: Any, examples: Sequence[Any]) -> Sequence[Any]:
        """What a model says of each example."""
        ...

    def judged(
        self, model: nn.Module, processor: Any, examples: Sequence[Any], told: Sequence[Any], blocks: Sequence[Block]
    ) -> Report:
        """The scores of what was said of examples that came in blocks. model: any that said it."""
        ...


class KeptFacts(Protocol):
    """What is found once a model is trained, and kept in a file of the run."""

    def to_file(self) -> bytes: ...


@runtime_checkable
class Calibrates(Protocol):
    """Has answers with chances, of which something is found on what was held out: a temperature, a threshold."""

    def calibration(self, run: Trained) -> KeptFacts:
        """That of a run which has just been trained, on its held-out part."""
        ...

    def calibrate(self, run: Trained, found: Any) -> None:
        """Let the run answer by it."""
        ...


def able(task: Task[Any], verb: type[V], where: object) -> V:
    """The task as one that has the verb; refused with the names of those that have it."""
    from regard.tasks import tasks

    if isinstance(task, verb):
        return task
    having = " or ".join(one.name for one in tasks() if isinstance(one, verb))
    raise UsageError(f"{where} is a run of the task {task.name}, and this needs one of {having}")


@dataclass(frozen=True)
class Answer:
    """What a model says to one input: the line that is printed, and more for a program.

    value  the answer as a program wants it, such as the list of tags; None where that is the text.
    """

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    value: Any = field(default=None, compare=False)

    @property
    def prediction(self) -> Any:
        """What `run.predict` gives for the input."""
        return self.text if self.value is None else self.value

    def to_dict(self) -> dict[str, Any]:
        """The text and the details in one mapping."""
        return {"text": self.text, **self.details}


@dataclass(frozen=True, repr=False)
class Report:
    """Scores by plain names.

    tables       of scores by length, class or category; a row is a mapping.
    by_distance  of a score, such as how often a fact was recalled, its value by how far back was to be looked.
    change       of scores since another report, where they were measured twice.
    each         tells the task's own score of every example, where the task can.
    """

    scores: Mapping[str, Any]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    by_distance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    change: Mapping[str, float] = field(default_factory=dict)
    each: Callable[[], EachScore] | None = field(default=None, compare=False, repr=False)

    def since(self, before: Report) -> Report:
        """The same with the change of every score that is a fraction."""
        both = {name: (value, before.scores.get(name)) for name, value in self.scores.items()}
        fractions = {name: pair for name, pair in both.items() if all(isinstance(one, float) for one in pair)}
        return replace(self, change={name: value - old for name, (value, old) in fractions.items()})

    def __repr__(self) -> str:
        return f"Report({', '.join(f'{name}={value}' for name, value in self.brief.items())})"

    @property
    def brief(self) -> dict[str, str]:
        """The scores alone, each in a few letters."""
        plain = {name: value for name, value in self.scores.items() if isinstance(value, int | float | str)}
        return {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in plain.items()}

    def _repr_html_(self) -> str:
        from regard.tasks.report_html import as_html

        return as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Scores and tables in plain keys."""
        tables = {name: [dict(row) for row in rows] for name, rows in self.tables.items()}
        found = {**self.scores, **tables, **{name: dict(values) for name, values in self.by_distance.items()}}
        return found | ({"change": dict(self.change)} if self.change else {})
