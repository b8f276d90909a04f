"""Regression: a whole text is read and one number is told (N-1), such as a rating, a price or an age.

Models learn and tell numbers in deviations from the mean of the training part; the processor brings them back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from regard.core.data_spec import DataSpec
from regard.core.model import logits_of
from regard.data.answer_rows import NumberRows
from regard.data.example import Examples, Rated, account_of, column
from regard.data.settings import DataSettings
from regard.errors import DataError, UsageError
from regard.evaluation.each import EachScore
from regard.evaluation.regression import regression_scores
from regard.tasks import register_task
from regard.tasks.dataset import ExampleDataset
from regard.tasks.kinds import RegressionKind
from regard.tasks.processor import read_files
from regard.tasks.reading import Capabilities, Reading
from regard.tasks.verbs import Answer, Report
from regard.tasks.whole_text import TextProcessor, WholeTextTask
from regard.training.losses import model_loss
from regard.training.problem import Objective

if TYPE_CHECKING:
    from torch import nn

    from regard.decoding.text import TextOptions
    from regard.tasks.task import Trained
    from regard.training.settings import TrainSettings

FINENESS = 2  # digits of a deviation that a told number has


@dataclass(frozen=True, eq=False)
class NumberProcessor(TextProcessor):
    """centre, scale: mean and deviation of the numbers of training. name: what they are called."""

    centre: float
    scale: float
    name: str

    kept: ClassVar[tuple[str, ...]] = ("centre", "scale", "name", *TextProcessor.kept)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.centre) and 0 < self.scale < math.inf):
            raise UsageError(
                f"centre and scale must be finite, and scale above 0, found {self.centre} and {self.scale}"
            )

    @property
    def spec(self) -> DataSpec:
        return DataSpec(self.tokenizer.vocab_size, n_classes=1, spelled=self.spelled)

    def rows(self, examples: Sequence[Rated]) -> NumberRows:
        numbers = np.fromiter(column(examples, "number"), np.float64, len(examples))
        return NumberRows(self.texts(examples), (numbers - self.centre) / self.scale)

    def told(self, number: float) -> str:
        """A number for people, to a hundredth of a deviation."""
        return f"{number:.{min(12, max(0, FINENESS - math.floor(math.log10(self.scale))))}f}"


@register_task
@dataclass(frozen=True)
class Regression(RegressionKind, WholeTextTask[NumberProcessor]):
    """A number for a text."""

    shape: ClassVar[str] = "N-1"
    metric: ClassVar[str] = "mae"
    lower_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "texts"
    model: ClassVar[str] = "regressor"
    headed: ClassVar[str | None] = "regressor"
    ladder: ClassVar[tuple[str, ...]] = (
        *("average", "ridge"),
        *("dan", "fnn", "rnn", "lstm", "transformer", "mamba"),
    )
    world: ClassVar[str | None] = "world:ratings"
    can: ClassVar[Capabilities] = Capabilities(number=True)
    takes_encoder: ClassVar[bool] = True
    echoes: ClassVar[bool] = True
    example: ClassVar[type | None] = Rated

    def prepare(
        self, settings: DataSettings, seed: int, processor: NumberProcessor | None = None
    ) -> ExampleDataset[NumberProcessor]:
        self.refuse_unused(settings)
        best, train, valid, notes = self.parts(settings, seed)
        processor = processor or NumberProcessor(**self.reading_of(train, settings), **scale_of(train))
        rows = processor.rows(train), processor.rows(valid)
        name = Path(settings.path).name
        return ExampleDataset(name, processor, *rows, valid, best, notes, training=train, account=account_of(train))

    def load_processor(self, verified: Callable[[str], Path]) -> NumberProcessor:
        hints = {"centre": float, "scale": float, "name": str, **TextProcessor.hints}
        tokenizer, told = read_files(verified, hints)
        if missing := hints.keys() - told.keys() - {"apart"}:
            raise UsageError(f"{', '.join(sorted(missing))} is missing")
        return NumberProcessor(tokenizer, **told)

    def objective(self, settings: TrainSettings) -> Objective:
        if settings.label_smoothing:
            raise UsageError("train.label_smoothing: a number has no other classes to share with; leave it out")
        return model_loss

    def numbers(self, model: nn.Module, processor: NumberProcessor, texts: Sequence[str]) -> Iterator[float]:
        """The number that is told of each text."""
        for one in self.outputs(model, processor, texts, lambda told: told):
            yield float(one[0]) * processor.scale + processor.centre

    def answers(
        self, model: nn.Module, processor: NumberProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        texts = [one.text if isinstance(one, Rated) else str(one) for one in inputs]
        for text, number in zip(texts, self.numbers(model, processor, texts), strict=True):
            yield Answer(processor.told(number), {"input": text, "number": number}, number)

    def answer_rows(self, answer: Answer) -> Sequence[Mapping[str, Any]]:
        return [{"answer": answer.value}]

    def evaluate(
        self,
        model: nn.Module,
        processor: NumberProcessor,
        examples: Sequence[Rated],
        options: TextOptions | None = None,
    ) -> Report:
        truth = np.fromiter(column(examples, "number"), np.float64, len(examples))
        told = np.array(list(self.numbers(model, processor, list(column(examples, "text")))))
        scores: dict[str, Any] = {**regression_scores(truth, told), "examples": len(truth)}
        scores["loss"] = float(np.square((told - truth) / processor.scale).mean())
        return Report(scores, each=lambda: EachScore.mean_of(np.abs(told - truth)))

    def describe(self, example: Rated, answer: Answer) -> str:
        return f"{example.text[:200]} -> {answer.text} (right: {example.number:g})"

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        processor: NumberProcessor = run.processor
        found = super().reading(run, given, target)
        return replace(found, forward=lambda x: logits_of(run.model, x) * processor.scale + processor.centre)

    def answer_names(self, processor: NumberProcessor) -> Sequence[str]:
        return (processor.name,)


def scale_of(train: Sequence[Rated]) -> dict[str, Any]:
    """Mean, deviation and name of the numbers of a training part; numbers that are all the same tell nothing."""
    numbers = np.fromiter(column(train, "number"), np.float64, len(train))
    name = train.settings["number"] if isinstance(train, Examples) else "number"
    spread = float(numbers.std()) if len(numbers) else 0.0
    if not 0 < spread < math.inf:
        found = f"only {numbers[0]:g}" if len(numbers) and spread == 0 else "none that can be added up"
        raise DataError(
            f"there must be different numbers to learn from, found {found} in the {len(numbers):,} of the training "
            f"part; give other rows, or hold out others (data.valid)"
        )
    return {"centre": float(numbers.mean()), "scale": spread, "name": name}
