"""What tasks share that read a whole text and tell one answer (N-1): a class, several labels, a number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from regard.core.progress import watched
from regard.data.example import column
from regard.data.ragged import Ragged, ragged
from regard.data.rows import Rows
from regard.data.settings import DataSettings
from regard.data.tokenizer import Tokenizer, train_tokenizer
from regard.data.tokenizer.word import split
from regard.data.worlds import PREFIX, world_of
from regard.errors import UsageError
from regard.models.ensemble import EnsembleConfig
from regard.tasks.data_kind import WholeTextKind
from regard.tasks.encoding import Encoded, encoded, reader_of
from regard.tasks.example_task import ExampleTask
from regard.tasks.processor import Ids, Processor, files_of, ids_of
from regard.tasks.reading import Reading, Side, class_reading, cut, each_answer, fitted, labels_of, text_side
from regard.tasks.vocabulary import (
    SpelledWords,
    characters,
    hidden_word,
    marks_apart,
    require_tokenizer_free,
    words_seen_twice,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from regard.core.config import Config
    from regard.tasks.pretrained import Start
    from regard.tasks.task import Trained

SPELLED = "spelled"  # words with their spelling, beside the kinds of tokenizers
TEXT, WORDS = "text", "words"  # what a model reads that looks at characters, and one that looks at spellings
ANSWERS = 1 << 22  # numbers that are in memory at one time


@dataclass(frozen=True, eq=False)
class TextProcessor(Processor):
    """tokenizer: of the texts. spelled: words come with their spelling. framed: an `<eos>` stands before a text too.

    apart  marks are words of their own, wherever they stand.
    """

    tokenizer: Tokenizer
    spelled: bool = field(default=False, kw_only=True)
    truncate: bool = field(default=False, kw_only=True)
    framed: bool = field(default=False, kw_only=True)
    apart: bool = field(default=False, kw_only=True)

    kept: ClassVar[tuple[str, ...]] = ("spelled", "truncate", "framed")  # what its file says
    hints: ClassVar[dict[str, Any]] = dict.fromkeys((*kept, "apart"), bool)

    def files(self) -> dict[str, bytes]:
        # Of a run from before marks stood apart it is not told that they do not, so that its hash is the same.
        names = (*self.kept, *(["apart"] if self.apart else []))
        return files_of(self.tokenizer, {name: getattr(self, name) for name in names})

    @cached_property
    def _words(self) -> SpelledWords:
        return SpelledWords(self.tokenizer)

    def read(self, text: str | Ids) -> np.ndarray:
        """The ids of a text with its `<eos>`, so that no text is empty; (n,), or (n, 1 + L) with spellings."""
        given = isinstance(text, Ids)
        if self.spelled:
            if given:
                raise UsageError("the run reads words with their spelling, and tokens have none: give texts")
            numbers = self._spelled(text)  # which may add rows to the table
            return self._words.table[numbers]
        ids = ids_of(self.tokenizer, text if given else self.written(text))
        found = np.full(len(ids) + 1 + self.framed, self.tokenizer.eos_id)
        found[0] = self.tokenizer.start_id if self.framed else found[0]
        found[int(self.framed) : -1] = ids
        return found

    def reader(self, model: nn.Module) -> Callable[[str], np.ndarray]:
        """How a model reads texts: as ids, as words with their spelling, or as the characters themselves."""
        if (reads := getattr(model, "reads", None)) == TEXT:
            return characters
        return (lambda text: self.read(text)[:, 0]) if self.spelled and reads != WORDS else self.read

    def texts(self, examples: Sequence[Any]) -> Ragged:
        """The texts of examples as models read them."""
        read = self._spelled if self.spelled else self.read
        texts = ragged(map(read, watched(column(examples, "text"), "tokenising", "texts")))
        return replace(texts, table=self._words.table) if self.spelled else texts

    def _spelled(self, text: str) -> np.ndarray:
        """The words of a text and its end, as rows of the table of spellings."""
        return np.append(self._words.numbers(split(self.written(text))), self._words.END)

    def written(self, text: str) -> str:
        """A text as it is read, its words and marks between blanks."""
        return marks_apart(text) if self.apart else text


P = TypeVar("P", bound=TextProcessor)


@dataclass(frozen=True)
class WholeTextTask(WholeTextKind, ExampleTask[P]):
    """Base of such tasks. tokenizer: of the run that a fine-tuned one starts from; None: one of the texts.

    spells  unless somebody names tokens, words come with their spelling and marks stand apart.
    """

    tokenizer: Tokenizer | None = None

    spells: ClassVar[bool] = False
    takes_ids: ClassVar[bool] = True

    @abstractmethod
    def answer_names(self, processor: P) -> Sequence[str]:
        """What each number that a model gives is called."""

    def starting_from(self, start: Start) -> Self:
        return replace(self, tokenizer=start.tokenizer)

    def fit(self, rows: Rows, model: nn.Module, settings: DataSettings) -> Rows:
        whole: Any = model
        own: Any = rows  # of texts: each kind of them has a field `text`
        text = own.text if getattr(model, "reads", None) == WORDS else own.text.first()
        return replace(own, text=cut(text, whole.max_length, settings.truncate))

    def combined(self, config: Config, count: int) -> Config:
        return EnsembleConfig(config, count)

    def hidden(self, processor: P) -> int:
        return hidden_word(processor.tokenizer)

    def typed(self, example: Any) -> str:
        return example.text

    def ids(self, processor: P, text: str) -> np.ndarray:
        return processor.read(text)

    def outputs(
        self, model: nn.Module, processor: P, texts: Sequence[str], answer: Callable[[Tensor], Tensor]
    ) -> Iterator[np.ndarray]:
        """What `answer` makes of what a model says to each text, (C,)."""
        whole: Any = model
        return self.of_vectors(model, processor, texts, lambda vectors: answer(whole.head(vectors).float()))

    def of_vectors(
        self, model: nn.Module, processor: P, texts: Sequence[str], of: Callable[[Tensor], Tensor]
    ) -> Iterator[np.ndarray]:
        """What `of` makes of the vector of each text."""
        whole: Any = model
        ids = fitted(ragged(map(processor.reader(model), texts)), whole.max_length, processor.truncate)
        return each_answer(model, ids, max(1, ANSWERS // len(self.answer_names(processor))), of)

    def encoded(self, model: nn.Module, processor: P, texts: Sequence[Any]) -> Iterator[Encoded]:
        whole: Any = model
        ids = fitted(ragged(map(processor.read, texts)), whole.max_length, processor.truncate)
        return encoded(model, reader_of(model), ids, before=int(processor.framed), after=1)

    def reading(self, run: Trained, given: str, target: str | None) -> Reading:
        processor: P = run.processor
        ids = processor.reader(run.model)(given)
        if getattr(run.model, "reads", None) == TEXT:
            side = Side("text", tuple(given))
        else:
            plain = ids[:, 0] if ids.ndim == 2 else ids
            labels = tuple(labels_of(processor.tokenizer, plain.tolist(), processor.written(given)))
            side = text_side("text", processor.tokenizer, plain.tolist(), labels)
        return class_reading(run.model, ids, side, self.answer_names(processor), given, run.device)

    def parts(
        self, settings: DataSettings, seed: int
    ) -> tuple[dict[str, float], Sequence[Any], Sequence[Any], tuple[str, ...]]:
        """Best scores, examples to train on, those held out, and what is to be said of them."""
        if settings.path.startswith(PREFIX):
            world = world_of(settings.path, self.name, seed)
            return world.best, world.examples("train"), world.examples("valid"), ()
        found = self.read(settings.path, settings)
        notes = (found.note,) if found.note else ()
        same = replace(settings, **found.settings)
        train, valid, told = self.held_out(found, settings.valid, lambda path: self.read(path, same))
        return {}, train, valid, notes + told

    def reading_of(self, train: Sequence[Any], settings: DataSettings) -> dict[str, Any]:
        """How the texts of a training part are to be read: the first fields of a processor by name."""
        told = {"truncate": settings.truncate}
        if self.tokenizer is not None:
            require_tokenizer_free(settings)
            return {"tokenizer": self.tokenizer, "framed": True, **told}
        texts, kind = column(train, "text"), settings.tokens
        if kind not in ("auto", "words", SPELLED):
            return {"tokenizer": train_tokenizer(kind, texts, vocab_size=settings.vocab_size), **told}
        apart, seen = self.spells and kind == "auto", partial(watched, texts, "learning words", "texts")
        tokenizer = words_seen_twice(lambda: map(marks_apart if apart else str, seen()), settings.vocab_size)
        return {"tokenizer": tokenizer, "spelled": apart or kind == SPELLED, "apart": apart, **told}
