"""Where the runs of a lecture lie while it is sat: a folder for temporary files, gone when the process ends."""

from __future__ import annotations

import re
from functools import cache
from itertools import count

from regard.errors import ResourceError, UsageError
from regard.storage.temporary import TemporaryFolder

NAME = re.compile(r"[\w-]+")
_numbers = count(1)


def new_folder(name: str = "run") -> str:
    """A path where nothing lies yet, a new one at every call: a cell may be run twice."""
    if not NAME.fullmatch(name):
        raise UsageError(f"new_folder: a name is made of letters, digits, - and _, found {name!r}")
    return str(_place().path / f"{name}-{next(_numbers)}")


@cache
def _place() -> TemporaryFolder:
    try:
        return TemporaryFolder(None, "regard-lecture-")
    except OSError as error:
        raise ResourceError(f"no folder for the runs of a lecture: {error.strerror}; set TMPDIR to one") from error
