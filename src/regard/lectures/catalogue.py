"""The lectures that come with the package, in the order of the road, and those of a person's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from regard.errors import ResourceError, UsageError, nearest
from regard.lectures.notebook import SUFFIX, Lecture, read

HERE = Path(__file__).parent
# In an installed package, and in a checkout.
PLACES = (HERE / "notebooks", HERE.parents[2] / "lectures")


def folder() -> Path:
    """Where the notebooks lie."""
    found = next((place for place in PLACES if any(place.glob(f"*{SUFFIX}"))), None)
    if found is None:
        raise ResourceError(f"no lectures lie in {PLACES[0]}; install regard again, or name a notebook of your own")
    return found


def lectures() -> list[Lecture]:
    """All of them, the first first."""
    return sorted((_read(path) for path in folder().glob(f"*{SUFFIX}")), key=lambda one: (one.number, one.name))


def names() -> list[str]:
    """Their names, in their order."""
    return [one.name for one in lectures()]


def lecture(name: str | Path) -> Lecture:
    """The lecture of that name or number, or in that file; an unknown name is refused with the nearest."""
    asked = str(name)
    if asked.endswith(SUFFIX):
        return read(Path(asked).expanduser())
    known = lectures()
    found = next((one for one in known if asked in (one.name, str(one.number))), None)
    if found is None:
        meant = nearest(asked.lower(), [one.name for one in known])
        raise UsageError(f"unknown lecture {asked!r}{meant}; regard lecture names them all, or name a file (*{SUFFIX})")
    return found


@cache
def _read_once(path: Path, _changed: int) -> Lecture:
    return read(path)


def _read(path: Path) -> Lecture:
    """A file is read again only when it has changed: every answer to an exercise asks for its lecture."""
    return _read_once(path, path.stat().st_mtime_ns)
