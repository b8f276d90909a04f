"""Docstrings are plain text with equations as indented blocks: what Markdown would read into them is taken from it."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

SPECIAL = re.compile(r"([\\*_<\[\]#])")
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
    """Lines of text, then perhaps an equation, which is told apart by its indent."""
    lines, made = block.split("\n"), list[str]()
    for line in lines:
        indented = line.startswith("    ")
        if indented and made and not made[-1].startswith("    "):
            made.append("")
        made.append(line if indented else _escaped(line))
    return "\n".join(made)


def _escaped(line: str) -> str:
    return "".join(part if part.startswith("`") else SPECIAL.sub(r"\\\1", part) for part in SPAN.split(line))
