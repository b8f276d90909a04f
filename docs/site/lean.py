"""The theme's style sheet without the rules of what the site does not have: admonitions, tabs, blogs and the like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

# A string, a brace, or the end of a statement: all that tells where a rule of a style sheet ends.
MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[{};]')
CLASSES = re.compile(r'class="([^"]*)"')
NAMED = re.compile(r"\.((?:[\w-]|\\.)+)")
BETWEEN = re.compile(r",(?![^(\[]*[)\]])")
GROUPS = ("@media", "@supports")


def slim(site: Path) -> None:
    """Take the rules out that no page and no script can have a use for."""
    used = set[str]()
    for page in site.rglob("*.html"):
        used.update(*(found.split() for found in CLASSES.findall(page.read_text(encoding="utf-8"))))
    for script in site.rglob("*.js"):
        used.update(re.findall(r"[\w-]+", script.read_text(encoding="utf-8")))
    for sheet in (site / "assets" / "stylesheets").glob("*.css"):
        sheet.write_text("".join(kept(sheet.read_text(encoding="utf-8"), used)), encoding="utf-8")


def kept(sheet: str, used: set[str]) -> Iterator[str]:
    """The rules of a style sheet that have a use, with what they stand in."""
    for head, body in rules(sheet):
        if body is None or (head.startswith("@") and not head.startswith(GROUPS)):
            yield head if body is None else f"{head}{{{body}}}"
        elif head.startswith(GROUPS):
            inside = "".join(kept(body, used))
            yield f"{head}{{{inside}}}" if inside else ""
        else:
            selectors = [one for one in BETWEEN.split(head) if _matches(one, used)]
            yield f"{','.join(selectors)}{{{body}}}" if selectors else ""


def rules(sheet: str) -> Iterator[tuple[str, str | None]]:
    """What stands before braces and in them, one after the other. Statements such as @charset have none."""
    start, opened, depth = 0, 0, 0
    for mark in MARKS.finditer(sheet):
        if mark[0] == "{":
            depth, opened = depth + 1, mark.start() if depth == 0 else opened
        elif mark[0] == "}":
            depth -= 1
            if depth == 0:
                yield sheet[start:opened], sheet[opened + 1 : mark.start()]
                start = mark.end()
        elif mark[0] == ";" and depth == 0:
            yield sheet[start : mark.end()], None
            start = mark.end()


def _matches(selector: str, used: set[str]) -> bool:
    """Whether something on the site could be meant: every class that a selector asks for is known."""
    plain = re.sub(r"\[[^\]]*\]|:not\([^)]*\)", "", selector)
    return all(name.replace("\\", "") in used for name in NAMED.findall(plain))
