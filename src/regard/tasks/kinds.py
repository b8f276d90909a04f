"""The built-in kinds of data, each the half of its task that only reads: regard/tasks/NAME.py has the other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from regard.data.account import Account
from regard.data.corpus import survey
from regard.data.example import Captioned, Examples, Labelled, Pair, Rated, Several, Tagged, column
from regard.data.kind import PICTURES, Head
from regard.data.labelled import read_labelled
from regard.data.pairs import is_of_pairs
from regard.data.picture import read_captions
from regard.data.rated import is_of_numbers, read_rated
from regard.data.settings import DataSettings
from regard.data.several import is_of_several, read_several
from regard.data.tagged import is_of_tags, read_tagged
from regard.data.text_source import is_of_texts
from regard.data.worlds import PREFIX, world_of
from regard.tasks import task_named
from regard.tasks.data_kind import DataKind, ExampleKind, WholeTextKind
from regard.tasks.pair_files import sides_of

CONLL = (".conll", ".conllu")


class TextKind(DataKind):
    """Plain text, and tables of texts of which nothing else is told."""

    name: ClassVar[str] = "text"
    used: ClassVar[frozenset[str]] = frozenset(
        {"tokens", "vocab_size", "documents", "cache", "sample", "workers", "ray", "text", "missing"}
    )
    takes_anything: ClassVar[bool] = True

    def recognises(self, head: Head) -> bool:
        return not head.has_columns or is_of_texts(head.table, bool(head.unclear))

    def survey(self, settings: DataSettings, seed: int) -> Account:
        self.refuse_unused(settings)
        return replace(survey(settings.path, settings, seed), task=self.name)


class MaskedKind(DataKind):
    """The same text, of which some is hidden."""

    name: ClassVar[str] = "masked"
    used: ClassVar[frozenset[str]] = TextKind.used | {"whole_words"}
    same_data_as: ClassVar[str | None] = TextKind.name

    def survey(self, settings: DataSettings, seed: int) -> Account:
        self.refuse_unused(settings)
        return replace(survey(settings.path, settings, seed), task=self.name, target="hidden tokens")


class PairsKind(ExampleKind):
    """Texts side by side, in a table or in two files."""

    name: ClassVar[str] = "pairs"
    used: ClassVar[frozenset[str]] = frozenset(
        {"source", "target", "missing", "tokens", "vocab_size", "shared", "reverse", "truncate"}
    )
    two_files: ClassVar[bool] = True
    turn: ClassVar[int] = 3

    def recognises(self, head: Head) -> bool:
        return head.has_columns and is_of_pairs(head.table, bool(head.unclear))

    def examples(self, data: str, settings: DataSettings, seed: int) -> Sequence[Pair]:
        if data.startswith(PREFIX):
            return world_of(data, self.name, seed).examples("valid")
        return sides_of(data, settings)

    def keys(self, examples: Sequence[Pair]) -> Iterable[str]:
        return column(examples, "source")


class LabelledKind(WholeTextKind):
    """Texts with a class each."""

    name: ClassVar[str] = "labelled"
    used: ClassVar[frozenset[str]] = frozenset({"tokens", "vocab_size", "text", "label", "missing", "truncate"})
    turn: ClassVar[int] = 3

    def recognises(self, head: Head) -> bool:
        return head.has_columns and not head.unclear

    def read(self, data: str, settings: DataSettings) -> Examples[Labelled]:
        return read_labelled(
            data, text=settings.text, label=settings.label, missing=settings.missing, choices=settings.choices
        )


class RegressionKind(WholeTextKind):
    """Texts with a number each."""

    name: ClassVar[str] = "regression"
    used: ClassVar[frozenset[str]] = frozenset({"tokens", "vocab_size", "text", "number", "missing", "truncate"})
    turn: ClassVar[int] = 2  # before labelled text, which would take every number for a class

    def recognises(self, head: Head) -> bool:
        return head.has_columns and not head.is_series and is_of_numbers(head.table)

    def read(self, data: str, settings: DataSettings) -> Examples[Rated]:
        return read_rated(
            data, text=settings.text, number=settings.number, missing=settings.missing, choices=settings.choices
        )


class MultilabelKind(WholeTextKind):
    """Texts with several labels each."""

    name: ClassVar[str] = "multilabel"
    used: ClassVar[frozenset[str]] = frozenset(
        {"tokens", "vocab_size", "text", "labels", "separator", "missing", "truncate"}
    )
    turn: ClassVar[int] = 2  # before labelled text, which would take every set of labels for a class

    def recognises(self, head: Head) -> bool:
        return head.has_columns and is_of_several(head.table)

    def read(self, data: str, settings: DataSettings) -> Examples[Several]:
        columns = {"text": settings.text, "labels": settings.labels, "separator": settings.separator}
        return read_several(data, **columns, missing=settings.missing, choices=settings.choices)


class TaggedKind(ExampleKind):
    """Sentences with a tag for each word."""

    name: ClassVar[str] = "tagged"
    used: ClassVar[frozenset[str]] = frozenset({"text", "tag", "vocab_size", "bio"})
    turn: ClassVar[int] = 1

    def recognises(self, head: Head) -> bool:
        return head.suffix in CONLL or (head.has_columns and is_of_tags(head.table))

    def read(self, data: str, settings: DataSettings) -> Examples[Tagged]:
        return read_tagged(data, text=settings.text, tag=settings.tag, choices=settings.choices)

    def examples(self, data: str, settings: DataSettings, seed: int) -> Sequence[Tagged]:
        if data.startswith(PREFIX):
            return world_of(data, self.name, seed).examples("valid")
        return self.read(data, settings)

    def keys(self, examples: Sequence[Tagged]) -> Iterable[str]:
        return map(" ".join, column(examples, "words"))


class CaptionsKind(ExampleKind):
    """Pictures with a text or several each."""

    name: ClassVar[str] = "captions"
    used: ClassVar[frozenset[str]] = frozenset({"caption", "size", "tokens", "vocab_size"})
    turn: ClassVar[int] = 1

    def recognises(self, head: Head) -> bool:
        if head.is_folder or head.suffix in PICTURES:
            return head.suffix in PICTURES or head.is_of_pictures
        return head.has_columns and any(name.startswith("caption") for name in head.columns)

    def examples(self, data: str, settings: DataSettings, seed: int) -> list[Captioned]:
        if data.startswith(PREFIX):
            return world_of(data, self.name, seed).examples("valid")
        return read_captions(data, caption=settings.caption, size=settings.size, choices=settings.choices)

    def keys(self, examples: Sequence[Captioned]) -> Iterable[str]:
        """By the bytes of the picture, which may have several captions."""
        return (hashlib.sha256(one.picture.tobytes()).hexdigest() for one in examples)


class SeriesKind(DataKind):
    """Numbers in time."""

    name: ClassVar[str] = "series"
    used: ClassVar[frozenset[str]] = frozenset(
        {"target", "time", "known", "past", "series", "static", "history", "horizon", "season", "stride", "gaps"}
    )
    turn: ClassVar[int] = 2
    by_time: ClassVar[bool] = True

    def recognises(self, head: Head) -> bool:
        return head.has_columns and head.is_series

    def survey(self, settings: DataSettings, seed: int) -> Account:
        # What is held out depends on windows on the grid of time, which the task alone makes.
        told = task_named(self.name).ready(settings, seed).account
        return told or Account(task=self.name, data=settings.path)


KINDS: dict[str, type[DataKind]] = {
    kind.name: kind
    for kind in (
        *(TextKind, MaskedKind, PairsKind, LabelledKind, TaggedKind, CaptionsKind, SeriesKind),
        *(RegressionKind, MultilabelKind),
    )
}
