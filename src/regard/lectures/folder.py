"""Where the runs of a lecture lie while it is sat: a folder for temporary files, gone when the process ends."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from regard.errors import ResourceError, UsageError
from regard.storage.temporary import TemporaryFolder

NAME = re.compile(r"[\w-]+")
_numbers: Counter[str] = Counter()


def new_folder(name: str = "run") -> str:
    """A path where nothing lies yet, a new one at every call: a cell may be run twice."""
    if not NAME.fullmatch(name):
        raise UsageError(f"new_folder: a name is made of letters, digits, - and _, found {name!r}")
    _numbers[name] += 1
    return str(_place().path / (name if _numbers[name] == 1 else f"{name}-{_numbers[name]}"))


def begin() -> None:
    """A new place for a new sitting, whose runs are then called alike every time; the one before is removed."""
    _place.cache_clear()
    _numbers.clear()


@cache
def _place() -> TemporaryFolder:
    try:
        return TemporaryFolder(None, "regard-lecture-")
    except OSError as error:
        raise ResourceError(f"no folder for the runs of a lecture: {error.strerror}; set TMPDIR to one") from error
