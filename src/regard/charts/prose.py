"""Prose: the Markdown that lectures and pages are written in, as nodes.

    nodes("The weights $a = \\\\softmax(e)$ sum to **1**.")

Headings, paragraphs, lists, tables, quotes, rules and blocks of code; in a line code, emphasis, links, images and
formulas, `$..$` and, on lines of their own, `$$..$$`. There is no HTML in it: what looks like a tag is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from regard.charts.formula import mathml
from regard.charts.markup import Node
from regard.charts.prose_line import inline

HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}")
FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^`]*")
QUOTE = re.compile(r" {0,3}> ?")
ITEM = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])( +|$)(.*)")
DIVIDER = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
CELL = re.compile(r"(?<!\\)\|(?=(?:[^`]*`[^`]*`)*[^`]*$)")
BLOCK_TEX = "$$"
DEEPEST = 12


def nodes(markdown: str, depth: int = 0) -> list[Node]:
    """The blocks of a text, one after the other."""
    if depth > DEEPEST:
        raise ValueError(f"prose: lists and quotes nested more than {DEEPEST} deep")
    lines = markdown.expandtabs(4).splitlines()
    found: list[Node] = []
    place = 0
    while place < len(lines):
        if not lines[place].strip():
            place += 1
            continue
        read = next(read for fits, read in BLOCKS if fits(lines, place))
        node, place = read(lines, place, depth)
        found.append(node)
    return found


def _is_formula(line: str) -> bool:
    """Whether a formula begins here that stands on lines of its own."""
    if not line.startswith(BLOCK_TEX):
        return False
    return BLOCK_TEX not in line[2:] or line.index(BLOCK_TEX, 2) == len(line) - 2


def _is_table(lines: list[str], place: int) -> bool:
    """A row whose next line divides as many cells."""
    if "|" not in lines[place] or place + 1 == len(lines) or not DIVIDER.fullmatch(lines[place + 1]):
        return False
    return len(_cells(lines[place])) == len(_cells(lines[place + 1]))


def _is_item(lines: list[str], place: int) -> bool:
    return ITEM.fullmatch(lines[place]) is not None and not RULE.fullmatch(lines[place])


def _ends_paragraph(lines: list[str], place: int) -> bool:
    """Whether a line begins another block, as a paragraph before it would have it."""
    if not lines[place].strip():
        return True
    found = ITEM.fullmatch(lines[place])
    if found and not RULE.fullmatch(lines[place]):
        return bool(found[4]) and found[2] in ("-", "*", "+", "1.", "1)")
    return any(fits(lines, place) for fits, read in BLOCKS if read not in (_list, _paragraph))


def _heading(lines: list[str], place: int, _depth: int) -> tuple[Node, int]:
    found = HEADING.fullmatch(lines[place])
    assert found is not None
    return [f"h{len(found[1])}", {}, *inline(found[2])], place + 1


def _rule(_lines: list[str], place: int, _depth: int) -> tuple[Node, int]:
    return ["hr", {}], place + 1


def _code(lines: list[str], place: int, _depth: int) -> tuple[Node, int]:
    """Lines up to the same fence, or to the end."""
    found = FENCE.fullmatch(lines[place])
    assert found is not None
    indent, fence, language = found[1], found[2], found[3]
    end = place + 1
    closing = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*")
    while end < len(lines) and not closing.fullmatch(lines[end]):
        end += 1
    inside = [line[len(indent) :] if line.startswith(indent) else line.lstrip() for line in lines[place + 1 : end]]
    about = {"class": f"language-{language}"} if language else {}
    return ["pre", {}, ["code", about, "\n".join(inside)]], end + 1


def _formula(lines: list[str], place: int, _depth: int) -> tuple[Node, int]:
    """From $$ to $$, on one line or several."""
    held = [lines[place].strip().removeprefix(BLOCK_TEX)]
    while not held[-1].rstrip().endswith(BLOCK_TEX):
        place += 1
        if place == len(lines):
            raise ValueError(f"prose: the formula {''.join(held)[:60]!r} that begins with $$ has no end")
        held.append(lines[place])
    return ["p", {"class": "formula"}, mathml("\n".join(held).rstrip().removesuffix(BLOCK_TEX), block=True)], place + 1


def _quote(lines: list[str], place: int, depth: int) -> tuple[Node, int]:
    held = []
    while place < len(lines) and lines[place].strip() and (not held or not _starts_anew(lines, place)):
        held.append(QUOTE.sub("", lines[place], count=1))
        place += 1
    return ["blockquote", {}, *nodes("\n".join(held), depth + 1)], place


def _starts_anew(lines: list[str], place: int) -> bool:
    return not QUOTE.match(lines[place]) and _ends_paragraph(lines, place)


def _list(lines: list[str], place: int, depth: int) -> tuple[Node, int]:
    """Items of one kind; what stands as far in as the words of an item belongs to it."""
    first = ITEM.fullmatch(lines[place])
    assert first is not None
    is_numbered = first[2][0].isdigit()
    items: list[list[str]] = []
    is_loose, width = False, 0
    while place < len(lines):
        line = lines[place]
        found = ITEM.fullmatch(line)
        blank_before = bool(items) and not items[-1][-1].strip()
        if items and line[:width].strip() == "" and line.strip():
            is_loose |= blank_before and not _is_item([line[width:]], 0)
            items[-1].append(line[width:])
        elif found and found[2][0].isdigit() == is_numbered and found[2][-1] == first[2][-1]:
            is_loose |= blank_before
            gap = found[3] if 0 < len(found[3]) <= 4 else " "
            width = len(found[1]) + len(found[2]) + len(gap)
            items.append([found[4]])
        elif not line.strip():
            items[-1].append("")
        elif blank_before or _ends_paragraph(lines, place):
            break
        else:
            items[-1].append(line.lstrip())
        place += 1
    about = {"start": first[2][:-1]} if is_numbered and first[2][:-1] != "1" else {}
    return ["ol" if is_numbered else "ul", about, *(_item(item, is_loose, depth) for item in items)], place


def _item(lines: list[str], is_loose: bool, depth: int) -> Node:
    """An item; in a list whose items stand close, without paragraphs of their own."""
    inside: list[Node | str] = []
    for node in nodes("\n".join(lines), depth + 1):
        inside += node[2:] if node[0] == "p" and not node[1] and not is_loose else [node]
    return ["li", {}, *inside]


def _table(lines: list[str], place: int, _depth: int) -> tuple[Node, int]:
    sides = [_side(cell.strip()) for cell in _cells(lines[place + 1])]
    head = _row(lines[place], sides, "th")
    place += 2
    body = []
    while place < len(lines) and lines[place].strip() and not _ends_paragraph(lines, place):
        body.append(_row(lines[place], sides, "td"))
        place += 1
    return ["div", {"class": "wide"}, ["table", {}, ["thead", {}, head], ["tbody", {}, *body]]], place


def _row(line: str, sides: list[dict[str, str]], tag: str) -> Node:
    cells = (_cells(line) + [""] * len(sides))[: len(sides)]
    head = {"scope": "col"} if tag == "th" else {}
    return ["tr", {}, *([tag, head | side, *inline(cell)] for cell, side in zip(cells, sides, strict=True))]


def _cells(line: str) -> list[str]:
    line = line.strip().removeprefix("|")
    if line.endswith("|") and not line.endswith("\\|"):
        line = line[:-1]
    return [cell.strip().replace("\\|", "|") for cell in CELL.split(line)]


def _side(divider: str) -> dict[str, str]:
    if divider.endswith(":"):
        return {"class": "middle" if divider.startswith(":") else "number"}
    return {}


def _paragraph(lines: list[str], place: int, _depth: int) -> tuple[Node, int]:
    held = [lines[place]]
    place += 1
    while place < len(lines) and not _ends_paragraph(lines, place):
        held.append(lines[place])
        place += 1
    return ["p", {}, *inline("\n".join(line.lstrip() for line in held).rstrip())], place


# The first that fits reads on.
BLOCKS: list[tuple[Callable[[list[str], int], bool], Callable[[list[str], int, int], tuple[Node, int]]]] = [
    (lambda lines, place: HEADING.fullmatch(lines[place]) is not None, _heading),
    (lambda lines, place: RULE.fullmatch(lines[place]) is not None, _rule),
    (lambda lines, place: FENCE.fullmatch(lines[place]) is not None, _code),
    (lambda lines, place: _is_formula(lines[place].strip()), _formula),
    (lambda lines, place: QUOTE.match(lines[place]) is not None, _quote),
    (_is_item, _list),
    (_is_table, _table),
    (lambda _lines, _place: True, _paragraph),
]
