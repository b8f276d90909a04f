"""What a finished file of answers is made into by its name: Parquet, Excel, or the same packed.

.parquet .pq .xlsx       from the lines of a .jsonl
.csv.gz .jsonl.zst ..    the file as it is, packed; the same answers are the same bytes
"""

from __future__ import annotations

import gzip
import importlib
import lzma
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from regard.data.cell import cell_of
from regard.data.columnar import needed
from regard.data.parquet_writer import line_chunks, parquet_from_lines
from regard.errors import ResourceError, UsageError
from regard.storage.regular import open_regular

PARQUET, EXCEL = (".parquet", ".pq"), (".xlsx",)
SHEET_ROWS, CELL_LENGTH = 1_048_576, 32_767  # what a sheet of Excel holds, its header included, and what a cell does
WHOLE = 10**15  # from which on Excel writes zeros for the last digits
WHAT = "writing Excel files"
Conversion = Callable[[Path, Path], None]


def conversion_for(path: Path) -> Conversion | None:
    """What makes the file of that name from the one that was written; None where that is it. A lack is told at once."""
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        needed("pyarrow.parquet", "writing Parquet files")
        return parquet_from_lines
    if suffix in EXCEL:
        needed("openpyxl", WHAT)
        return excel_from_lines
    packer = PACKERS.get(suffix)
    if packer is None:
        return None
    if Path(path.stem).suffix.lower() in (*PARQUET, *EXCEL):
        raise UsageError(f"{path}: such a file is packed already; leave {suffix} out")
    pack = packer()

    def packed(plain: Path, out: Path) -> None:
        with open_regular(plain) as source, open(out, "xb") as file, pack(file) as target:
            shutil.copyfileobj(source, target)

    return packed


def written_suffix(path: Path) -> str:
    """The suffix of the file that is written, before it is packed."""
    return Path(path.stem if path.suffix.lower() in PACKERS else path.name).suffix.lower()


def excel_from_lines(lines: Path, out: Path) -> None:
    """Write a workbook of one sheet from the objects, one a line and all of the same keys, in `lines`."""
    book: Any = needed("openpyxl", WHAT).Workbook(write_only=True)
    sheet, number = book.create_sheet("answers"), 0
    for rows in line_chunks(lines):
        for row in rows:
            if number == 0:
                sheet.append([_held(sheet, name, name) for name in row])
            number += 1
            if number >= SHEET_ROWS:
                raise UsageError(f"{out.name}: a sheet has room for {SHEET_ROWS - 1:,} rows; write a .csv or .parquet")
            sheet.append([_held(sheet, value, name) for name, value in row.items()])
    with open(out, "xb") as file:
        book.save(file)


def _held(sheet: Any, value: Any, name: str) -> Any:
    """A value as a cell: numbers are numbers where Excel has them, and a text is one, also where it begins as a formula
    does."""
    if value is None or value != value:
        return None
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) < WHOLE):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    cells = importlib.import_module("openpyxl.cell.cell")
    text = cells.ILLEGAL_CHARACTERS_RE.sub("\ufffd", cell_of(value) or "")
    if len(text) > CELL_LENGTH:
        raise UsageError(f"a cell of Excel has room for {CELL_LENGTH:,} characters, and one of {name!r} has more")
    cell = cells.WriteOnlyCell(sheet, text)
    cell.data_type = "s"
    return cell


@contextmanager
def _gzip(file: IO[bytes]) -> Iterator[Any]:
    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as target:
        yield target


def _zstandard() -> Callable[[IO[bytes]], Any]:
    """What packs to a file: Python's own from 3.14 on, else that of `zstandard`."""
    try:
        own: Any = importlib.import_module("compression.zstd")
        return lambda file: own.ZstdFile(file, "w")
    except ImportError:
        pass
    try:
        other: Any = importlib.import_module("zstandard")
    except ImportError:
        raise ResourceError(
            "writing .zst files needs Python 3.14 or zstandard, which is not installed; pip install 'regard[tables]'"
        ) from None
    return lambda file: other.ZstdCompressor().stream_writer(file, closefd=False)


PACKERS: dict[str, Callable[[], Callable[[IO[bytes]], Any]]] = {
    ".gz": lambda: _gzip,
    ".xz": lambda: partial(lzma.open, mode="wb"),
    ".zst": _zstandard,
}
