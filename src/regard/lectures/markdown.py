"""A sitting as a page of the documentation: one Markdown file, and an SVG file for every figure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from regard.errors import ResourceError
from regard.lectures.execution import Output, SatCell, SatScreen
from regard.lectures.notebook import Lecture
from regard.storage import disk

# Beside the folder, in the documentation: every statement of every lecture.
ALL_STATEMENTS = "statements.md"


def write(lecture: Lecture, sat: Iterable[SatScreen], folder: Path) -> Path:
    """Write NAME.md with NAME-1.svg and so on into a folder, which is made; what else lies there stays."""
    text, figures = page(lecture, sat)
    if lecture.statements and (folder.parent / ALL_STATEMENTS).is_file():
        text += f"\n[What was said in all lectures](../{ALL_STATEMENTS})\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(f"{folder}: cannot make a folder: {error.strerror}; name another place") from error
    figure = re.compile(rf"{re.escape(lecture.name)}-[1-9]\d*\.svg")
    for old in folder.iterdir():
        if figure.fullmatch(old.name) and old.name not in figures:
            disk.discard(old)
    for name, drawing in figures.items():
        disk.write_for_person(folder / name, [drawing.encode("utf-8")])
    disk.write_for_person(folder / f"{lecture.name}.md", [text.encode("utf-8")])
    return folder / f"{lecture.name}.md"


def page(lecture: Lecture, sat: Iterable[SatScreen]) -> tuple[str, dict[str, str]]:
    """The text of the page, and its figures by the names of their files."""
    figures: dict[str, str] = {}
    parts = [f"# {lecture.title}", f"```\nregard lecture {lecture.name}\n```"]
    for one in sat:
        parts += [f"## {one.screen.title}"] if one.screen.title != lecture.title else []
        for cell in one.cells:
            body = "\n\n".join(_cell(cell, lecture, one.screen.title, figures))
            parts.append(_folded(body) if cell.cell.is_solution else body)
    return "\n\n".join(part for part in parts if part) + "\n", figures


def _cell(sat: SatCell, lecture: Lecture, title: str, figures: dict[str, str]) -> Iterator[str]:
    if not sat.cell.is_code:
        yield sat.cell.source.strip("\n")
        return
    yield _block(sat.cell.source, "python")
    for output in sat.outputs:
        yield _output(output, lecture, title, figures)


def _output(output: Output, lecture: Lecture, title: str, figures: dict[str, str]) -> str:
    if output.kind not in ("view", "svg"):
        return _block(output.value, "text")
    name = f"{lecture.name}-{len(figures) + 1}.svg"
    figures[name] = output.value.to_svg() if output.kind == "view" else output.value
    told = output.value.title if output.kind == "view" else title
    return f"![{told.translate(str.maketrans('', '', '[]'))}]({quote(name)})"


def _block(text: str, language: str) -> str:
    """Code or what it printed, within a fence longer than any in it."""
    body = text.strip("\n")
    fence = "```"
    while fence in body:
        fence += "`"
    return f"{fence}{language}\n{body}\n{fence}"


def _folded(body: str) -> str:
    """A solution, behind a click."""
    return f'<details markdown="1">\n<summary>Solution</summary>\n\n{body}\n\n</details>'
