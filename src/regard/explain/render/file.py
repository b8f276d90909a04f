"""A view as a file; the end of its name says what it is."""

from __future__ import annotations

import json
from pathlib import Path

from regard.errors import UsageError
from regard.explain.view import View
from regard.storage import disk

SUFFIXES = (".svg", ".png", ".html", ".json")


def save(view: View, path: str | Path) -> None:
    """Write a view whole or not at all."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise UsageError(f"{path}: a view is saved as one of {', '.join(SUFFIXES)}; give the file such a name")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent} to write into")
    disk.write_for_person(path, [_bytes(view, kind)])


def _bytes(view: View, kind: str) -> bytes:
    if kind == ".png":
        return view.to_png()
    if kind == ".svg":
        text = view.to_svg()
    elif kind == ".html":
        text = view.to_html()
    else:
        text = json.dumps(view.to_dict(), ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8")
