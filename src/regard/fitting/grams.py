"""The n-grams of texts by number: of words, and of characters within words.

words        runs of letters and digits, with apostrophes inside, and single marks: it's, great, !
n-grams      of words: 1 .. n neighbours in a text, and pairs with one or two words between that are not looked at, as
             "what .. of" and "what ... of" (a mark is a word for itself, so that no word is written like that). Of
             characters: 2 .. 5 neighbours, say, of a word with a blank on each side, so that " un" is a beginning and
             "ing " an end.

Words are numbered once; n-grams are numbers of numbers, and the text of one is made once for all its occurrences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from regard.fitting.spans import places
from regard.fitting.sparse import SparseRows, summed

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
SEPARATOR = "\n"  # no word holds it
# Texts of n-grams to their columns, -1 for one that has none.
Numbers = Callable[[Sequence[str]], np.ndarray]


@dataclass(eq=False)
class Vocabulary:
    """The n-grams that have a column, in order."""

    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._index = {name: number for number, name in enumerate(self.names)}
        if len(self._index) < len(self.names):
            raise ValueError("n-grams must be distinct")

    def __len__(self) -> int:
        return len(self.names)

    def found(self, names: Sequence[str]) -> np.ndarray:
        """The columns of those that are known."""
        get = self._index.get
        return np.fromiter((get(name, -1) for name in names), np.int64, len(names))

    def added(self, names: Sequence[str]) -> np.ndarray:
        """The columns of all, new ones after those that there are."""
        index = self._index
        numbers = np.fromiter((index.setdefault(name, len(index)) for name in names), np.int64, len(names))
        self.names = list(index)
        return numbers

    def kept(self, columns: np.ndarray) -> Vocabulary:
        """Those that are True in `columns`."""
        return Vocabulary([self.names[number] for number in np.flatnonzero(columns).tolist()])

    def packed(self) -> np.ndarray:
        """All of it as bytes, for a file."""
        return np.frombuffer(SEPARATOR.join(self.names).encode(), np.uint8).copy()

    @classmethod
    def unpacked(cls, data: np.ndarray) -> Vocabulary:
        """What `packed` made; ValueError of anything else."""
        text = data.tobytes().decode()
        return cls(text.split(SEPARATOR) if text else [])


@dataclass(frozen=True, eq=False)
class Words:
    """Texts as words. names: the different words. ids (P,): of all texts, end to end. row_of (P,): the text of each."""

    names: list[str]
    ids: np.ndarray
    row_of: np.ndarray
    n_texts: int


def words_of(texts: Iterable[str], lower: bool = True) -> Words:
    """The words of texts."""
    index: dict[str, int] = {}
    sizes, ids = [], []
    for text in texts:
        words = WORD.findall(text.lower() if lower else text)
        sizes.append(len(words))
        ids.append(np.fromiter((index.setdefault(word, len(index)) for word in words), np.int64, len(words)))
    row_of = np.repeat(np.arange(len(sizes)), np.asarray(sizes, np.int64))
    return Words(list(index), np.concatenate(ids) if ids else np.zeros(0, np.int64), row_of, len(sizes))


def word_grams(words: Words, order: int, numbers: Numbers, width: Callable[[], int], skip: int = 0) -> SparseRows:
    """How often each n-gram of 1 .. order words, and each pair with 1 .. skip words between, occurs in each text.

    numbers  its columns; width: how many there are when all were asked for.
    """
    names, grams, place = words.names, words.ids, np.arange(len(words.ids))
    rows, columns = [words.row_of[:0]], [words.ids[:0]]
    for n in range(1, order + 1):
        if n > 1:
            goes_on = np.zeros(len(place), bool)
            within = place + n - 1 < len(words.ids)
            goes_on[within] = words.row_of[place[within] + n - 1] == words.row_of[place[within]]
            place, after = place[goes_on], words.ids[place[goes_on] + n - 1]
            keys, grams = np.unique(grams[goes_on] * np.int64(len(words.names)) + after, return_inverse=True)
            first, last = np.divmod(keys, len(words.names)) if len(keys) else (keys, keys)
            pairs = zip(first.tolist(), last.tolist(), strict=True)
            names = [f"{names[before]} {words.names[word]}" for before, word in pairs]
        here = numbers(names)[grams]
        rows.append(words.row_of[place][here >= 0])
        columns.append(here[here >= 0])
    for between in range(1, skip + 1):
        row, column = _pairs(words, between, numbers)
        rows.append(row)
        columns.append(column)
    return _by_text(np.concatenate(rows), np.concatenate(columns), None, words.n_texts, width())


def _pairs(words: Words, between: int, numbers: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """The row and the column of all pairs of words with so many between."""
    ahead, n_names = between + 1, np.int64(max(1, len(words.names)))
    place = np.flatnonzero(words.row_of[:-ahead] == words.row_of[ahead:])
    keys, grams = np.unique(words.ids[place] * n_names + words.ids[place + ahead], return_inverse=True)
    first, last = np.divmod(keys, n_names)
    gap = "." * ahead
    names = [f"{words.names[a]} {gap} {words.names[b]}" for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    here = numbers(names)[grams]
    return words.row_of[place][here >= 0], here[here >= 0]


def character_grams(
    words: Words, shortest: int, longest: int, numbers: Numbers, width: Callable[[], int]
) -> SparseRows:
    """How often each n-gram of characters occurs in the words of each text."""
    pieces, sizes = [], np.zeros(len(words.names), np.int64)
    for number, word in enumerate(words.names):
        here = pieces_of(word, shortest, longest)
        sizes[number] = len(here)
        pieces += here
    columns = numbers(pieces)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # Each word of a text once, with how often it occurs there.
    once = _by_text(words.row_of, words.ids, None, words.n_texts, len(words.names))
    n_pieces = sizes[once.columns]
    column, weights = columns[places(starts[once.columns], n_pieces)], np.repeat(once.values, n_pieces)
    row = np.repeat(once.row_of, n_pieces)
    known = column >= 0
    return _by_text(row[known], column[known], weights[known], words.n_texts, width())


def pieces_of(word: str, shortest: int, longest: int) -> list[str]:
    """The n-grams of the characters of a word with a blank on each side.

    >>> pieces_of("ab", 2, 3)
    [' a', 'ab', 'b ', ' ab', 'ab ']
    """
    spaced = f" {word} "
    return [spaced[i : i + n] for n in range(shortest, longest + 1) for i in range(len(spaced) - n + 1)]


def _by_text(rows: np.ndarray, columns: np.ndarray, weights: np.ndarray | None, n_texts: int, width: int) -> SparseRows:
    """Entries in any order as sparse rows."""
    weights = np.ones(len(rows)) if weights is None else weights
    if len(rows) and (np.diff(rows) < 0).any():
        order = np.argsort(rows, kind="stable")
        rows, columns, weights = rows[order], columns[order], weights[order]
    return summed(rows, columns, weights, n_texts, width)
