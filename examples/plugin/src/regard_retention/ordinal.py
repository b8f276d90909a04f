"""Ordinal labels: a text is read and a grade from 1 to 5 is told (N-1); 4 for 5 is less wrong than 1 for 5.

    text                         grade
    the soup was cold            2
    a perfect evening            5

A model gives a chance to each grade. The answer is their median: the grade that is the least far off on average, which
is what the task is judged by.

    mae = mean |answer - grade|
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from regard.core.context import Context
from regard.core.data_spec import DataSpec
from regard.core.model import logits_of
from regard.data.kind import Head
from regard.data.ragged import in_batches, ragged
from regard.data.rows import LabelRows
from regard.data.settings import DataSettings
from regard.data.tabular import open_table
from regard.data.tokenizer import Tokenizer, train_tokenizer
from regard.errors import DataError, nearest
from regard.evaluation.each import EachScore
from regard.tasks import register_task
from regard.tasks.dataset import ExampleDataset
from regard.tasks.encoding import Encoded, encoded, reader_of
from regard.tasks.example_task import ExampleTask
from regard.tasks.processor import Processor, files_of, read_files
from regard.tasks.reading import Capabilities, Reading, class_reading, labels_of, text_side
from regard.tasks.verbs import Answer, Report
from regard.training.losses import model_loss
from regard.training.problem import Objective

if TYPE_CHECKING:
    from torch import nn

    from regard.decoding.text import TextOptions
    from regard.tasks.task import Trained
    from regard.training.settings import TrainSettings

TEXT, GRADE = "text", "grade"  # names of columns
GRADES = ("1", "2", "3", "4", "5")


@dataclass(frozen=True)
class Graded:
    """A text and its grade."""

    text: str
    grade: int


@dataclass(frozen=True, eq=False)
class GradeProcessor(Processor):
    """tokenizer: of the texts."""

    tokenizer: Tokenizer

    def files(self) -> dict[str, bytes]:
        return files_of(self.tokenizer, {})

    @property
    def spec(self) -> DataSpec:
        return DataSpec(self.tokenizer.vocab_size, n_classes=len(GRADES))

    def read(self, text: str) -> np.ndarray:
        """The ids of a text with its end, so that no text is empty."""
        return np.append(self.tokenizer.encode(text), self.tokenizer.eos_id)

    def rows(self, examples: Sequence[Graded]) -> LabelRows:
        """What batches are made of; classes are counted from 0."""
        grades = np.array([one.grade - 1 for one in examples], np.int64)
        return LabelRows(ragged(self.read(one.text) for one in examples), grades)


@register_task
class Ordinal(ExampleTask[GradeProcessor]):
    """A grade from 1 to 5 for a text."""

    name: ClassVar[str] = "ordinal"
    shape: ClassVar[str] = "N-1"
    used: ClassVar[frozenset[str]] = frozenset({"tokens", "vocab_size"})
    metric: ClassVar[str] = "mae"
    lower_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "texts"
    model: ClassVar[str] = "grader"
    headed: ClassVar[str | None] = "grader"
    ladder: ClassVar[tuple[str, ...]] = ("dan", "lstm", "grader")
    can: ClassVar[Capabilities] = Capabilities(tokens=True, classes=True, whole=True)
    turn: ClassVar[int] = 2  # before labelled text, which would take grades for classes
    echoes: ClassVar[bool] = True
    example: ClassVar[type | None] = Graded

    def recognises(self, head: Head) -> bool:
        return head.has_columns and {TEXT, GRADE} <= set(head.columns)

    def prepare(
        self, settings: DataSettings, seed: int, processor: GradeProcessor | None = None
    ) -> ExampleDataset[GradeProcessor]:
        self.refuse_unused(settings)
        train, valid, notes = self.held_out(read_graded(settings.path), settings.valid, read_graded)
        if processor is None:
            kind = "words" if settings.tokens == "auto" else settings.tokens
            texts = [one.text for one in train]
            processor = GradeProcessor(train_tokenizer(kind, texts, vocab_size=settings.vocab_size))
        rows = processor.rows(train), processor.rows(valid)
        return ExampleDataset(Path(settings.path).name, processor, *rows, valid, notes=notes)

    def examples(self, data: str, settings: DataSettings, seed: int) -> Sequence[Graded]:
        return read_graded(data)

    def load_processor(self, verified: Callable[[str], Path]) -> GradeProcessor:
        return GradeProcessor(read_files(verified, {})[0])

    def objective(self, settings: TrainSettings) -> Objective:
        return model_loss

    def answers(
        self, model: nn.Module, processor: GradeProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        for one, chances in zip(inputs, self.probabilities(model, processor, inputs), strict=True):
            by_grade = dict(zip(GRADES, chances.tolist(), strict=True))
            grade = 1 + median(chances)
            yield Answer(str(grade), {"input": text_of(one), "probabilities": by_grade}, value=grade)

    def classes(self, processor: GradeProcessor) -> tuple[str, ...]:
        return GRADES

    @torch.no_grad()
    def probabilities(self, model: nn.Module, processor: GradeProcessor, inputs: Sequence[Any]) -> np.ndarray:
        ids, device = ragged(processor.read(text_of(one)) for one in inputs), next(model.parameters()).device
        chances = np.zeros((len(inputs), len(GRADES)))
        for rows in in_batches(ids.sizes.tolist()):
            tokens, lengths = ids.padded(rows, 0)
            logits = logits_of(model, tokens.to(device), context=Context(lengths=lengths.to(device)))
            chances[rows] = logits.double().softmax(-1).cpu().numpy()
        return chances

    def encoded(self, model: nn.Module, processor: GradeProcessor, texts: Sequence[str]) -> Iterator[Encoded]:
        return encoded(model, reader_of(model), ragged(map(processor.read, texts)), after=1)

    def evaluate(
        self,
        model: nn.Module,
        processor: GradeProcessor,
        examples: Sequence[Graded],
        options: TextOptions | None = None,
    ) -> Report:
        answers = self.answers(model, processor, examples)
        off = np.array([abs(int(answer.text) - one.grade) for one, answer in zip(examples, answers, strict=True)])
        scores = {"mae": float(off.mean()), "accuracy": float((off == 0).mean()), "examples": len(off)}
        return Report(scores, each=lambda: EachScore.mean_of(off))

    def describe(self, example: Graded, answer: Answer) -> str:
        return f"{example.text[:200]} -> {answer.text} (right: {example.grade})"

    def keys(self, examples: Sequence[Graded]) -> Iterable[str]:
        return (one.text for one in examples)

    def typed(self, example: Graded) -> str:
        return example.text

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        tokenizer, ids = run.processor.tokenizer, self.ids(run.processor, given)
        side = text_side("text", tokenizer, ids.tolist(), tuple(labels_of(tokenizer, ids.tolist(), given)))
        return class_reading(run.model, ids, side, GRADES, given, run.device)

    def ids(self, processor: GradeProcessor, text: str) -> np.ndarray:
        return processor.read(text)


def read_graded(path: str) -> list[Graded]:
    """The texts of a table with their grades; what is no grade is refused with its line."""
    table = open_table(path, known=(TEXT, GRADE))
    for wanted in (TEXT, GRADE):
        if wanted not in table.cells:
            raise DataError(f"{path}: no column {wanted!r}{nearest(wanted, table.names)}: name it so in the first line")
    found = []
    for row, (text, grade) in enumerate(zip(table.cells[TEXT], table.cells[GRADE], strict=True)):
        if text is None or grade not in GRADES:
            raise DataError(f"{table.where(row)}: expected a text and a grade from 1 to 5, found {grade!r}")
        found.append(Graded(text, int(grade)))
    return found


def text_of(one: Graded | str) -> str:
    """The text of an input, which may be an example."""
    return one.text if isinstance(one, Graded) else one


def median(chances: np.ndarray) -> int:
    """The first number at which at least half of the chance lies at or below it.

    >>> median(np.array([0.4, 0.0, 0.3, 0.3]))
    2
    """
    return int(np.searchsorted(chances.cumsum(), 0.5 * chances.sum()))
