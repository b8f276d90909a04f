"""Answers without a path of this machine: what they say of files they say by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# A backslash alone begins none: it is part of a pattern that an error names, such as \d.
PATH = re.compile(r"(?<![\w.~/])(?!/v1/)(?:[A-Za-z]:[/\\]|/)(?:[^\s:'\",()]+[/\\])*[^\s:'\",()]*|~/[^\s:'\",()]+")
BETWEEN = re.compile(r"[/\\]+")


def placeless(text: str, run: str = "", path: object = "") -> str:
    """A line that says the name of a run where it says where this lies, and nothing for other paths.

    >>> placeless("/home/a/runs/lstm: /tmp/a b is gone", "lstm", "/home/a/runs/lstm")
    'lstm: ... b is gone'
    """
    if str(path) not in ("", "."):
        text = text.replace(str(path), run)
    return PATH.sub("...", text)


def name_in(value: Any) -> Any:
    """The name of what a path leads to; anything else as it is.

    >>> name_in("/home/a/my.txt"), name_in("world:stories"), name_in(0.5)
    ('my.txt', 'world:stories', 0.5)
    """
    if not isinstance(value, str):
        return value
    return next((part for part in reversed(BETWEEN.split(value)) if part), value)


def without_paths(found: Mapping[str, Any], paths: Mapping[str, Path]) -> dict[str, Any]:
    """An answer to the lab's page or a view as a server gives it. paths: of its runs, by their names."""
    cleaned = dict(found)
    if isinstance(found.get("about"), Mapping):
        names = {str(path): name for name, path in paths.items()}
        cleaned["about"] = {key: names.get(str(value), value) for key, value in found["about"].items()}
    match found.get("runs"):
        case Mapping() as by_name:
            cleaned["runs"] = {name: _told_of(run, name, paths) for name, run in by_name.items()}
        case [*listed]:
            cleaned["runs"] = [_told_of(run, run["name"], paths) for run in listed]
    return cleaned


def _told_of(run: Mapping[str, Any], name: str, paths: Mapping[str, Path]) -> dict[str, Any]:
    """What the list or the curves say of a run."""
    told = dict(run)
    if "error" in run:
        told["error"] = placeless(str(run["error"]), name, paths.get(name, ""))
    if "settings" in run:
        told["settings"] = {key: name_in(value) for key, value in run["settings"].items()}
    if "data" in run:
        told["data"] = [name_in(value) for value in run["data"]]
    return told
