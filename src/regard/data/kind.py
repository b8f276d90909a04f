"""Head: what can be told of data by its name and its first lines, without reading it all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from pathlib import Path

from regard.data.labelled import choose
from regard.data.record import FORMS, Records, read_records
from regard.data.source import STDIN, SUFFIXES, files, plain
from regard.errors import DataError, UsageError

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".npz")
TIMES = ("time", "date", "datetime", "timestamp")
# Enough to see that a side of sorted pairs has too many different values for labels.
HEAD_ROWS = 1000
HEAD_FILES = 1000


@dataclass(frozen=True)
class Head:
    """A file, a folder or standard input. data: its name; a file that is not there is refused."""

    data: str

    def __post_init__(self) -> None:
        if self.data != STDIN and not self.is_folder:
            files(self.data)

    @cached_property
    def is_folder(self) -> bool:
        return Path(self.data).is_dir()

    @property
    def suffix(self) -> str:
        """Of a file, such as ".csv", without that of a packer."""
        return "" if self.data == STDIN or self.is_folder else plain(self.data).suffix.lower()

    @property
    def form(self) -> str | None:
        """jsonl, tsv or csv; None of what is no table."""
        return FORMS.get(self.suffix)

    @property
    def has_columns(self) -> bool:
        """Whether it is a table whose columns tell what it is for."""
        return self.form not in (None, "jsonl")

    @cached_property
    def records(self) -> Records:
        """The first rows of a table."""
        return read_records(self.data, HEAD_ROWS)

    @property
    def columns(self) -> list[str]:
        """Their names, or what stands in their first row."""
        return [str(cell).strip().lower() for cell in self.records.row(0)]

    @property
    def is_of_pictures(self) -> bool:
        """Of a folder: pictures are no fewer than texts. A README does not make a folder of pictures one of text."""
        names = [plain(entry.name).suffix.lower() for entry in islice(Path(self.data).rglob("*"), HEAD_FILES)]
        n_pictures = sum(name in PICTURES for name in names)
        return bool(n_pictures) and n_pictures >= sum(name in SUFFIXES for name in names)

    @property
    def is_series(self) -> bool:
        """A column of times, and numbers in most cells of the others."""
        names, rows = self.columns, [self.records.row(index) for index in range(1, len(self.records))]
        for index, name in enumerate(names):
            cells = [row[index] or "" for row in rows]
            if name in TIMES or (cells and all(map(_is_time, cells))):
                others = [cell or "" for row in rows for i, cell in enumerate(row) if i != index]
                return len(names) > 1 and 2 * sum(map(_is_number, others)) >= len(others)
        return False

    @cached_property
    def unclear(self) -> str:
        """Why its columns are not a text and its label; empty where they are."""
        try:
            choose(self.records)
        except (UsageError, DataError) as error:
            return str(error)
        return ""


def _is_time(cell: str) -> bool:
    try:
        datetime.fromisoformat(cell)
    except ValueError:
        return False
    # Digits alone are a number or a name.
    return not cell.isdecimal()


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True
