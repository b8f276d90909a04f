"""Reading pictures and their captions: a folder of picture files, or one array of them, with a table of captions.

A table is a TSV, or any other (see `tabular`). Beside picture files its columns are file, caption and, if wanted,
category; for an array, whose pictures have no names, caption and category. A first line that names a column `caption`,
or `caption_en` and so on for several languages, is a header: then the columns may stand in any order, and others are
ignored.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.choices import OPEN, Choices
from regard.data.example import Captioned
from regard.data.picture_array import PIXEL_LIMIT, good, images_in
from regard.data.source import plain
from regard.data.table import Table
from regard.data.tabular import open_table
from regard.errors import DataError, ResourceError, UsageError, nearest
from regard.storage.regular import NotRegular, open_regular

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".ppm", ".tif", ".tiff")
TABLE = "captions.tsv"
ENDINGS = (".tsv", ".csv", ".psv", ".jsonl", ".json", ".parquet", ".arrow", ".feather", ".xlsx")
# Also as Hugging Face calls the table of a folder of pictures.
TABLES = [TABLE, f"{TABLE}.gz", *(f"{stem}{end}" for stem in ("captions", "metadata") for end in ENDINGS)]
FILE_NAMES = ("file", "file_name", "image")
DEFAULT_LANGUAGE = "en"


def read_captions(path: str, *, caption: str | None = None, size: int = 32, choices: Choices = OPEN) -> list[Captioned]:
    """The captioned pictures of a folder, of an .npz with its table beside it, or of a table.

    path     a folder with captions.tsv (or .tsv.gz); an array X.images.npz with X.captions.tsv; or such a table.
             The array is called `images`, (n, height, width, 3) of unsigned bytes, row i of the table for picture i.
    caption  the column of the captions or its language; without it `caption`, then `caption_en`.
    size     every picture of another size is resized to size x size.
    """
    if size < 1:
        raise UsageError(f"size must be at least 1 pixel, found {size}")
    table, pictures = _found(Path(path))
    rows = _rows(table, caption, pictures.is_dir(), choices)
    found = _from_files(rows, table, pictures, size) if pictures.is_dir() else _from_array(rows, table, pictures, size)
    return [
        Captioned(picture, row.text, row.category, row.where, str(pictures / row.file))
        for picture, row in zip(found, rows, strict=True)
    ]


def pictures_in(path: str) -> list[str] | list[Captioned]:
    """What can be seen under a path: the files of a folder by name, the pictures of an .npz, or the one file it is."""
    place = Path(path)
    if place.is_dir():
        found = sorted(file for file in place.rglob("*") if _is_picture(file, place))
        if not found:
            raise DataError(f"the folder {path} holds no picture ({', '.join(SUFFIXES)})")
        return [str(file) for file in found]
    if place.suffix.lower() != ".npz":
        return [path]
    with good(place):
        images = images_in(place)
    return [Captioned(images[row], "", where=f"{path}, picture {row}", file=path) for row in range(len(images))]


def resized(picture: np.ndarray, size: int) -> np.ndarray:
    """A picture of unsigned bytes as (size, size, 3); one that has this size is given back as it is."""
    if picture.shape[:2] == (size, size):
        return picture
    return _resized(_pillow("PIL.Image").fromarray(picture), size)


def read_picture(path: str, size: int) -> np.ndarray:
    """One picture file as (size, size, 3) unsigned bytes: red, green, blue, on white where it is transparent."""
    image, operation = _pillow("PIL.Image"), _pillow("PIL.ImageOps")
    try:
        with warnings.catch_warnings(action="ignore"), open_regular(path) as file, image.open(file) as opened:
            if opened.width * opened.height > PIXEL_LIMIT:
                raise image.DecompressionBombError(f"{opened.width} x {opened.height} pixels")
            # A JPEG is then decoded at a fraction of its size, several times faster.
            opened.draft(None, (2 * size, 2 * size))
            return _resized(operation.exif_transpose(opened), size)
    except FileNotFoundError:
        raise DataError(f"there is no picture {path}") from None
    except NotRegular as error:
        raise DataError(f"{path} {error.strerror}; give the file of a picture") from None
    except image.DecompressionBombError as error:
        raise DataError(f"{path} is too large ({error}); give a picture of at most {PIXEL_LIMIT:,} pixels") from None
    except MemoryError:
        raise ResourceError(f"{path} does not fit into the memory; make the picture smaller") from None
    except image.UnidentifiedImageError:
        raise DataError(
            f"{path} cannot be read as a picture (of no known format); replace it or take its row away"
        ) from None
    # What a damaged file raises depends on its format: OSError, SyntaxError, struct.error, ValueError and more.
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{path} cannot be read as a picture ({reason}); replace it or take its row away") from None


@dataclass(frozen=True)
class _Row:
    """A row of a table."""

    file: str
    text: str
    category: str
    number: str
    where: str


@dataclass(frozen=True)
class _Columns:
    """Which column of a table has what; None for what it does not have."""

    file: str | None
    caption: str
    category: str | None
    number: str | None = None

    @property
    def names(self) -> tuple[str | None, ...]:
        """In the order of the fields of a row."""
        return self.file, self.caption, self.category, self.number


def _found(path: Path) -> tuple[Path, Path]:
    """The table and what holds its pictures: a folder or an .npz."""
    if not path.exists():
        raise DataError(f"there is no file or folder {path}")
    if path.is_dir():
        return _beside(path, TABLES), path
    name = plain(path.name).name
    if name.lower().endswith(".npz"):
        stem = _without(_without(name, ".npz"), ".images")
        ends = [f"{middle}{end}" for middle in (".captions", "") for end in (*ENDINGS, ".tsv.gz")]
        return _beside(path, [f"{stem}{end}" for end in ends]), path
    ending = Path(name).suffix.lower()
    if ending in ENDINGS:
        stem = _without(_without(name, ending), ".captions")
        arrays = [path.with_name(f"{stem}{end}") for end in (".images.npz", ".npz")]
        return path, next((array for array in arrays if array.is_file()), path.parent)
    raise DataError(f"{path} holds no captioned pictures: give a folder with {TABLE}, an .npz or a table")


def _without(name: str, ending: str) -> str:
    """A name without its ending, in letters of any size."""
    return name[: -len(ending)] if name.lower().endswith(ending) else name


def _beside(path: Path, names: list[str]) -> Path:
    folder = path if path.is_dir() else path.parent
    for name in names:
        if (folder / name).is_file():
            return folder / name
    arrays = sorted(folder.glob("*.npz")) if path.is_dir() else []
    if arrays:
        raise DataError(f"the folder {path} holds no {TABLE} but arrays: give one of them, such as {arrays[0]}")
    raise DataError(f"{path} has no captions: write {folder / names[0]} with a line for each picture")


def _rows(path: Path, caption: str | None, names_files: bool, choices: Choices) -> list[_Row]:
    table = open_table(str(path), choices, [*FILE_NAMES, *([caption.lower()] if caption else [])])
    if table.named or (caption is not None and caption.isdecimal()):
        columns = _named_columns(table, caption, names_files)
    elif caption is not None:
        raise UsageError(f"{path} has no header, so that there is no column {caption!r}: name the columns in line 1")
    else:
        columns = _plain_columns(table, names_files)
    cells = [table.cells[name] if name is not None else repeat("") for name in columns.names]
    return [
        _row(_Row(*_stripped(row), where=table.where(index)), columns, index)
        for index, row in enumerate(islice(zip(*cells, strict=False), len(table)))
    ]


def _stripped(row: Sequence[str | None]) -> tuple[str, str, str, str]:
    file, text, category, number = ((cell or "").strip() for cell in row)
    return file, text, category, number


def _row(row: _Row, columns: _Columns, index: int) -> _Row:
    if columns.number is not None and row.number != str(index):
        raise DataError(f"{row.where}: its row number is {row.number!r}, not {index}; sort the table")
    if not row.text or (columns.file is not None and not row.file):
        raise DataError(f"{row.where}: {'a caption' if row.file or columns.file is None else 'a file name'} is missing")
    return row


def _named_columns(table: Table, caption: str | None, names_files: bool) -> _Columns:
    names = table.names
    wanted = [caption, f"caption_{caption}"] if caption else ["caption", f"caption_{DEFAULT_LANGUAGE}", "text"]
    found = next((name for name in wanted if name in names), None)
    if found is None and caption is not None and caption.isdecimal():
        found = table.find("data.caption", caption)
    if found is None:
        captions = [name for name in names if name.startswith("caption")]
        raise UsageError(f"{table.path} has no column {' or '.join(wanted)}{nearest(wanted[1], captions)}")
    file = next((name for name in FILE_NAMES if name in names), None)
    if names_files and file is None:
        told = f"no column is called file, the name of the picture; found {', '.join(names)}"
        raise DataError(f"{table.path}, line 1: {told}")
    return _Columns(
        file if names_files else None,
        found,
        "category" if "category" in names else None,
        "row" if "row" in names and not names_files else None,
    )


def _plain_columns(table: Table, names_files: bool) -> _Columns:
    first, names = 1 if names_files else 0, table.names
    if not first < len(names) <= first + 2:
        expected = "file, caption and perhaps category" if names_files else "caption and perhaps category"
        raise DataError(f"{table.path}, line 1: expected {expected}, separated by tabs, found {len(names)} columns")
    return _Columns(
        names[0] if names_files else None, names[first], names[first + 1] if len(names) > first + 1 else None
    )


def _from_files(rows: list[_Row], table: Path, folder: Path, size: int) -> list[np.ndarray]:
    for row in rows:
        if not (folder / row.file).is_file():
            raise DataError(f"{row.where}: there is no picture {folder / row.file}")
    known = {folder / row.file for row in rows}
    unnamed = sorted(file for file in folder.rglob("*") if _is_picture(file, folder) and file not in known)
    if unnamed:
        raise DataError(f"{unnamed[0]} has no row in {table} ({len(unnamed)} such pictures): add one or move it away")
    # A picture may have several captions.
    pictures = {
        row.file: read_picture(str(folder / row.file), size) for row in {row.file: row for row in rows}.values()
    }
    return [pictures[row.file] for row in rows]


def _is_picture(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return file.suffix.lower() in SUFFIXES and not hidden and file.is_file()


def _from_array(rows: list[_Row], table: Path, array: Path, size: int) -> list[np.ndarray]:
    with good(array):
        images = images_in(array, len(rows), table)
    return [resized(picture, size) for picture in images]


def _resized(picture: Any, size: int) -> np.ndarray:
    """A picture of pillow on white, as bytes of red, green and blue."""
    if picture.mode.startswith("I;16"):
        # Pillow would cut 16 bits off at 255 instead of scaling them.
        picture = _pillow("PIL.Image").fromarray((np.asarray(picture) // 257).astype(np.uint8))
    opaque = _pillow("PIL.Image").new("RGBA", picture.size, "white")
    opaque.alpha_composite(picture.convert("RGBA"))
    return np.array(opaque.convert("RGB").resize((size, size)))


def _pillow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UsageError("reading pictures needs pillow, which is not installed; pip install 'regard[tasks]'") from None
