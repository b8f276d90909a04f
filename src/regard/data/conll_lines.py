"""CoNLL files to be tagged: the lines as they stand, and the words of each sentence; tags may be there or not.

CoNLL    a word a line, its columns between TABs or spaces: the answered tag comes last, as a further column.
CoNLL-U  ten columns, and no more may be: the answered tag takes the place of the one that the run has learnt.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from regard.data.choices import Choices
from regard.data.example import Tagged
from regard.data.packed import Column, Packed, Places
from regard.data.source import SUFFIXES, plain, read_lines, shown
from regard.data.tabular import open_table
from regard.data.tagged import DOCUMENT, NO_WORD, SPACES, UNIVERSAL, is_universal, listed_words, tag_column, up_to_first
from regard.data.unlabelled import OwnForm, Role, Unlabelled, choose_input, head_of, of_table, read_unlabelled
from regard.errors import DataError

FEW = 200  # lines by which a plain text is told from CoNLL
# From the number of a line and the line to its word; None where it has none.
Word = Callable[[int, str], str | None]


def read_words(data: str, role: Role, tag: str | None, choices: Choices) -> Unlabelled:
    """The sentences of a table of lists of words, of a CoNLL file, or of a plain text with one a line."""
    head = head_of(data, role, choices)
    if head.has_columns:
        table = open_table(data, choices, head.known)
        column = choose_input(table, role)

        def words(row: int, cell: str | None) -> Tagged:
            found = tuple(listed_words(table, row, column, cell))
            return Tagged(found, ("",) * len(found))

        return of_table(table, role, "empty", words)
    if looks_like_conll(data, choices):
        return read_conll(data, tag, choices)
    return replace(read_unlabelled(data, role, choices, "empty"), own=None)


def read_conll(path: str, tag: str | None, choices: Choices) -> Unlabelled:
    """The sentences of a CoNLL file, without asking for tags. tag: of CoNLL-U, the column that answers stand in."""
    source = read_lines(path, encoding=choices.encoding)
    head = list(up_to_first(source))
    universal = is_universal(path, head[-1])
    word = _universal(path) if universal else _first
    lines, stops, begins = Packed(), array("q"), array("q")
    for number, row in enumerate(chain(head, source), start=1):
        lines.append(row)
        if not row.strip(" \t"):
            if len(stops) < len(begins):
                stops.append(number)
        elif word(number, row) is not None and len(stops) == len(begins):
            begins.append(number)
    if not begins:
        raise DataError(f"{shown(path)} holds no words: give a word a line, and a blank line between sentences")
    if len(stops) < len(begins):
        stops.append(len(lines))
    stops[-1] = len(lines)
    sentences = Sentences(lines, stops, word)
    column = tag_column(tag) if universal else None
    own = OwnForm("CoNLL", (".conll", ".conllu", ".txt"), Tagging(sentences, column))
    tokens = _Words(sentences)
    return Unlabelled(sentences, {"tokens": tokens}, Places(path, begins), own=own)


def looks_like_conll(path: str, choices: Choices) -> bool:
    """Whether a file that is no table is CoNLL: its name says so, or it does not say text, or its lines are columns.

    A plain text has a sentence a line, of any number of words. The lines of CoNLL have equally many columns, and there
    are blank ones between them.
    """
    if plain(path).suffix.lower() not in SUFFIXES:
        return True
    head = list(islice(read_lines(path, encoding=choices.encoding), FEW))
    filled = [row for row in head if row.strip(" \t") and not row.startswith("#")]
    widths = {len(_columns(row)) for row in filled if _columns(row)[0] != DOCUMENT}
    return len(filled) < len(head) and len(widths) == 1


@dataclass(frozen=True, eq=False)
class Sentences(Column[Tagged]):
    """The sentences of a file. stops: the number of the line after the last of each, blank lines included."""

    lines: Packed
    stops: Sequence[int]
    word: Word

    def __len__(self) -> int:
        return len(self.stops)

    def rows(self, number: int) -> Iterator[tuple[int, str]]:
        """The lines of a sentence with their numbers, with those before it that belong to none."""
        first = self.stops[number - 1] if number else 0
        some = self.lines.at(np.arange(first, self.stops[number]))
        return ((first + place, row or "") for place, row in enumerate(some, start=1))

    def value(self, row: int) -> Tagged:
        words = tuple(word for number, line in self.rows(row) if (word := _word(self.word, number, line)) is not None)
        return Tagged(words, ("",) * len(words))


@dataclass(frozen=True, eq=False)
class Tagging:
    """The text of a sentence with its answered tags. column: the one they stand in, None for a further one."""

    sentences: Sentences
    column: int | None

    def __call__(self, number: int, answer: Mapping[str, Any]) -> str:
        tags = iter(next(iter(answer.values())))
        found = []
        for place, row in self.sentences.rows(number):
            if _word(self.sentences.word, place, row) is None:
                found.append(row)
            elif self.column is None:
                found.append(f"{row.rstrip(' ')}{_mark_between(row)}{next(tags)}")
            else:
                cells = row.split("\t")
                cells[self.column] = next(tags)
                found.append("\t".join(cells))
        return "".join(f"{row}\n" for row in found)


class _Words(Column[list[str]]):
    """The words of each sentence as a list."""

    def __init__(self, sentences: Sentences) -> None:
        self.sentences = sentences

    def __len__(self) -> int:
        return len(self.sentences)

    def value(self, row: int) -> list[str]:
        return list(self.sentences.value(row).words)


def _word(word: Word, number: int, row: str) -> str | None:
    return word(number, row) if row.strip(" \t") else None


def _mark_between(row: str) -> str:
    return "\t" if "\t" in row or " " not in row.strip(" ") else " "


def _columns(row: str) -> list[str]:
    return row.split("\t") if "\t" in row else SPACES.split(row.strip(" "))


def _first(_number: int, row: str) -> str | None:
    word = _columns(row)[0]
    return None if word in ("", DOCUMENT) else word


def _universal(path: str) -> Word:
    def word(number: int, row: str) -> str | None:
        cells = row.split("\t")
        if row.startswith("#") or NO_WORD.fullmatch(cells[0]):
            return None
        if len(cells) != len(UNIVERSAL) or not cells[0].isdigit() or not cells[1]:
            raise DataError(f"{shown(path)}, line {number}: no word of CoNLL-U, which has 10 columns between TABs")
        return cells[1]

    return word
