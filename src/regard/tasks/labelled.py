"""Labelled text: a whole text is read and one class is told (N-1), as in sentiment and topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from regard.core.data_spec import DataSpec
from regard.core.model import logits_of
from regard.data.example import Labelled, account_of, column, joined
from regard.data.rows import LabelRows
from regard.data.settings import DataSettings
from regard.tasks import register_task
from regard.tasks.calibration import Calibration, calibration, saved_calibration
from regard.tasks.class_report import class_report
from regard.tasks.dataset import Dataset, ExampleDataset
from regard.tasks.kinds import LabelledKind
from regard.tasks.processor import read_files
from regard.tasks.reading import Capabilities, Reading
from regard.tasks.share import Shared, settled
from regard.tasks.verbs import Answer, Report
from regard.tasks.vocabulary import (
    class_numbers,
    classes_of,
)
from regard.tasks.whole_text import ANSWERS, TextProcessor, WholeTextTask
from regard.training.losses import model_loss
from regard.training.problem import Objective

if TYPE_CHECKING:
    from torch import nn

    from regard.decoding.text import TextOptions
    from regard.tasks.outcome import Outcome
    from regard.tasks.task import Trained
    from regard.training.display import Result
    from regard.training.settings import TrainSettings


@dataclass(frozen=True, eq=False)
class LabelProcessor(TextProcessor):
    """classes: the labels, by number.

    calibration  by which chances are told; it lies in a file of its own and is no part of what data is read by.
    """

    classes: tuple[str, ...]
    calibration: Calibration | None = field(default=None, kw_only=True)

    kept: ClassVar[tuple[str, ...]] = ("classes", *TextProcessor.kept)

    @property
    def spec(self) -> DataSpec:
        return DataSpec(self.tokenizer.vocab_size, n_classes=len(self.classes), spelled=self.spelled)

    @property
    def temperature(self) -> float:
        return 1.0 if self.calibration is None else self.calibration.temperature

    def rows(self, examples: Sequence[Labelled]) -> LabelRows:
        return LabelRows(self.texts(examples), class_numbers(examples, self.classes))


@register_task
@dataclass(frozen=True)
class LabelledText(LabelledKind, WholeTextTask[LabelProcessor]):
    """Classification of texts."""

    shape: ClassVar[str] = "N-1"
    metric: ClassVar[str] = "accuracy"
    unit: ClassVar[str] = "texts"
    model: ClassVar[str] = "classifier"
    headed: ClassVar[str | None] = "classifier"
    ladder: ClassVar[tuple[str, ...]] = (
        *("majority", "naive_bayes", "linear"),
        *("dan", "fnn", "rnn", "lstm", "transformer", "mamba"),
        "classifier",
    )
    example: ClassVar[type | None] = Labelled
    world: ClassVar[str | None] = "world:reviews"
    can: ClassVar[Capabilities] = Capabilities(tokens=True, classes=True, whole=True)
    takes_encoder: ClassVar[bool] = True
    echoes: ClassVar[bool] = True
    spells: ClassVar[bool] = True
    of_labels: ClassVar[frozenset[str]] = frozenset({"class_weights", "calibrate", "refit"})

    def prepare(
        self, settings: DataSettings, seed: int, processor: LabelProcessor | None = None
    ) -> ExampleDataset[LabelProcessor]:
        self.refuse_unused(settings)
        best, train, valid, notes = self.parts(settings, seed)
        processor = processor or LabelProcessor(
            **self.reading_of(train, settings), classes=classes_of(column(train, "label"))
        )
        name = Path(settings.path).name
        rows = processor.rows(train), processor.rows(valid)
        account = account_of(train, classes=len(processor.classes))
        return ExampleDataset(name, processor, *rows, valid, best, notes, training=train, account=account)

    def load_processor(self, verified: Callable[[str], Path]) -> LabelProcessor:
        hints = {"classes": tuple[str, ...], **TextProcessor.hints}
        tokenizer, told = read_files(verified, hints)
        return LabelProcessor(tokenizer, **told, calibration=saved_calibration(verified))

    def objective(self, settings: TrainSettings) -> Objective:
        return partial(model_loss, label_smoothing=settings.label_smoothing, smoothing=settings.smoothing)

    def with_held_out(self, dataset: Dataset[LabelProcessor]) -> ExampleDataset[LabelProcessor]:
        assert isinstance(dataset, ExampleDataset)
        every = joined(dataset.training, dataset.examples)
        return replace(dataset, train=dataset.processor.rows(every), training=every)

    def numbered_classes(self, dataset: ExampleDataset[LabelProcessor]) -> tuple[Sequence[str], np.ndarray]:
        assert isinstance(dataset.train, LabelRows)
        return dataset.processor.classes, dataset.train.labels

    def answers(
        self, model: nn.Module, processor: LabelProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        texts = [one.text if isinstance(one, Labelled) else str(one) for one in inputs]
        for text, chances in zip(texts, self._chances(model, processor, texts), strict=True):
            by_class = dict(zip(processor.classes, chances.tolist(), strict=True))
            best = processor.classes[int(chances.argmax())]
            yield Answer(best, {"input": text, "label": best, "probabilities": by_class})

    def _chances(self, model: nn.Module, processor: LabelProcessor, texts: Sequence[str]) -> Iterator[np.ndarray]:
        """The probability of every class for each text, (C,)."""
        return self.outputs(model, processor, texts, lambda logits: (logits / processor.temperature).softmax(-1))

    def classes(self, processor: LabelProcessor) -> tuple[str, ...]:
        return processor.classes

    def probabilities(self, model: nn.Module, processor: LabelProcessor, inputs: Sequence[Any]) -> np.ndarray:
        texts = [one.text if isinstance(one, Labelled) else str(one) for one in inputs]
        found = np.stack(list(self._chances(model, processor, texts)))
        return found / found.sum(1, keepdims=True)  # which float32 leaves a little beside 1

    def evaluate(
        self,
        model: nn.Module,
        processor: LabelProcessor,
        examples: Sequence[Labelled],
        options: TextOptions | None = None,
    ) -> Report:
        labels = class_numbers(examples, processor.classes)
        return class_report(processor.classes, labels, self._chances(model, processor, list(column(examples, "text"))))

    def calibration(self, run: Trained) -> Calibration:
        assert isinstance(run.dataset, ExampleDataset)
        processor: LabelProcessor = run.processor
        judged = self.judged_examples(run.dataset)
        examples = judged[: max(1, ANSWERS // len(processor.classes))]
        texts = list(column(examples, "text"))
        logits = np.array(list(self.outputs(run.model, processor, texts, lambda logits: logits)))
        return calibration(logits, class_numbers(examples, processor.classes), len(judged))

    def calibrate(self, run: Trained, found: Calibration) -> None:
        run.processor = replace(run.processor, calibration=found)
        if isinstance(run.dataset, ExampleDataset):
            run.dataset = replace(run.dataset, processor=run.processor)

    def outcome(self, run: Trained, result: Result) -> Outcome:
        plain, found = super().outcome(run, result), run.processor.calibration
        plain = plain if found is None else plain.with_line(found.line, calibration=asdict(found))
        if not run.is_refit:
            return plain
        count = len(run.held_out("valid"))
        told = (
            f"refit: what is solved for has now learnt the {count:,} held-out texts too, and so answers what is asked "
            f"from here on; scores and samples of this training are from before that (train.refit)"
        )
        return plain.with_line(told, refit=count)

    def judge(self, model: nn.Module, dataset: ExampleDataset[LabelProcessor]) -> float:
        """Accuracy; how much each half of a model counts that has two is set before, for the answers from here on."""
        if not isinstance(head := model.head, Shared):
            return super().judge(model, dataset)
        examples, processor = self.judged_examples(dataset), dataset.processor
        texts, labels = list(column(examples, "text")), class_numbers(examples, processor.classes)
        both = self.of_vectors(model, processor, texts, lambda vectors: torch.stack(head.halves(vectors), 1))
        return settled(head, list(both), labels)

    def is_right(self, example: Labelled, answer: Answer) -> bool:
        return answer.text == example.label

    def describe(self, example: Labelled, answer: Answer) -> str:
        mark = "=" if self.is_right(example, answer) else f"(right: {example.label})"
        return f"{example.text[:200]} -> {self.said(example, answer)} {mark}"

    def said(self, example: Labelled, answer: Answer) -> str:
        return f"{answer.text} {answer.details['probabilities'][answer.text]:.0%}"

    def truth(self, example: Labelled) -> str:
        return example.label

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        processor: LabelProcessor = run.processor
        found = super().reading(run, given, target)
        return replace(found, forward=lambda x: logits_of(run.model, x) / processor.temperature)

    def answer_names(self, processor: LabelProcessor) -> Sequence[str]:
        return processor.classes
