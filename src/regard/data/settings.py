"""DataSettings: what a run reads, whatever the task. Each task uses some of them and refuses the others."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Any, Literal

from regard.core.config import decode
from regard.core.limits import require_count
from regard.core.workers import Labour
from regard.data.choices import Choices, Form, Header, Missing, TextChoices
from regard.data.delimiter import delimiter_named
from regard.data.encoding import known_encoding
from regard.errors import UsageError, nearest

DEFAULT_PATH = "world:stories"
BY_HASH = "hash:0.1"
# What was written or meant where nothing was said, in runs of every task, before the step of a series told how much of
# it is read, and before there was a choice about what is missing.
FORMER = {"history": 168, "horizon": 24, "missing": "empty"}


def column() -> Any:
    """A setting that names columns of a table, by name or by number from 1 on."""
    return dataclasses.field(default=None, metadata={"column": True})


@dataclass(frozen=True)
class DataSettings:
    """`data.KEY` of a run.

    path        a file, a folder, a pattern, -, world:NAME or hf:NAME.
    task        of `regard list`; auto tells it from the file.
    target      pairs: the file of the other side, or the column of a table. series: the column to forecast.
    source      pairs: the column of a table that is read.
    format      what a file is: auto, text, csv, json, parquet, arrow or excel.
    delimiter   between the cells of a CSV; told from the file without.
    header      whether the first row of a CSV names its columns: auto, yes or no.
    encoding    of a text, such as latin-1; UTF-8 without, or as its mark says.
    missing     rows that lack a value: refuse or drop them, take a text as empty, or keep a label such as NA.
    valid       what is held out: hash:FRACTION, tail:FRACTION, of examples fold:NUMBER/FOLDS, or a path (of pairs two
                of them, joined by a comma).
    test        the part of what is held out that training never looks at, 0 to below 1: it is for one look at the end.
    tokens      the kind of tokenizer; auto chooses by the task.
    vocab_size  the most tokens it may have.
    documents   of a text: what is a document.
    cache       of a text: a folder that keeps prepared data; none keeps nothing.
    sample      of a text: characters of it, here and there, from which words and subwords are learnt.
    workers     of a text: processes that tokenise and count; None for as many as there are cores, of a small text one.
    ray         of a text: the Ray cluster that does, HOST:PORT or auto.
    whole_words masked: all tokens of a word are hidden together.
    shared      pairs: one vocabulary for both sides.
    reverse     pairs: read the second side and write the first.
    text, label columns of a table, by name or by number from 1 on: the texts, and their labels.
    number      regression: the column of numbers.
    labels      multilabel: the column of lists of labels. separator: the mark between them in a cell, such as | or ;.
    tag         tagged: upos, xpos and so on of CoNLL-U; of CoNLL, which has no names, the number of the column; of a
                table, the column of lists of tags.
    bio         tagged: where the training part keeps the rule that an I- tag stands inside of its span, answers do too.
    caption     captions: the column of the captions.
    size        captions: pictures are brought to so many rows and columns.
    time, known series: the column of times, and those known ahead, joined by commas; nothing else is taken as known.
    past        series: measured columns, joined by commas, that are read as past; empty for none, None for all others.
    series      series: the column that tells several series in one file apart.
    static      series: columns that stay the same all along each of them.
    history     series: hours, or whatever the steps are, that are read; None for what suits the step.
    horizon     series: steps that are forecast; None for a season.
    season      series: steps after which things repeat; None for what the step says, such as 24 hours.
    stride      series: steps from one forecast to the next; None for a horizon within days, 1 of days and longer steps.
    gaps        series: refuse missing times and cells, interpolate them, carry the value before them forward, or skip
                the windows that touch them.
    truncate    cut what is longer than the model's positions, instead of refusing it.
    """

    path: str = DEFAULT_PATH
    task: str = "auto"
    target: str | None = column()
    source: str | None = column()
    format: Form = "auto"
    delimiter: str | None = None
    header: Header = "auto"
    encoding: str | None = None
    missing: Missing = "refuse"
    valid: str = BY_HASH
    test: float = 0.0
    tokens: str = "auto"
    vocab_size: int | None = None
    documents: Literal["auto", "file", "line", "blank"] = "auto"
    cache: str | None = None
    sample: int = 1 << 26
    workers: int | None = None
    ray: str | None = None
    whole_words: bool = False
    shared: bool = True
    reverse: bool = False
    text: str | None = column()
    label: str | None = column()
    number: str | None = column()
    labels: str | None = column()
    separator: str | None = None
    tag: str | None = column()
    bio: bool = True
    caption: str | None = column()
    size: int = 32
    time: str | None = column()
    known: str | None = column()
    past: str | None = column()
    series: str | None = column()
    static: str | None = column()
    history: int | None = None
    horizon: int | None = None
    season: int | None = None
    stride: int | None = None
    gaps: Literal["refuse", "interpolate", "forward", "skip"] = "refuse"
    truncate: bool = False

    def __post_init__(self) -> None:
        for name in ("size", "vocab_size", "history", "horizon", "season", "stride", "sample", "workers"):
            if getattr(self, name) is not None:
                require_count(getattr(self, name), f"data.{name}")
        if self.encoding is not None:
            known_encoding(self.encoding)
        if self.delimiter is not None:
            delimiter_named(self.delimiter)
        if self.separator is not None and (not self.separator or "[" in self.separator):
            raise UsageError(f"data.separator must be a mark between labels, such as | or ;, found {self.separator!r}")
        if not 0 <= self.test < 1:
            raise UsageError(f"data.test must be a number from 0 up to 1, found {self.test}")

    @property
    def choices(self) -> Choices:
        """How files are to be read, as far as somebody said."""
        return Choices(self.format, self.delimiter, self.header, self.encoding)

    @property
    def labour(self) -> Labour:
        """Who tokenises and counts, as far as somebody said."""
        return Labour(self.workers, self.ray)

    @property
    def named_columns(self) -> list[str]:
        """The names of columns that somebody said: a first row that has one of them is a header."""
        told = ",".join(getattr(self, name) or "" for name in COLUMNS).split(",")
        return [name.strip().lower() for name in told if name.strip() and not name.strip().isdecimal()]

    @property
    def texts(self) -> TextChoices:
        """How plain text is to be read, as far as somebody said."""
        return TextChoices(self.choices, self.text, self.missing)

    def refuse_unused(self, task: str, used: frozenset[str]) -> None:
        """Refuse a setting that was changed though the task has no use for it."""
        for field in dataclasses.fields(self):
            unset = (field.default, FORMER.get(field.name, field.default))
            if field.name not in used and getattr(self, field.name) not in unset:
                raise UsageError(f"data.{field.name} means nothing to the task {task}{nearest(field.name, used)}")


COLUMNS = tuple(one.name for one in dataclasses.fields(DataSettings) if one.metadata.get("column"))
# Those that may be told by their number: a bare one is as good as one in quotes.
NUMBERED = frozenset(f"data.{name}" for name in COLUMNS)


def from_dict(values: dict[str, Any]) -> DataSettings:
    """The settings among `values`, each of its type; what else a run's config says of its data is left out."""
    hints = typing.get_type_hints(DataSettings)
    known = {key: decode(value, hints[key], f"data.{key}") for key, value in values.items() if key in hints}
    return DataSettings(**{"missing": FORMER["missing"], **known})
