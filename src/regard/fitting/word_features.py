"""What there is to see at a word of a sentence, as named features: the word, its form, its neighbours.

    w=Paris        the word           l=paris    in small letters      h=Xx    its shape: runs of X, x, 0 and of marks
    p2=pa  f3=ris  its first and last letters, up to AFFIX of them
    n=2            how often the word was met elsewhere, in powers of two; n=0 alone and with its shape, n=0 h=Xx
    small=no       of a word with a capital: whether it was met without
    -1:l=in        the same of the word before; +1: of the word after; <s> and </s> stand beyond the ends
    -1|0=in paris  two neighbours in small letters

A word that occurs many times has its own features once, a row of a table, and a sentence is a sequence of such rows: a
weight for each feature and tag is summed over rows once, and then looked up (see `Table`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.fitting.grams import Numbers
from regard.fitting.sparse import SparseRows

AFFIX = 4
LONGEST = 64  # characters of a word that are read
START, END = "<s>", "</s>"
RUN = re.compile(r"(.)\1+")
FULL, NEAR, WORD = "full", "near", "word"  # how much of a word is seen


@dataclass(frozen=True, eq=False)
class Table:
    """rows (R, F): the features of each different thing, as columns from `first` on. index (N,): which each word has.

    first  where the columns of this table begin among those of all tables. pairs: its features are pairs of words.
    """

    rows: SparseRows
    index: np.ndarray
    first: int
    pairs: bool = False

    def kept(self, columns: np.ndarray, first: int) -> Table:
        """With the columns that are True in `columns`, this table's own alone."""
        return replace(self, rows=self.rows.kept(columns), first=first)

    def with_columns(self, columns: np.ndarray, width: int) -> Table:
        """With other numbers for the columns, which are those of all tables."""
        return replace(self, rows=replace(self.rows, columns=columns, width=width), first=0)


def clipped(word: str) -> str:
    """A word as it is read: of a very long one the beginning and the end."""
    half = LONGEST // 2
    return word if len(word) <= LONGEST else word[:half] + word[-half:]


def shape(word: str) -> str:
    """Runs of capitals, of small letters and of digits as one each; other marks as they are.

    >>> shape("Paris-2024"), shape("iPhone")
    ('Xx-0', 'xXx')
    """
    marks = "".join("X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word)
    return RUN.sub(r"\1", marks)


@dataclass(frozen=True, eq=False)
class Met:
    """How often words were met in training. own: 1 where the words that are asked for were counted themselves.

    A word of the training part is thus as rare as it is to the rest of it, and a rare one like one that is new.
    """

    counts: Mapping[str, int]
    own: int = 0

    def features(self, word: str) -> list[str]:
        often = max(0, self.counts.get(word, 0) - self.own).bit_length()
        found = [f"n={often}", f"n={often} h={shape(word)}"]
        low = word.lower()
        return found if low == word else [*found, f"small={'yes' if low in self.counts else 'no'}"]


def of_word(word: str, amount: str, prefix: str = "") -> list[str]:
    """The names of a word's own features."""
    low = word.lower()
    if amount == WORD or word in (START, END):
        return [f"{prefix}l={low}"]
    found = [f"{prefix}l={low}", f"{prefix}h={shape(word)}"]
    if amount == NEAR:
        return [*found, f"{prefix}f2={low[-2:]}", f"{prefix}f3={low[-3:]}"]
    most = min(AFFIX, len(low))
    found += [f"w={word}", *(f"p{n}={low[:n]}" for n in range(1, most + 1))]
    return [*found, *(f"f{n}={low[-n:]}" for n in range(1, most + 1))]


@dataclass(frozen=True, eq=False)
class Sentences:
    """Words of sentences by number. names: the different words, <s> and </s> after them. ids (N,), end to end."""

    names: list[str]
    ids: np.ndarray
    sizes: np.ndarray

    def shifted(self, by: int) -> np.ndarray:
        """The number of the word that stands `by` after each; beyond the ends those of <s> and </s>."""
        total = len(self.ids)
        stops = np.cumsum(self.sizes)
        sentence = np.repeat(np.arange(len(self.sizes)), self.sizes)
        place = np.arange(total) + by
        early, late = place < (stops - self.sizes)[sentence], place >= stops[sentence]
        found = self.ids[np.clip(place, 0, max(0, total - 1))]
        return np.where(early, len(self.names) - 2, np.where(late, len(self.names) - 1, found))


def sentences_of(sentences: Iterable[Sequence[str]]) -> Sentences:
    """Sentences with their different words numbered."""
    index: dict[str, int] = {}
    sizes, ids = [], []
    for words in sentences:
        sizes.append(len(words))
        ids += [index.setdefault(word, len(index)) for word in words]
    return Sentences([*index, START, END], np.asarray(ids, np.int64), np.asarray(sizes, np.int64))


def tables(given: Sentences, met: Met, numbers: Numbers, width: Callable[[], int]) -> list[Table]:
    """The features of all words, a table for each thing that is looked at.

    numbers  the columns of names, -1 for one that has none; width: how many there are when all so far were asked for.
    """
    made: list[Table] = []

    def add(names: Iterable[list[str]], index: np.ndarray, pairs: bool = False) -> None:
        first, rows = width(), list(names)
        flat = numbers([name for row in rows for name in row])
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        known = flat >= 0
        starts = np.concatenate([[0], np.cumsum(known)])[np.concatenate([[0], np.cumsum(sizes)])]
        table = SparseRows(flat[known] - first, np.ones(known.sum()), starts, width() - first)
        made.append(Table(table, index, first, pairs))

    words = given.names
    add(([*of_word(word, FULL), *met.features(word)] for word in words[:-2]), given.ids)
    for by, amount in ((-1, NEAR), (1, NEAR), (-2, WORD), (2, WORD)):
        add((of_word(word, amount, f"{by:+d}:") for word in words), given.shifted(by))
    low, place = _lowered(words)
    for by, other in ((-1, 0), (0, 1)):
        left, right = (place[given.shifted(at) if at else given.ids] for at in (by, other))
        pairs, index = np.unique(left * len(low) + right, return_inverse=True)
        a, b = np.divmod(pairs, len(low))
        add(([f"{by:+d}|{other}={low[i]} {low[j]}"] for i, j in zip(a.tolist(), b.tolist(), strict=True)), index, True)
    return made


def _lowered(words: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The different words in small letters, and the number of each word among them."""
    index: dict[str, int] = {}
    place = np.fromiter((index.setdefault(word.lower(), len(index)) for word in words), np.int64, len(words))
    return list(index), place
