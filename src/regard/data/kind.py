"""Head: what can be told of data by its name, its first bytes and its first rows, without reading it all."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from regard.data.choices import OPEN, Choices
from regard.data.form import Look, look
from regard.data.labelled import choose
from regard.data.source import STDIN, SUFFIXES, files, plain
from regard.data.table import Table, as_time, is_missing, is_number
from regard.data.tabular import is_address, is_table_folder, open_table
from regard.errors import DataError, UsageError

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".npz")
TIMES = ("time", "date", "datetime", "timestamp", "ds")
# Enough to see that a side of sorted pairs has too many different values for labels.
HEAD_ROWS = 1000
HEAD_FILES = 1000


@dataclass(frozen=True)
class Head:
    """A file, a folder, an address or standard input. data: its name; a file that is not there is refused.

    choices  how it is to be read, as far as somebody said. known: names of columns that somebody asks for.
    """

    data: str
    choices: Choices = OPEN
    known: Collection[str] = ()

    def __post_init__(self) -> None:
        if self.data != STDIN and not self.is_folder and not self.is_other:
            files(self.data)

    @cached_property
    def is_folder(self) -> bool:
        return Path(self.data).is_dir()

    @cached_property
    def is_other(self) -> bool:
        """Whether it is a table that is no file: of an address, or a folder that `datasets` saved."""
        return is_address(self.data) or is_table_folder(self.data)

    @property
    def suffix(self) -> str:
        """Of a file, such as ".csv", without that of a packer."""
        return "" if self.data == STDIN or self.is_folder else plain(self.data).suffix.lower()

    @cached_property
    def look(self) -> Look:
        """What the first of its files looks like."""
        return look(files(self.data)[0], self.choices.encoding)

    @cached_property
    def has_columns(self) -> bool:
        """Whether it is a table, by what somebody said, by its name or by its content."""
        if self.choices.form != "auto":
            return self.choices.form != "text"
        if self.is_other:
            return True
        if self.is_folder or self.suffix in (*PICTURES, ".conll", ".conllu"):
            return False
        return self.look.is_table

    def refuse_disagreement(self) -> None:
        """Refuse a file whose name says something else than its content, unless somebody said what it is."""
        if self.choices.form == "auto" and not (self.is_other or self.is_folder or self.suffix in PICTURES):
            seen = self.look
            if not seen.agrees:
                raise seen.refusal()

    @cached_property
    def table(self) -> Table:
        """The first rows of a table."""
        return open_table(self.data, self.choices, self.known, HEAD_ROWS)

    @property
    def columns(self) -> list[str]:
        """The names of its columns in small letters; their numbers where they have none."""
        return [name.strip().lower() for name in self.table.names]

    @property
    def is_of_pictures(self) -> bool:
        """Of a folder: pictures are no fewer than texts. A README does not make a folder of pictures one of text."""
        names = [plain(entry.name).suffix.lower() for entry in islice(Path(self.data).rglob("*"), HEAD_FILES)]
        n_pictures = sum(name in PICTURES for name in names)
        return bool(n_pictures) and n_pictures >= sum(name in SUFFIXES for name in names)

    @property
    def is_series(self) -> bool:
        """A column of times, and numbers in most cells of the others."""
        head = dict(zip(self.table.names, self.table.head(HEAD_ROWS), strict=True))
        for name, cells in head.items():
            filled = [(cell or "").strip() for cell in cells]
            if name.strip().lower() in TIMES or all(as_time(cell) is not None for cell in filled):
                others = [cell for other, column in head.items() if other != name for cell in column]
                return len(head) > 1 and 2 * sum(map(_is_number, others)) >= len(others)
        return False

    @cached_property
    def unclear(self) -> str:
        """Why its columns are not a text and its label; empty where they are."""
        try:
            choose(self.table)
        except (UsageError, DataError) as error:
            return str(error)
        return ""


def _is_number(cell: str | None) -> bool:
    return is_missing(cell) or is_number((cell or "").strip())
