"""Several labels: a whole text is read and all labels that hold are told, or none (N-1), as topics and genres.

Every label has a chance of its own, and is told where that is above a threshold: the one with the largest micro F1 on
what was held out, kept with the run, or a half. Chances have a temperature, found with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from regard.core.data_spec import DataSpec
from regard.core.model import logits_of
from regard.data.answer_rows import LabelSetRows
from regard.data.example import Several, account_of, column
from regard.data.ragged import ragged
from regard.data.settings import DataSettings
from regard.errors import UsageError
from regard.evaluation.multilabel import multilabel_report
from regard.tasks import register_task
from regard.tasks.dataset import ExampleDataset
from regard.tasks.kinds import MultilabelKind
from regard.tasks.processor import read_files
from regard.tasks.reading import Capabilities, Reading
from regard.tasks.threshold import Threshold, saved_threshold, threshold
from regard.tasks.verbs import Answer, Report
from regard.tasks.vocabulary import classes_of
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

LEAST = 1e-12  # of a chance, in a loss
NOTHING = "(no label)"


@dataclass(frozen=True, eq=False)
class SeveralProcessor(TextProcessor):
    """classes: the labels, by number. threshold: of the chance above which one is told; a file of its own has it."""

    classes: tuple[str, ...]
    threshold: Threshold = field(default_factory=Threshold, kw_only=True)

    kept: ClassVar[tuple[str, ...]] = ("classes", *TextProcessor.kept)

    @property
    def spec(self) -> DataSpec:
        return DataSpec(self.tokenizer.vocab_size, n_classes=len(self.classes), spelled=self.spelled)

    def rows(self, examples: Sequence[Several]) -> LabelSetRows:
        """Labels that training never met have no number and are left out: no model can tell them."""
        place = {name: number for number, name in enumerate(self.classes)}
        numbers = ([place[name] for name in one if name in place] for one in column(examples, "labels"))
        return LabelSetRows(self.texts(examples), ragged(numbers), len(self.classes))

    def above(self, chances: np.ndarray) -> list[str]:
        """The labels that are told of chances (L,), the surest first."""
        order = np.argsort(-chances, kind="stable").tolist()
        return [self.classes[number] for number in order if chances[number] > self.threshold.value]


@register_task
@dataclass(frozen=True)
class Multilabel(MultilabelKind, WholeTextTask[SeveralProcessor]):
    """Several labels for a text, or none."""

    shape: ClassVar[str] = "N-1"
    metric: ClassVar[str] = "micro_f1"
    unit: ClassVar[str] = "labels"
    model: ClassVar[str] = "multilabeller"
    headed: ClassVar[str | None] = "multilabeller"
    ladder: ClassVar[tuple[str, ...]] = (
        *("label_rates", "linear_labels"),
        *("dan", "fnn", "rnn", "lstm", "transformer", "mamba"),
    )
    world: ClassVar[str | None] = "world:topics"
    can: ClassVar[Capabilities] = Capabilities(number=True)
    takes_encoder: ClassVar[bool] = True
    echoes: ClassVar[bool] = True
    example: ClassVar[type | None] = Several
    of_labels: ClassVar[frozenset[str]] = frozenset({"calibrate"})

    def prepare(
        self, settings: DataSettings, seed: int, processor: SeveralProcessor | None = None
    ) -> ExampleDataset[SeveralProcessor]:
        self.refuse_unused(settings)
        best, train, valid, notes = self.parts(settings, seed)
        classes = classes_of(chain.from_iterable(column(train, "labels"))) if processor is None else processor.classes
        processor = processor or SeveralProcessor(**self.reading_of(train, settings), classes=classes)
        rows = processor.rows(train), processor.rows(valid)
        new = sorted(set(chain.from_iterable(column(valid, "labels"))) - set(classes))
        if new:
            notes += (f"{len(new)} labels of the held-out part are not in the training part, such as {new[0]!r}",)
        account, name = account_of(train, labels=len(classes)), Path(settings.path).name
        return ExampleDataset(name, processor, *rows, valid, best, notes, training=train, account=account)

    def load_processor(self, verified: Callable[[str], Path]) -> SeveralProcessor:
        hints = {"classes": tuple[str, ...], **TextProcessor.hints}
        tokenizer, told = read_files(verified, hints)
        return SeveralProcessor(tokenizer, **told, threshold=saved_threshold(verified))

    def objective(self, settings: TrainSettings) -> Objective:
        if settings.label_smoothing and settings.smoothing != "all":
            raise UsageError("train.smoothing: a label has no others to share with; leave it at all")
        return partial(model_loss, label_smoothing=settings.label_smoothing)

    def _chances(self, model: nn.Module, processor: SeveralProcessor, texts: Sequence[str]) -> Iterator[np.ndarray]:
        """The chance of every label for each text, (L,)."""
        return self.outputs(
            model, processor, texts, lambda logits: (logits / processor.threshold.temperature).sigmoid()
        )

    def answers(
        self, model: nn.Module, processor: SeveralProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        texts = [one.text if isinstance(one, Several) else str(one) for one in inputs]
        for text, chances in zip(texts, self._chances(model, processor, texts), strict=True):
            by_label, told = dict(zip(processor.classes, chances.tolist(), strict=True)), processor.above(chances)
            details = {"input": text, "labels": told, "probabilities": by_label}
            yield Answer(", ".join(told) or NOTHING, details, list(told))

    def answer_rows(self, answer: Answer) -> Sequence[Mapping[str, Any]]:
        return [{"answer": answer.value}]

    def evaluate(
        self,
        model: nn.Module,
        processor: SeveralProcessor,
        examples: Sequence[Several],
        options: TextOptions | None = None,
    ) -> Report:
        truth, told, losses = list(column(examples, "labels")), list[list[str]](), list[float]()
        found = self._chances(model, processor, list(column(examples, "text")))
        for true, chances in zip(truth, found, strict=True):
            told.append(processor.above(chances))
            hits = np.isin(processor.classes, list(true))
            losses.append(float(-np.log(np.maximum(np.where(hits, chances, 1 - chances), LEAST)).mean()))
        report = multilabel_report(truth, told, processor.classes)
        scores = {**report.scores, "examples": len(truth), "loss": float(np.mean(losses))}
        table = [{"label": name, **vars(one)} for name, one in report.labels.items()]
        return Report(scores, {"by_label": table}, each=lambda: report.each)

    def calibration(self, run: Trained) -> Threshold:
        assert isinstance(run.dataset, ExampleDataset)
        processor: SeveralProcessor = run.processor
        judged = self.judged_examples(run.dataset)
        examples = judged[: max(1, ANSWERS // len(processor.classes))]
        logits = np.array(list(self.outputs(run.model, processor, list(column(examples, "text")), lambda found: found)))
        hits = np.array([np.isin(processor.classes, list(true)) for true in column(examples, "labels")])
        return threshold(logits.astype(np.float64), hits, len(judged))

    def calibrate(self, run: Trained, found: Threshold) -> None:
        run.processor = replace(run.processor, threshold=found)
        if isinstance(run.dataset, ExampleDataset):
            run.dataset = replace(run.dataset, processor=run.processor)

    def outcome(self, run: Trained, result: Result) -> Outcome:
        found: Threshold = run.processor.threshold
        plain = super().outcome(run, result)
        return plain.with_line(found.line, threshold=asdict(found))

    def is_right(self, example: Several, answer: Answer) -> bool:
        return set(example.labels) == set(answer.details["labels"])

    def truth(self, example: Several) -> str:
        return ", ".join(example.labels) or NOTHING

    def describe(self, example: Several, answer: Answer) -> str:
        mark = "=" if self.is_right(example, answer) else f"(right: {self.truth(example)})"
        return f"{example.text[:200]} -> {answer.text} {mark}"

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        found, temperature = super().reading(run, given, target), run.processor.threshold.temperature
        return replace(found, forward=lambda x: (logits_of(run.model, x) / temperature).sigmoid())

    def answer_names(self, processor: SeveralProcessor) -> Sequence[str]:
        return processor.classes
