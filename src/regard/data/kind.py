"""Which task data is for, told by its name and its first lines."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from pathlib import Path

from regard.data.labelled import choose
from regard.data.record import FORMS, Records, read_records
from regard.data.source import STDIN, SUFFIXES, files, plain
from regard.data.worlds import PREFIX, from_spec
from regard.errors import DataError, UsageError

KINDS = ("text", "pairs", "labelled", "tagged", "captions", "series")
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".npz")
TAGGED = (".conll", ".conllu")
TIMES = ("time", "date", "datetime", "timestamp")
# Enough to see that a side of sorted pairs has too many different values for labels.
HEAD_ROWS = 1000
HEAD_FILES = 1000


def kind_of(data: str, target: str | None = None) -> str:
    """text, pairs, labelled, tagged, captions or series. Only the head of a file is read.

    A second file makes pairs, and a world says what it is. .conll and .conllu are tagged, .npz and folders of pictures
    captions, .jsonl is labelled. Of .tsv and .csv the columns decide. Everything else is text.
    """
    if target is not None:
        return "pairs"
    if data.startswith(PREFIX):
        return from_spec(data).task
    if data == STDIN:
        return "text"
    if Path(data).is_dir():
        return _kind_of_folder(Path(data))
    files(data)
    suffix = plain(data).suffix.lower()
    if suffix in TAGGED:
        return "tagged"
    if suffix in PICTURES:
        return "captions"
    form = FORMS.get(suffix)
    if form is None:
        return "text"
    return "labelled" if form == "jsonl" else _kind_of_columns(read_records(data, HEAD_ROWS), form)


def _kind_of_folder(folder: Path) -> str:
    """captions where pictures are no fewer than texts: a README does not make a folder of pictures one of text."""
    names = [plain(entry.name).suffix.lower() for entry in islice(folder.rglob("*"), HEAD_FILES)]
    n_pictures = sum(name in PICTURES for name in names)
    return "captions" if n_pictures and n_pictures >= sum(name in SUFFIXES for name in names) else "text"


def _kind_of_columns(records: Records, form: str) -> str:
    names = [str(cell).strip().lower() for cell in records.row(0)]
    if any(name.startswith("caption") for name in names):
        return "captions"
    if _is_series(names, [records.row(index) for index in range(1, len(records))]):
        return "series"
    try:
        choose(records)
    except (UsageError, DataError) as error:
        if form == "tsv" and len(names) == 2:
            return "pairs"
        raise UsageError(f"{error}; or say another task with --task: {', '.join(KINDS)}") from None
    return "labelled"


def _is_series(names: list[str], rows: list[list[str | None]]) -> bool:
    """A column of times, and numbers in most cells of the others."""
    for index, name in enumerate(names):
        cells = [row[index] or "" for row in rows]
        if name in TIMES or (cells and all(map(_is_time, cells))):
            others = [cell or "" for row in rows for i, cell in enumerate(row) if i != index]
            return len(names) > 1 and 2 * sum(map(_is_number, others)) >= len(others)
    return False


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
