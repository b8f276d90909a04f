"""The order of pages under a pattern of the nav: an index first, lectures as they are given, the others by name."""

from __future__ import annotations

from pathlib import PurePosixPath

from pages import ROOT


def place(page: str) -> tuple[int, str]:
    """What pages are sorted by."""
    path = PurePosixPath(page)
    if path.stem in ("index", "README"):
        return -1, ""
    return (_given(path.stem), path.stem) if path.parts[0] == "lectures" else (0, path.stem)


def _given(lecture: str) -> int:
    """The number of a lecture, which its notebook has in front of its name."""
    numbers = [int(file.name.partition("-")[0]) for file in ROOT.glob(f"lectures/[0-9]*-{lecture}.ipynb")]
    return numbers[0] if numbers else 0
