"""A task from outside the package: how many of five stars a text gives, judged by how far off the answer is (N-1).

my.rated        a rating and its text, with a TAB between them
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
from regard.core.registry import register
from regard.data.kind import Head
from regard.data.ragged import in_batches, ragged
from regard.data.rows import LabelRows
from regard.data.settings import DataSettings
from regard.data.tokenizer import Tokenizer, train_tokenizer
from regard.errors import DataError
from regard.layers.pooling import PoolingConfig
from regard.models.encoder_stack import EncoderStack
from regard.models.labeller import LabellerConfig
from regard.tasks import register_task
from regard.tasks.answer import Answer, Report
from regard.tasks.dataset import ExampleDataset
from regard.tasks.example_task import ExampleTask
from regard.tasks.processor import Processor, files_of, read_files
from regard.tasks.reading import Capabilities, Reading, class_reading, labels_of, text_side
from regard.tasks.task import Trained
from regard.training.losses import model_loss
from regard.training.problem import Objective

if TYPE_CHECKING:
    from torch import nn

    from regard.decoding.text import TextOptions
    from regard.training.settings import TrainSettings

STARS = 5


@dataclass(frozen=True)
class Rated:
    """A text and how many stars it gives."""

    text: str
    stars: int


@dataclass(frozen=True, eq=False)
class RatingProcessor(Processor):
    """tokenizer: of the texts."""

    tokenizer: Tokenizer

    def files(self) -> dict[str, bytes]:
        return files_of(self.tokenizer, {})

    @property
    def spec(self) -> DataSpec:
        return DataSpec(self.tokenizer.vocab_size, n_classes=STARS)

    def read(self, text: str) -> np.ndarray:
        return np.append(self.tokenizer.encode(text), self.tokenizer.eos_id)

    def rows(self, examples: Sequence[Rated]) -> LabelRows:
        labels = np.array([one.stars - 1 for one in examples], np.int64)
        return LabelRows(ragged(self.read(one.text) for one in examples), labels)


@register_task
class Rating(ExampleTask[RatingProcessor]):
    """Stars for texts."""

    name: ClassVar[str] = "rating"
    shape: ClassVar[str] = "N-1"
    used: ClassVar[frozenset[str]] = frozenset({"tokens", "vocab_size"})
    metric: ClassVar[str] = "mae"
    lower_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "texts"
    model: ClassVar[str] = "rater"
    ladder: ClassVar[tuple[str, ...]] = ("rater?encoder=dan", "rater")
    headed: ClassVar[str | None] = "rater"
    can: ClassVar[Capabilities] = Capabilities(tokens=True, classes=True, whole=True)

    def recognises(self, head: Head) -> bool:
        return head.suffix == ".rated"

    def prepare(
        self, settings: DataSettings, seed: int, processor: RatingProcessor | None = None
    ) -> ExampleDataset[RatingProcessor]:
        self.refuse_unused(settings)
        read = self.examples(settings.path, settings, seed)
        train, valid, notes = self.held_out(read, settings.valid, lambda path: self.examples(path, settings, seed))
        processor = processor or RatingProcessor(train_tokenizer("words", [one.text for one in train]))
        rows = processor.rows(train), processor.rows(valid)
        return ExampleDataset(Path(settings.path).name, processor, *rows, valid, notes=notes)

    def examples(self, data: str, settings: DataSettings, seed: int) -> list[Rated]:
        found = []
        for number, line in enumerate(Path(data).read_text(encoding="utf-8").splitlines(), 1):
            stars, tab, text = line.partition("\t")
            if not tab or stars not in "12345":
                raise DataError(f"{data}, line {number}: expected 1 to 5 and a text after a TAB")
            found.append(Rated(text, int(stars)))
        return found

    def load_processor(self, verified: Callable[[str], Path]) -> RatingProcessor:
        return RatingProcessor(read_files(verified, {})[0])

    def objective(self, settings: TrainSettings) -> Objective:
        return model_loss

    @torch.no_grad()
    def answers(
        self, model: nn.Module, processor: RatingProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        ids = ragged(processor.read(one.text if isinstance(one, Rated) else str(one)) for one in inputs)
        found = np.zeros(len(inputs))
        for rows in in_batches(ids.sizes.tolist()):
            tokens, lengths = ids.padded(rows, 0)
            logits = logits_of(model, tokens, context=Context(lengths=lengths))
            found[rows] = logits.softmax(-1).numpy() @ np.arange(1, STARS + 1)
        for stars in found:
            yield Answer(str(round(stars)), {"stars": float(stars)})

    def evaluate(
        self,
        model: nn.Module,
        processor: RatingProcessor,
        examples: Sequence[Rated],
        options: TextOptions | None = None,
    ) -> Report:
        answers = self.answers(model, processor, examples)
        off = [abs(answer.details["stars"] - one.stars) for one, answer in zip(examples, answers, strict=True)]
        return Report({"mae": float(np.mean(off)), "examples": len(off)})

    def describe(self, example: Rated, answer: Answer) -> str:
        return f"{example.text} -> {answer.text} (right: {example.stars})"

    def keys(self, examples: Sequence[Rated]) -> Iterable[str]:
        return (one.text for one in examples)

    def typed(self, example: Rated) -> str:
        return example.text

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        tokenizer, ids = run.processor.tokenizer, self.ids(run.processor, given)
        labels = tuple(labels_of(tokenizer, ids.tolist(), given))
        side = text_side("text", tokenizer, ids.tolist(), labels)
        names = [f"{number + 1} of {STARS}" for number in range(STARS)]
        return class_reading(run.model, ids, side, names, given, run.device)

    def ids(self, processor: RatingProcessor, text: str) -> np.ndarray:
        return processor.read(text)


@register("rater", sizes={"tiny": {"d_model": 8}, "small": {}}, task=Rating.name)
def rater(spec: DataSpec, *, encoder: str = "transformer", d_model: int = 32) -> LabellerConfig:
    """Any encoder, and a rating for the mean of its vectors."""
    stack = EncoderStack(encoder, d_model, 1, 2, 0.0, True)
    return LabellerConfig(stack.config(spec.vocab_size), d_model, spec.n_classes, PoolingConfig(d_model, "mean"))
