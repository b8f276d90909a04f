"""Extras: the packages that only some commands need, which of them are here, and the command that installs the others.

What belongs to an extra is read from the metadata of the installed package, so that no second list can drift from
pyproject.toml. Nothing is imported to find out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

PACKAGE = "regard"
CORE = ""  # the extra of what is always needed
PURPOSES = {
    "tasks": "BLEU and chrF of translations, reading pictures, drawing PNG",
    "pictures": "PNG, and SVG that carries its fonts",
    "track": "curves in TensorBoard",
    "notebook": "live views in a notebook",
    "sklearn": "estimators for scikit-learn",
    "ray": "trainings and counting on a Ray cluster",
    "tables": "Parquet, Arrow, Excel, data frames and .zst files",
    "serve": "regard serve, the API over HTTP",
    "hf": "models and tokenizers of Hugging Face, GGUF files",
    "export": "regard export to ONNX and GGUF",
    "docs": "building the documentation as a site",
    "test": "running the tests",
}
# As in `zstandard>=0.22; python_version < "3.14" and extra == "tables"`.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LEAST = re.compile(r">=\s*([0-9][0-9.]*)")
EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)")
BEFORE = re.compile(r"python_version\s*<\s*['\"]([0-9.]+)")


@dataclass(frozen=True)
class Requirement:
    """A package by its name, the least version, and the extra that it belongs to."""

    name: str
    least: str
    extra: str

    @property
    def here(self) -> str | None:
        """The version that is installed, or None."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return None

    @property
    def lacks(self) -> str | None:
        """What is wrong with it, or None."""
        found = self.here
        if found is None:
            return f"{self.name} is missing"
        return f"{self.name} {found} is older than {self.least}" if release(found) < release(self.least) else None


@dataclass(frozen=True)
class Extra:
    """What an extra is for, what it still lacks, and how to get it."""

    name: str
    purpose: str
    packages: dict[str, str | None]
    lacks: tuple[str, ...]

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install '{PACKAGE}[{self.name}]'"


def release(version: str) -> tuple[int, ...]:
    """The numbers with which a version begins.

    >>> release("2.13.0+cpu") >= release("2.11"), release("2.9") >= release("2.11")
    (True, False)
    """
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def parsed(line: str) -> Requirement | None:
    """A line of the metadata; None of a package that this Python has no need of.

    >>> parsed("onnx>=1.19; extra == 'export'")
    Requirement(name='onnx', least='1.19', extra='export')
    """
    named, _, marker = line.partition(";")
    before, extra, least = BEFORE.search(marker), EXTRA.search(marker), LEAST.search(named)
    if before and sys.version_info[:2] >= release(before[1]):
        return None
    found = NAME.match(named.strip())
    return Requirement(found[0] if found else named.strip(), least[1] if least else "", extra[1] if extra else CORE)


def requirements() -> Iterator[Requirement]:
    """All that the installed package may need; nothing where it runs from its source without being installed."""
    try:
        lines = metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return
    yield from filter(None, map(parsed, lines))


def broken() -> list[str]:
    """What is wrong with the packages that every command needs."""
    return [one.lacks for one in requirements() if one.extra == CORE and one.lacks]


def extras() -> list[Extra]:
    """Every extra, in the order in which the metadata has them."""
    by_name: dict[str, list[Requirement]] = {}
    for one in requirements():
        if one.extra != CORE:
            by_name.setdefault(one.extra, []).append(one)
    return [
        Extra(
            name,
            PURPOSES.get(name, ""),
            {one.name: one.here for one in parts},
            tuple(one.lacks for one in parts if one.lacks),
        )
        for name, parts in by_name.items()
    ]
