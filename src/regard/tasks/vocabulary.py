"""What the tasks of labels share: a vocabulary with a trained `<unk>`, the list of classes, and what was never seen.

Tagged words to numbers: words to their ids and spellings, or to the tokens of a pre-trained model, and tags.

Of the pieces of a word one carries its tag, the first (Devlin et al. 2019, 5.3):

    words      the  unhappy       dog
    pieces     the  _un   happy   _dog
    tags       DET  ADJ   -100    NOUN

An encoder that looks back only has read a whole word at its last piece, and there the last one carries the tag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from torch import nn

from regard.core.data_spec import DataSpec
from regard.core.progress import watched
from regard.data.batch import NOT_COUNTED
from regard.data.example import Labelled, Tagged, column
from regard.data.ragged import Ragged, ragged
from regard.data.rows import TagRows
from regard.data.settings import DataSettings
from regard.data.table import is_number
from regard.data.tokenizer import Tokenizer, train_tokenizer
from regard.data.tokenizer.tokenizer import code_points
from regard.data.tokenizer.word import split
from regard.errors import DataError, UsageError, nearest
from regard.fitting.grams import WORD
from regard.fitting.word_features import clipped
from regard.layers.spelled import KINDS, SPELLING_LENGTH, spelling
from regard.models.word_tagger import LETTERS
from regard.tasks.processor import Processor, files_of
from regard.tasks.word_forms import numbered, row_of

SEEN_ENOUGH = 2
SPECIALS = 3


def words_seen_twice(texts: Callable[[], Iterable[str]], vocab_size: int | None) -> Tokenizer:
    """Words that occur at least twice, so that `<unk>` is met, and learnt, in training. `texts` are read twice."""
    counts = Counter[str]()
    for text in texts():
        counts.update(split(text))
    often = sum(count >= SEEN_ENOUGH for count in counts.values())
    most = often + SPECIALS if often < len(counts) and often > 0 else None
    chosen = vocab_size if most is None or (vocab_size is not None and vocab_size < most) else most
    return train_tokenizer("words", texts(), vocab_size=chosen)


def marks_apart(text: str) -> str:
    """A text with blanks around its words and its marks.

    >>> marks_apart("Great, isn't it?")
    "Great , isn't it ?"
    """
    return " ".join(WORD.findall(text))


def characters(text: str) -> np.ndarray:
    """A text as the numbers of its characters, for a model that takes them apart itself."""
    return code_points(text).astype(np.int64)


def require_tokenizer_free(settings: DataSettings) -> None:
    """Refuse a choice of tokens where those of another run are used."""
    for name, free in (("tokens", "auto"), ("vocab_size", None)):
        if getattr(settings, name) != free:
            raise UsageError(f"data.{name}: the tokens are those of the run that is started from; leave it out")


def hidden_word(tokenizer: Tokenizer) -> int:
    """The token that stands for a hidden word."""
    return tokenizer.eos_id if tokenizer.unknown_id is None else tokenizer.unknown_id


class SpelledWords:
    """Words to ids, spellings and forms, each word worked out once: a row of a table that grows.

    The first row is `<eos>`, which has no letters. forms: those that are told apart (word_forms.py); none: words come
    without.
    """

    END = 0

    def __init__(self, tokenizer: Tokenizer, forms: Sequence[str] = ()) -> None:
        self.tokenizer = tokenizer
        self._forms = numbered(forms)
        self._known: dict[str, int] = {}
        self._rows = np.zeros((1024, 1 + SPELLING_LENGTH + (KINDS if forms else 0)), np.int32)
        self._rows[self.END, 0] = tokenizer.eos_id

    @property
    def table(self) -> np.ndarray:
        """(V, 1 + L + K): the rows of all words so far."""
        return self._rows[: 1 + len(self._known)]

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        """(n, 1 + L + K)."""
        numbers = self.numbers(words)
        return self.table[numbers]

    def numbers(self, words: Iterable[str]) -> np.ndarray:
        """The row of each word, (n,)."""
        known = self._known
        return np.array([known[word] if word in known else self._added(word) for word in words], np.int64)

    def _added(self, word: str) -> int:
        number = self._known[word] = 1 + len(self._known)
        if number == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        row = self._rows[number]
        row[0] = self.token_of(word)
        row[1 : 1 + SPELLING_LENGTH] = spelling(word)
        if self._forms:
            row[1 + SPELLING_LENGTH :] = row_of(word, self.token_of, self._forms)
        return number

    def token_of(self, word: str) -> int:
        """The id of one word, that of `<unk>` for one without."""
        ids = self.tokenizer.encode(word)
        return int(ids[0]) if len(ids) == 1 else self.tokenizer.unknown_id or 0


def classes_of(labels: Iterable[str]) -> tuple[str, ...]:
    """The different labels, in order."""
    counts = Counter(labels)
    if len(counts) < 2:
        told = f"only {next(iter(counts))!r}" if counts else "none"
        raise DataError(
            f"a label has to tell apart at least two classes, found {told} in the training part, which has "
            f"{counts.total():,} of them; give more rows, or hold out others (data.valid)"
        )
    return tuple(sorted(counts))


def class_numbers(examples: Sequence[Labelled], classes: Sequence[str]) -> np.ndarray:
    """The places of all labels among the classes, (n,) int64."""
    place = {name: number for number, name in enumerate(classes)}
    found = np.fromiter((place.get(label, -1) for label in column(examples, "label")), np.int64, len(examples))
    for number in np.flatnonzero(found < 0)[:1].tolist():
        class_number(examples[number].label, classes, examples[number].where)
    return found


def letters(sentences: Iterable[Sequence[str]]) -> Ragged:
    """Words as the numbers of their characters, 0 after the end of each: (n, L), of a table of different words."""
    index: dict[str, int] = {}
    rows = ragged([index.setdefault(clipped(word), len(index)) for word in words] for words in sentences)
    width = max(1, max(map(len, index), default=1))
    text = np.array(list(index), f"<U{width}")
    return replace(rows, table=text.view("<u4").reshape(len(index), width).astype(np.int32))


def class_number(label: str, classes: Sequence[str], where: str, what: str = "label") -> int:
    """The place of a label among the classes; one that training never saw is refused where it stands."""
    if label not in classes:
        # Of numbers there is always another one near: none is meant, and those with a point are no classes.
        told = f"the {what} {label!r} does not occur in the training part"
        told += "" if is_number(label) else nearest(label, classes)
        numbers = "; data.number=COLUMN learns numbers as such" if "." in label and is_number(label) else ""
        rare = f"train on data that has it: where a {what} is rare, leave it out or hold out other rows (data.valid)"
        raise DataError(f"{f'{where}: ' if where else ''}{told}; mend it, or {rare}{numbers}")
    return classes.index(label)


@dataclass(frozen=True, eq=False)
class TagProcessor(Processor):
    """tokenizer: of single words. classes: the tags, by number. bio: an I- tag is answered only inside of its span.

    forms  of words that are told apart, see word_forms.py; none in a run from before they were read.
    """

    tokenizer: Tokenizer
    classes: tuple[str, ...]
    bio: bool = field(default=False, kw_only=True)
    forms: tuple[str, ...] = field(default=(), kw_only=True)

    def files(self) -> dict[str, bytes]:
        return files_of(self.tokenizer, self._told)

    @property
    def _told(self) -> dict[str, Any]:
        # What is as in a run from before there was a choice is not told, so that its hash is the same.
        later = {"bio": self.bio, "forms": self.forms}
        return {"classes": self.classes} | {name: value for name, value in later.items() if value}

    @property
    def spec(self) -> DataSpec:
        n_forms = 1 + KINDS + len(self.forms) if self.forms else 0
        return DataSpec(
            self.tokenizer.vocab_size, n_classes=len(self.classes), spelled=True, n_forms=n_forms, spans=self.bio
        )

    @cached_property
    def _words(self) -> SpelledWords:
        return SpelledWords(self.tokenizer, self.forms)

    def knows(self, word: str) -> bool:
        """Whether a word has a token of its own."""
        return self.read([word])[0, 0] != self.tokenizer.unknown_id

    def read(self, words: Sequence[str]) -> np.ndarray:
        """Ids, spellings and forms, (n, 1 + L + K)."""
        return self._words(words)

    def inputs(self, model: nn.Module, sentences: Iterable[Sequence[str]]) -> Ragged:
        """Sentences as a model reads them: in the run's own terms, or as the characters of words."""
        return letters(sentences) if getattr(model, "reads", None) == LETTERS else ragged(map(self.read, sentences))

    def places(self, words: Sequence[str]) -> np.ndarray:
        """Where the tag of each word is told."""
        return np.arange(len(words))

    def rows(self, examples: Sequence[Tagged]) -> TagRows:
        text = ragged(map(self._words.numbers, watched(column(examples, "words"), "tokenising", "sentences")))
        return TagRows(replace(text, table=self._words.table), self.tags(examples))

    def tags(self, examples: Sequence[Tagged]) -> Ragged:
        """The tags of all words by number."""
        place = {name: number for number, name in enumerate(self.classes)}
        found = ragged([place.get(tag, -1) for tag in tags] for tags in column(examples, "tags"))
        for at in np.flatnonzero(found.values < 0)[:1]:
            one = examples[int(np.searchsorted(found.starts, at, side="right")) - 1]
            for tag in one.tags:
                class_number(tag, self.classes, one.where, "tag")
        return found


