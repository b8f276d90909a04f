"""Docstrings are plain text with equations as indented blocks: what Markdown would read into them is taken from it."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

SPECIAL = re.compile(r"([\\*_<\[\]#])")
COLUMNS = re.compile(r"\S.{0,24}? {2,}\S")
SPAN = re.compile(r"(`[^`]*`)")


class PlainDocstrings(Extension):
    """Escapes the marks of Markdown in docstrings, other than in code."""

    def on_instance(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value)


def plain(text: str) -> str:
    """Docstring text as Markdown that reads the same. A block that begins with blanks is code already."""
    blocks, fixed = re.split(r"(\n\s*\n)", text), []
    for block in blocks:
        fixed.append(block if not block.strip() or block.startswith((" ", "\t")) else _paragraph(block))
    return "".join(fixed)


def _paragraph(block: str) -> str:
    """Lines of text, then perhaps an equation, which has an indent, or a glossary, whose lines have columns."""
    made, is_code = list[str](), False
    for line in block.split("\n"):
        was_code, is_code = is_code, is_code or line.startswith("    ") or COLUMNS.match(line) is not None
        if is_code and not was_code:
            made.append("")
        made.append((line if line.startswith("    ") else f"    {line}") if is_code else _escaped(line))
    return "\n".join(made)


def _escaped(line: str) -> str:
    return "".join(part if part.startswith("`") else SPECIAL.sub(r"\\\1", part) for part in SPAN.split(line))
