"""DataSettings: what a run reads, whatever the task. Each task uses some of them and refuses the others."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Any, Literal

from regard.core.config import decode
from regard.core.limits import require_count
from regard.errors import UsageError, nearest

DEFAULT_PATH = "world:stories"
BY_HASH = "hash:0.1"
# Columns that may be told by their number: a bare one is as good as one in quotes.
NUMBERED = frozenset({"data.text", "data.label", "data.tag"})


@dataclass(frozen=True)
class DataSettings:
    """`data.KEY` of a run.

    path        a file, a folder, - or world:NAME.
    task        of `regard list`; auto tells it from the file.
    target      pairs: the file of the other side. series: the column to forecast.
    valid       what is held out: hash:FRACTION, tail:FRACTION, of examples fold:NUMBER/FOLDS, or a path (of pairs two
                of them, joined by a comma).
    test        the part of what is held out that training never looks at, 0 to below 1: it is for one look at the end.
    tokens      the kind of tokenizer; auto chooses by the task.
    vocab_size  the most tokens it may have.
    documents   of a text: what is a document.
    cache       of a text: a folder that keeps prepared data.
    whole_words masked: all tokens of a word are hidden together.
    shared      pairs: one vocabulary for both sides.
    reverse     pairs: read the second side and write the first.
    text, label columns of labelled text, by name or by number from 1 on.
    tag         tagged: upos, xpos and so on of CoNLL-U; of CoNLL, which has no names, the number of the column.
    bio         tagged: where the training part keeps the rule that an I- tag stands inside of its span, answers do too.
    caption     captions: the column of the captions.
    size        captions: pictures are brought to so many rows and columns.
    time, known series: the column of times, and those known ahead, joined by commas.
    history     series: hours, or whatever the steps are, that are read.
    horizon     series: steps that are forecast.
    gaps        series: refuse missing times, or interpolate them.
    truncate    cut what is longer than the model's positions, instead of refusing it.
    """

    path: str = DEFAULT_PATH
    task: str = "auto"
    target: str | None = None
    valid: str = BY_HASH
    test: float = 0.0
    tokens: str = "auto"
    vocab_size: int | None = None
    documents: Literal["auto", "file", "line", "blank"] = "auto"
    cache: str | None = None
    whole_words: bool = False
    shared: bool = True
    reverse: bool = False
    text: str | None = None
    label: str | None = None
    tag: str | None = None
    bio: bool = True
    caption: str | None = None
    size: int = 32
    time: str | None = None
    known: str | None = None
    history: int = 168
    horizon: int = 24
    gaps: Literal["refuse", "interpolate"] = "refuse"
    truncate: bool = False

    def __post_init__(self) -> None:
        for name in ("size", "history", "horizon"):
            require_count(getattr(self, name), f"data.{name}")
        if self.vocab_size is not None:
            require_count(self.vocab_size, "data.vocab_size")
        if not 0 <= self.test < 1:
            raise UsageError(f"data.test must be a number from 0 up to 1, found {self.test}")

    def refuse_unused(self, task: str, used: frozenset[str]) -> None:
        """Refuse a setting that was changed though the task has no use for it."""
        for field in dataclasses.fields(self):
            if field.name not in used and getattr(self, field.name) != field.default:
                raise UsageError(f"data.{field.name} means nothing to the task {task}{nearest(field.name, used)}")


def from_dict(values: dict[str, Any]) -> DataSettings:
    """The settings among `values`, each of its type; what else a run's config says of its data is left out."""
    hints = typing.get_type_hints(DataSettings)
    known = {key: decode(value, hints[key], f"data.{key}") for key, value in values.items() if key in hints}
    return DataSettings(**known)
