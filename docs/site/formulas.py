"""Formulas of a page, `$..$` and `$$..$$` as GitHub takes them, as MathML by regard's own reader of TeX."""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from markdown import Extension, Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.inlinepatterns import InlineProcessor
from markdown.util import AtomicString

from regard.charts.formula import mathml

# A dollar of the text (5 $, $HOME) is followed or preceded by a blank, a letter or a digit, or never closed.
INLINE = r"(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<![\s\\])\$(?![\w$])"
BLOCK = re.compile(r"^ {0,3}\$\$(.+?)\$\$[ ]*(?:\n|$)", re.DOTALL)


class Formulas(Extension):
    """Both kinds, before anything else looks at underscores and backslashes; code stays code."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.inlinePatterns.register(_Inline(INLINE, md), "formula", 185)
        md.parser.blockprocessors.register(_Block(md.parser), "formula", 75)


class _Inline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:
        return element(mathml(m[1])), m.start(), m.end()


class _Block(BlockProcessor):
    def test(self, parent: Element, block: str) -> bool:
        return BLOCK.match(block) is not None

    def run(self, parent: Element, blocks: list[str]) -> None:
        block = blocks.pop(0)
        found = BLOCK.match(block)
        assert found is not None
        SubElement(parent, "div", {"class": "formula"}).append(element(mathml(found[1].strip(), block=True)))
        if rest := block[found.end() :].strip("\n"):
            blocks.insert(0, rest)


def element(node: list[Any]) -> Element:
    """A node of regard.charts.markup as one of Python-Markdown's, whose text nobody reads again."""
    tag, attributes, *children = node
    made = Element(tag, {name: str(value) for name, value in attributes.items()})
    last: Element | None = None
    for child in children:
        if not isinstance(child, str):
            last = element(child)
            made.append(last)
        elif last is None:
            made.text = AtomicString((made.text or "") + child)
        else:
            last.tail = AtomicString((last.tail or "") + child)
    return made
