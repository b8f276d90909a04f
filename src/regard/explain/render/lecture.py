"""A lecture that was sat as one HTML file: it opens from disk, needs no network, and may not use any."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from regard.charts.markup import text_of
from regard.explain.render.file import WEB, alone, started, style


def lecture_html(sitting: dict[str, Any]) -> str:
    """The file of a sitting, as `regard.lectures.sitting` makes it: a page to scroll through, and to show large."""
    return alone(sitting["title"], ("regard-sitting", sitting), lecture_script(), lecture_style(), plain(sitting))


@cache
def lecture_script() -> str:
    """Draws the sitting that a file holds."""
    return started("lecturefile")


@cache
def lecture_style() -> str:
    """The style sheet of views and lectures."""
    return style() + (WEB / "lecture.css").read_text(encoding="utf-8")


def plain(sitting: dict[str, Any]) -> str:
    """The lecture in words, for a reader whose browser runs no scripts."""
    return "\n".join([sitting["title"], sitting["question"], *_lines(sitting)])


def _lines(sitting: dict[str, Any]) -> Iterator[str]:
    for screen in sitting["screens"]:
        yield f"\n{screen['title']}\n"
        for cell in screen["cells"]:
            yield from (text_of(node) for node in cell.get("prose", ()))
            if "code" in cell:
                yield cell["code"]
            yield from (output["text"] for output in cell.get("outputs", ()) if "text" in output)
