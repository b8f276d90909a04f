"""Tagged sentences from CoNLL and CoNLL-U files: a word a line, a blank line between sentences.

CoNLL    columns between TABs, or between spaces where a line has no TAB: the word first, its tag last.
CoNLL-U  ten columns between TABs (universaldependencies.org/format.html). Comments, multiword ranges (1-2) and
         empty nodes (1.1) are not words.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator
from itertools import chain

from regard.data.account import Account
from regard.data.choices import OPEN, Choices
from regard.data.example import Examples, Tagged
from regard.data.packed import Coded, Nested, Packed, Places
from regard.data.source import plain, read_lines, shown
from regard.data.table import Table
from regard.data.tabular import describe, is_table, open_table
from regard.errors import DataError, UsageError, nearest

UNIVERSAL = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# Lemmas and features may be an underscore: parts of a word that was torn apart have no lemma, most words no features.
NEVER_EMPTY = ("upos", "xpos", "deprel")
TAGS = ("lemma", "upos", "xpos", "feats", "deprel")
DOCUMENT = "-DOCSTART-"
# How the columns of tables are called that hold a list of words, and a list of their tags.
TOKENS, TAG_LISTS = ("tokens", "words"), ("tags", "ner_tags", "pos_tags", "upos", "labels", "chunk_tags")
NO_WORD = re.compile(r"\d+[-.]\d+")
SPACES = re.compile(r" +")
# From the number of a line and the line to a word and its tag; None when it is no word.
Parse = Callable[[int, str], tuple[str, str] | None]


def read_tagged(
    path: str, *, text: str | None = None, tag: str | None = None, choices: Choices = OPEN
) -> Examples[Tagged]:
    """The sentences of a file with a tag for every word.

    tag   CoNLL-U: lemma, upos, xpos, feats or deprel; upos unless told. CoNLL: the number of a column, counted from 1;
          the last unless told. A table, as those of Hugging Face: the column of lists of tags.
    text  of a table: the column of lists of words.
    """
    if is_table(path, choices):
        return _from_table(open_table(path, choices, TOKENS), text, tag)
    if text is not None:
        raise UsageError(f"data.text={text}: {shown(path)} is no table; its words stand in the first column")
    source = read_lines(path, encoding=choices.encoding)
    head = list(up_to_first(source))
    parse = _universal(path, tag or "upos") if is_universal(path, head[-1]) else _columns(path, tag)
    words, tags = Packed(), Coded()
    stops, lines = array("q"), array("q")
    gathered = 0
    for number, row in enumerate(chain(head, source, [""]), start=1):
        if row.strip(" \t"):
            found = parse(number, row)
            if found is not None:
                if not gathered:
                    lines.append(number)
                gathered += 1
                words.append(found[0])
                tags.append(found[1])
        elif gathered:
            stops.append(len(words))
            gathered = 0
    if not len(words):
        raise DataError(f"{shown(path)} holds no words with tags: give lines with a word and its tag")
    columns = {"words": Nested(words, stops), "tags": Nested(tags, stops), "where": Places(path, lines)}
    account = Account(
        data=path,
        form="CoNLL-U" if is_universal(path, head[-1]) else "CoNLL",
        target=tag or ("upos" if is_universal(path, head[-1]) else "the last column"),
        unit="sentences",
        read=len(stops),
        facts={"words": len(words)},
        first={"words": " ".join(columns["words"][0]), "tags": " ".join(columns["tags"][0])},
    )
    return Examples(Tagged, columns, settings={"tag": tag} if tag else {}, account=account)


def is_of_tags(table: Table) -> bool:
    """Whether a table has columns of lists of words and of lists of tags; without names, two columns of lists."""
    if not table.named:
        return _of_lists(table)
    words = [name for name in TOKENS if name in table.cells and (table.cells[name][0] or "").startswith("[")]
    return bool(words) and any(name in table.cells for name in TAG_LISTS)


def _from_table(table: Table, text: str | None, tag: str | None) -> Examples[Tagged]:
    """The sentences of a table with a list of words and a list of tags in each row."""
    plain = _of_lists(table)
    words_in = _column(table, "data.text", text, ("1",) if plain else TOKENS)
    tags_in = _column(table, "data.tag", tag, ("2",) if plain else TAG_LISTS)
    words, tags, stops = Packed(), Coded(), array("q")
    for row, (left, right) in enumerate(zip(table.cells[words_in], table.cells[tags_in], strict=True)):
        some, others = listed_words(table, row, words_in, left), listed_words(table, row, tags_in, right)
        if len(some) != len(others) or not some:
            raise DataError(f"{table.where(row)}: {len(some)} words and {len(others)} tags; give one tag for each word")
        for word, value in zip(some, others, strict=True):
            words.append(word)
            tags.append(value)
        stops.append(len(words))
    columns = {"words": Nested(words, stops), "tags": Nested(tags, stops), "where": table.places}
    account = Account(
        data=table.path,
        form=describe(table),
        target=tags_in,
        columns={"words": words_in, "tags": tags_in},
        ignored=[name for name in table.names if name not in (words_in, tags_in)],
        read=len(table),
        facts={"words": len(words)},
        first={"words": " ".join(columns["words"][0]), "tags": " ".join(columns["tags"][0])},
    )
    return Examples(Tagged, columns, settings={"text": words_in, "tag": tags_in}, account=account)


def _of_lists(table: Table) -> bool:
    """Whether a table without names has two columns, both of lists."""
    return (
        not table.named
        and len(table.names) == 2
        and all((one[0] or "").startswith("[") for one in table.cells.values())
    )


def _column(table: Table, role: str, told: str | None, known: tuple[str, ...]) -> str:
    if told is not None:
        return table.find(role, told)
    found = [name for name in known if name in table.cells]
    if not found:
        names = ", ".join(table.names)
        raise UsageError(
            f"{shown(table.path)}: no column is called {known[0]}; its columns are {names}: say {role}=NAME"
        )
    return found[0]


def listed_words(table: Table, row: int, column: str, cell: str | None) -> list[str]:
    """The words of a cell: a list as JSON writes it, or texts with single spaces between."""
    try:
        return list(words_of(cell or ""))
    except DataError as error:
        raise DataError(f"{table.where(row)}, column {column!r}: {error}; mend it or remove the row") from None


def words_of(cell: str) -> tuple[str, ...]:
    """The words of a cell: a list as JSON writes it, or words with spaces between.

    >>> words_of('["a", "b c"]'), words_of("a b")
    (('a', 'b c'), ('a', 'b'))
    """
    try:
        found = json.loads(cell) if cell.startswith("[") else cell.split()
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str | int) and str(one).strip() for one in found):
        raise DataError("expected a list of words")
    return tuple(map(str, found))


def up_to_first(rows: Iterator[str]) -> Iterator[str]:
    """Rows up to the first that holds something, which tells what kind of file it is."""
    for row in rows:
        yield row
        if row.strip(" \t") and not row.startswith("#"):
            return


def is_universal(path: str, first: str) -> bool:
    """Whether a file is CoNLL-U, by its name or by its first line that is no comment."""
    if plain(path).suffix.lower() == ".conllu":
        return True
    columns = first.split("\t")
    return len(columns) == len(UNIVERSAL) and columns[0][:1].isdigit()


def tag_column(tag: str | None) -> int:
    """The number of the column of CoNLL-U that holds a tag, from 0."""
    tag = tag or "upos"
    if tag not in TAGS:
        raise UsageError(f"tag = {tag!r} is no column of CoNLL-U that tags a word{nearest(tag, TAGS)}")
    return UNIVERSAL.index(tag)


def _universal(path: str, tag: str) -> Parse:
    column = tag_column(tag)

    def parse(number: int, row: str) -> tuple[str, str] | None:
        if row.startswith("#"):
            return None
        columns = row.split("\t")
        if len(columns) != len(UNIVERSAL):
            raise DataError(f"{shown(path)}, line {number}: {len(columns)} columns between TABs where CoNLL-U has 10")
        if not columns[0].isdigit():
            if NO_WORD.fullmatch(columns[0]):
                return None
            raise DataError(f"{shown(path)}, line {number}: {columns[0]!r} is no number of a word in CoNLL-U")
        word, value = columns[1], columns[column]
        if not word or not value or (value == "_" and tag in NEVER_EMPTY):
            raise DataError(
                f"{shown(path)}, line {number}: the word {word!r} has no {tag}; mend it or choose another tag"
            )
        return word, value

    return parse


def _columns(path: str, tag: str | None) -> Parse:
    if tag is not None and (not tag.isdecimal() or int(tag) < 1):
        raise UsageError(f"tag = {tag!r}: {shown(path)} has no names of columns; give a number, 1 for the first column")
    width = 0

    def parse(number: int, row: str) -> tuple[str, str] | None:
        nonlocal width
        columns = row.split("\t") if "\t" in row else SPACES.split(row.strip(" "))
        if columns[0] == DOCUMENT:
            return None
        where = f"{shown(path)}, line {number}"
        if len(columns) < 2 or not columns[0]:
            raise DataError(
                f"{where}: {row.strip()[:40]!r} has no tag; a line is a word and its tag, with a TAB or space between"
            )
        width = width or len(columns)
        if len(columns) != width:
            raise DataError(f"{where}: {len(columns)} columns where the lines before have {width}")
        if tag is not None and int(tag) > width:
            raise UsageError(f"tag = {tag}: {where} has {width} columns")
        value = columns[-1 if tag is None else int(tag) - 1]
        if not value:
            raise DataError(f"{where}: the word {columns[0]!r} has no tag")
        return columns[0], value

    return parse