@dataclass(frozen=True, eq=False)
class PieceProcessor(TagProcessor):
    """last: the last piece of a word carries its tag, not the first."""

    last: bool = False

    @property
    def _told(self) -> dict[str, Any]:
        return super()._told | {"last": self.last}

    @property
    def spec(self) -> DataSpec:
        return replace(super().spec, spelled=False, n_forms=0)

    def knows(self, word: str) -> bool:
        return self.tokenizer.unknown_id not in self._pieces([word])[0].tolist()

    def read(self, words: Sequence[str]) -> np.ndarray:
        """The ids of a sentence with an `<eos>` on each side."""
        return np.concatenate([[self.tokenizer.start_id], *self._pieces(words), [self.tokenizer.eos_id]])

    def places(self, words: Sequence[str]) -> np.ndarray:
        ends = np.cumsum([len(piece) for piece in self._pieces(words)])
        return ends if self.last else np.concatenate([[0], ends[:-1]]) + 1

    def rows(self, examples: Sequence[Tagged]) -> TagRows:
        words = column(examples, "words")
        text, tags = ragged(map(self.read, words)), self.tags(examples)
        spread = np.full(len(text.values), NOT_COUNTED, text.values.dtype)
        for number, one in enumerate(words):
            spread[text.starts[number] + self.places(one)] = tags[number]
        return TagRows(text, replace(text, values=spread))

    def _pieces(self, words: Sequence[str]) -> list[np.ndarray]:
        """The pieces of each word, which brings the space before it along; none is left without a piece."""
        found = [self.tokenizer.encode(word if i == 0 else f" {word}") for i, word in enumerate(words)]
        nothing = np.array([self.tokenizer.eos_id])
        return [ids if len(ids) else nothing for ids in found]
