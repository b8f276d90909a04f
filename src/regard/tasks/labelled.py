"""Labelled text: a whole text is read and one class is told (N-1), as in sentiment and topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch

from regard.core.context import Context
from regard.core.data_spec import DataSpec
from regard.core.device import device_of
from regard.core.model import logits_of
from regard.core.progress import watched
from regard.data.example import Examples, Labelled, account_of, column
from regard.data.kind import Head
from regard.data.labelled import read_labelled
from regard.data.ragged import in_batches, ragged
from regard.data.rows import LabelRows, Rows
from regard.data.settings import DataSettings
from regard.data.tokenizer import Tokenizer, train_tokenizer
from regard.data.tokenizer.tokenizer import code_points
from regard.data.tokenizer.word import split
from regard.data.worlds import PREFIX, world_of
from regard.evaluation.classification import classification_report
from regard.evaluation.each import EachScore
from regard.models.ensemble import EnsembleConfig
from regard.tasks import register_task
from regard.tasks.dataset import ExampleDataset
from regard.tasks.example_task import ExampleTask
from regard.tasks.processor import Processor, files_of, read_files
from regard.tasks.reading import Capabilities, Reading, Side, class_reading, cut, fitted, labels_of, text_side
from regard.tasks.verbs import Answer, Report
from regard.tasks.vocabulary import (
    SpelledWords,
    class_numbers,
    classes_of,
    hidden_word,
    require_tokenizer_free,
    words_seen_twice,
)
from regard.training.losses import model_loss
from regard.training.problem import Objective

if TYPE_CHECKING:
    from torch import nn

    from regard.core.config import Config
    from regard.decoding.text import TextOptions
    from regard.tasks.pretrained import Start
    from regard.tasks.task import Trained
    from regard.training.settings import TrainSettings

SPELLED = "spelled"  # words with their spelling, beside the kinds of tokenizers
TEXT = "text"  # what a model reads that looks at characters itself
CHANCES = 1 << 22  # of classes, that are in memory at one time


@dataclass(frozen=True, eq=False)
class LabelProcessor(Processor):
    """tokenizer: of the texts. classes: the labels, by number. spelled: words come with their spelling.

    framed  an `<eos>` stands before a text too.
    """

    tokenizer: Tokenizer
    classes: tuple[str, ...]
    spelled: bool = False
    truncate: bool = False
    framed: bool = False

    def files(self) -> dict[str, bytes]:
        told = {name: getattr(self, name) for name in ("classes", "spelled", "truncate", "framed")}
        return files_of(self.tokenizer, told)

    @property
    def spec(self) -> DataSpec:
        return DataSpec(self.tokenizer.vocab_size, n_classes=len(self.classes), spelled=self.spelled)

    @cached_property
    def _words(self) -> SpelledWords:
        return SpelledWords(self.tokenizer)

    def read(self, text: str) -> np.ndarray:
        """The ids of a text with its `<eos>`, so that no text is empty; (n,), or (n, 1 + L) with spellings."""
        if self.spelled:
            numbers = self._spelled(text)  # which may add rows to the table
            return self._words.table[numbers]
        ids = self.tokenizer.encode(text)
        found = np.full(len(ids) + 1 + self.framed, self.tokenizer.eos_id)
        found[0] = self.tokenizer.start_id if self.framed else found[0]
        found[int(self.framed) : -1] = ids
        return found

    def reader(self, model: nn.Module) -> Callable[[str], np.ndarray]:
        """How a model reads texts: as ids, or as the characters themselves."""
        return characters if getattr(model, "reads", None) == TEXT else self.read

    def rows(self, examples: Sequence[Labelled]) -> LabelRows:
        read = self._spelled if self.spelled else self.read
        texts = ragged(map(read, watched(column(examples, "text"), "tokenising", "texts")))
        texts = replace(texts, table=self._words.table) if self.spelled else texts
        return LabelRows(texts, class_numbers(examples, self.classes))

    def _spelled(self, text: str) -> np.ndarray:
        """The words of a text and its end, as rows of the table of spellings."""
        return np.append(self._words.numbers(split(text)), self._words.END)


@register_task
@dataclass(frozen=True)
class LabelledText(ExampleTask[LabelProcessor]):
    """Classification of texts. tokenizer: of the run that a fine-tuned one starts from; None: one of the texts."""

    tokenizer: Tokenizer | None = None

    name: ClassVar[str] = "labelled"
    shape: ClassVar[str] = "N-1"
    used: ClassVar[frozenset[str]] = frozenset({"tokens", "vocab_size", "text", "label", "missing", "truncate"})
    metric: ClassVar[str] = "accuracy"
    unit: ClassVar[str] = "texts"
    model: ClassVar[str] = "classifier"
    headed: ClassVar[str | None] = "classifier"
    ladder: ClassVar[tuple[str, ...]] = (
        *("majority", "naive_bayes", "linear"),
        *("dan", "fnn", "rnn", "lstm", "transformer", "mamba"),
    )
    world: ClassVar[str | None] = "world:reviews"
    can: ClassVar[Capabilities] = Capabilities(tokens=True, classes=True, whole=True)
    turn: ClassVar[int] = 3
    takes_encoder: ClassVar[bool] = True
    echoes: ClassVar[bool] = True

    def recognises(self, head: Head) -> bool:
        return head.has_columns and not head.unclear

    def starting_from(self, start: Start) -> Self:
        return replace(self, tokenizer=start.tokenizer)

    def prepare(
        self, settings: DataSettings, seed: int, processor: LabelProcessor | None = None
    ) -> ExampleDataset[LabelProcessor]:
        self.refuse_unused(settings)
        best, train, valid, notes = self._parts(settings, seed)
        processor = processor or replace(self._processor(train, settings), truncate=settings.truncate)
        name = Path(settings.path).name
        rows = processor.rows(train), processor.rows(valid)
        account = account_of(train, classes=len(processor.classes))
        return ExampleDataset(name, processor, *rows, valid, best, notes, training=train, account=account)

    def examples(self, data: str, settings: DataSettings, seed: int) -> Sequence[Labelled]:
        if data.startswith(PREFIX):
            return world_of(data, self.name, seed).examples("valid")
        return _read(data, settings)

    def load_processor(self, verified: Callable[[str], Path]) -> LabelProcessor:
        hints = {"classes": tuple[str, ...], "spelled": bool, "truncate": bool, "framed": bool}
        tokenizer, told = read_files(verified, hints)
        return LabelProcessor(tokenizer, **told)

    def objective(self, settings: TrainSettings) -> Objective:
        return partial(model_loss, label_smoothing=settings.label_smoothing, smoothing=settings.smoothing)

    def hidden(self, processor: LabelProcessor) -> int:
        return hidden_word(processor.tokenizer)

    def fit(self, rows: Rows, model: nn.Module, settings: DataSettings) -> Rows:
        assert isinstance(rows, LabelRows)
        whole: Any = model
        return LabelRows(cut(rows.text, whole.max_length, settings.truncate), rows.labels)

    def combined(self, config: Config, count: int) -> Config:
        return EnsembleConfig(config, count)

    def answers(
        self, model: nn.Module, processor: LabelProcessor, inputs: Sequence[Any], options: TextOptions | None = None
    ) -> Iterator[Answer]:
        texts = [one.text if isinstance(one, Labelled) else str(one) for one in inputs]
        for text, chances in zip(texts, self._chances(model, processor, texts), strict=True):
            by_class = dict(zip(processor.classes, chances.tolist(), strict=True))
            best = processor.classes[int(chances.argmax())]
            yield Answer(best, {"input": text, "label": best, "probabilities": by_class})

    @torch.no_grad()
    def _chances(self, model: nn.Module, processor: LabelProcessor, texts: Sequence[str]) -> Iterator[np.ndarray]:
        """The probability of every class for each text, (C,)."""
        whole: Any = model
        ids = fitted(ragged(map(processor.reader(model), texts)), whole.max_length, processor.truncate)
        device, at_once = device_of(model), max(1, CHANCES // len(processor.classes))
        for first in range(0, len(texts), at_once):
            sizes = ids.sizes[first : first + at_once].tolist()
            found = np.zeros((len(sizes), len(processor.classes)))
            for rows in in_batches(sizes):
                tokens, lengths = ids.padded(first + rows, 0)
                logits = logits_of(model, tokens.to(device), context=Context(lengths=lengths.to(device)))
                found[rows] = logits.float().softmax(-1).cpu().numpy()
            yield from found

    def evaluate(
        self,
        model: nn.Module,
        processor: LabelProcessor,
        examples: Sequence[Labelled],
        options: TextOptions | None = None,
    ) -> Report:
        labels, told, chances = class_numbers(examples, processor.classes), list[str](), list[float]()
        found = self._chances(model, processor, list(column(examples, "text")))
        for label, own in zip(labels.tolist(), found, strict=True):
            told.append(processor.classes[int(own.argmax())])
            chances.append(float(own[label]))
        report = classification_report(list(column(examples, "label")), told)
        scores = {"accuracy": report.accuracy, "macro_f1": report.macro_f1, "examples": report.examples}
        scores["loss"] = float(-np.log(np.maximum(chances, 1e-30)).mean())
        table = [{"class": name, **vars(found)} for name, found in report.classes.items()]
        right = [label == guess for label, guess in zip(column(examples, "label"), told, strict=True)]
        return Report(scores, {"by_class": table}, each=lambda: EachScore.mean_of(right))

    def is_right(self, example: Labelled, answer: Answer) -> bool:
        return answer.text == example.label

    def describe(self, example: Labelled, answer: Answer) -> str:
        chance = answer.details["probabilities"][answer.text]
        mark = "=" if self.is_right(example, answer) else f"(right: {example.label})"
        return f"{example.text[:200]} -> {answer.text} {chance:.0%} {mark}"

    def keys(self, examples: Sequence[Labelled]) -> Iterable[str]:
        return column(examples, "text")

    def typed(self, example: Labelled) -> str:
        return example.text

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        processor: LabelProcessor = run.processor
        ids = processor.reader(run.model)(given)
        if getattr(run.model, "reads", None) == TEXT:
            return class_reading(run.model, ids, Side("text", tuple(given)), processor.classes, given, run.device)
        plain = ids[:, 0] if ids.ndim == 2 else ids
        labels = tuple(labels_of(processor.tokenizer, plain.tolist(), given))
        side = text_side("text", processor.tokenizer, plain.tolist(), labels)
        return class_reading(run.model, ids, side, processor.classes, given, run.device)

    def ids(self, processor: LabelProcessor, text: str) -> np.ndarray:
        return processor.read(text)

    def _parts(
        self, settings: DataSettings, seed: int
    ) -> tuple[dict[str, float], Sequence[Labelled], Sequence[Labelled], tuple[str, ...]]:
        """Best scores, examples to train on, those held out, and what is to be said of them."""
        if settings.path.startswith(PREFIX):
            world = world_of(settings.path, self.name, seed)
            return world.best, world.examples("train"), world.examples("valid"), ()
        found = _read(settings.path, settings)
        notes = (found.note,) if found.note else ()
        same = replace(settings, **found.settings)
        train, valid, told = self.held_out(found, settings.valid, lambda path: _read(path, same))
        return {}, train, valid, notes + told

    def _processor(self, train: Sequence[Labelled], settings: DataSettings) -> LabelProcessor:
        texts, classes = column(train, "text"), classes_of(column(train, "label"))
        if self.tokenizer is not None:
            require_tokenizer_free(settings)
            return LabelProcessor(self.tokenizer, classes, framed=True)
        spelled = settings.tokens == SPELLED
        if settings.tokens in ("auto", "words", SPELLED):
            tokenizer = words_seen_twice(lambda: watched(texts, "learning words", "texts"), settings.vocab_size)
        else:
            tokenizer = train_tokenizer(settings.tokens, texts, vocab_size=settings.vocab_size)
        return LabelProcessor(tokenizer, classes, spelled)


def _read(data: str, settings: DataSettings) -> Examples[Labelled]:
    return read_labelled(
        data, text=settings.text, label=settings.label, missing=settings.missing, choices=settings.choices
    )


def characters(text: str) -> np.ndarray:
    """A text as the numbers of its characters, for a model that takes them apart itself."""
    return code_points(text).astype(np.int64)
