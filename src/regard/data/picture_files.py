"""Pictures to be captioned: those of a folder, of an array, or of a table that names them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from regard.data.choices import Choices
from regard.data.example import Captioned
from regard.data.kind import Head
from regard.data.picture import FILE_NAMES, SUFFIXES, pictures_in
from regard.data.source import plain
from regard.data.tabular import open_table
from regard.data.unlabelled import Items, Role, Unlabelled, of_table
from regard.errors import DataError
from regard.storage.regular import open_regular

PICTURE_ROLE = Role("file", usual=FILE_NAMES)


def read_pictures(data: str, choices: Choices) -> Unlabelled:
    """The pictures of a folder by their names within it, of an .npz, of one file, or of a table beside them."""
    place = Path(data)
    if not place.is_dir() and plain(data).suffix.lower() not in (*SUFFIXES, ".npz"):
        return _of_table(data, choices)
    found = pictures_in(data)
    names = [_name(one, number, place) for number, one in enumerate(found)]
    return Unlabelled(Items(found), {"file": Items(names)}, Items(list(map(_place, found))), mark=_mark)


def _of_table(data: str, choices: Choices) -> Unlabelled:
    """The pictures that a table names; paths are those from its own folder on."""
    head = Head(data, choices, FILE_NAMES)
    if not head.has_columns:
        raise DataError(f"{data} holds no pictures: give a folder of them, an .npz, or a table with a column file")
    folder = Path(data).parent
    table = open_table(data, choices, FILE_NAMES)

    def picture(row: int, cell: str | None) -> str:
        path = folder / (cell or "").strip()
        if not path.is_file():
            missing = f"there is no picture {path}" if path != folder else "no picture is named"
            raise DataError(f"{table.where(row)}: {missing}; mend it, or take the row away")
        return str(path)

    found = of_table(table, PICTURE_ROLE, "empty", picture)
    return Unlabelled(found.inputs, found.columns, found.places, found.named, mark=_mark, notes=found.notes)


def _name(one: str | Captioned, number: int, place: Path) -> str:
    if isinstance(one, Captioned):
        return f"{place.name}#{number}"
    return Path(one).relative_to(place).as_posix() if place.is_dir() else one


def _place(one: str | Captioned) -> str:
    return one.where if isinstance(one, Captioned) else one


def _mark(one: Any) -> bytes:
    """The bytes of a picture: a file may hold another one tomorrow."""
    if isinstance(one, Captioned):
        return hashlib.sha256(one.picture.tobytes()).digest()
    try:
        with open_regular(one) as file:
            return hashlib.sha256(file.read()).digest()
    except OSError:
        return b""  # whoever looks at it says why it cannot be read
