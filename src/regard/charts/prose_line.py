"""A line of prose as nodes: code, formulas, links and images first, then emphasis around what is left."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from regard.charts.formula import mathml
from regard.charts.markup import Node, is_safe

ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", re.DOTALL)
BLOCK_TEX = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
# A dollar before a blank or after one is a price, and so is one before a digit.
TEX = re.compile(r"\$(?![\s$])((?:\\.|[^$\\])*?)(?<!\s)\$(?!\d)", re.DOTALL)
ADDRESS = r"\(\s*<?((?:\\.|[^\s()<>\\]|\([^\s()]*\))*)>?(?:\s+\"((?:\\.|[^\"\\])*)\")?\s*\)"
LINK = re.compile(r"\[((?:\\.|`[^`]*`|\[[^\[\]]*\]|[^\[\]\\`])*)\]" + ADDRESS, re.DOTALL)
IMAGE = re.compile(r"!" + LINK.pattern, re.DOTALL)
BARE = re.compile(r"<(https?://[^\s<>]+)>")
BREAK = re.compile(r"(?: {2,}|\\)\n")
MARKS = re.compile(r"\*+|_+")
TEXT = re.compile(r"[^\\`$!\[<*_ \n]+|[ \n]|.", re.DOTALL)
TAGS = {1: "em", 2: "strong"}


@dataclass
class Mark:
    """Asterisks or underscores that may begin emphasis, end it, or both."""

    sign: str
    count: int
    opens: bool
    closes: bool


Part: TypeAlias = "str | Node | Mark"


def inline(text: str) -> list[Node | str]:
    """The parts of a line."""
    return merged(_emphasised(_parts(text)))


def _parts(text: str) -> list[Part]:
    parts: list[Part] = []
    place = 0
    while place < len(text):
        for pattern, read in READERS:
            found = pattern.match(text, place)
            if found:
                parts += read(found)
                place = found.end()
                break
    return parts


def _mark(found: re.Match[str]) -> list[Part]:
    """Marks beside a blank neither begin nor end anything there; underscores within a word do nothing."""
    text, sign = found.string, found[0][0]
    before = text[found.start() - 1] if found.start() else " "
    after = text[found.end()] if found.end() < len(text) else " "
    opens = not after.isspace() and (before.isspace() or not before.isalnum() or after.isalnum())
    closes = not before.isspace() and (after.isspace() or not after.isalnum() or before.isalnum())
    if sign == "_":
        opens, closes = opens and not before.isalnum(), closes and not after.isalnum()
    return [Mark(sign, len(found[0]), opens, closes)]


def _link(found: re.Match[str]) -> list[Part]:
    """A link to where one may lead; another one is its words."""
    inside = inline(found[1])
    address = _unescaped(found[2])
    if not address or not is_safe(address):
        return [*inside]
    about = {"href": address} | ({"title": _unescaped(found[3])} if found[3] else {})
    return [["a", about | ({"rel": "noreferrer"} if ":" in address else {}), *inside]]


def _image(found: re.Match[str]) -> list[Part]:
    """A picture of the same place; of another one, what it shows in words."""
    words, address = _unescaped(found[1]), _unescaped(found[2])
    if not address or not is_safe(address, web=False):
        return [words]
    return [["img", {"src": address, "alt": words}]]


def _unescaped(text: str) -> str:
    return ESCAPED.sub(r"\1", text)


def _emphasised(parts: list[Part]) -> list[Node | str]:
    """Marks in pairs around what they emphasise; one without another is text."""
    done: list[Part] = []
    for part in parts:
        if isinstance(part, Mark) and part.closes:
            while part.count and (begin := _opener(done, part)) is not None:
                opener = done[begin]
                assert isinstance(opener, Mark)
                width = 2 if opener.count >= 2 and part.count >= 2 else 1
                node: Node = [TAGS[width], {}, *merged([_as_text(one) for one in done[begin + 1 :]])]
                opener.count -= width
                part.count -= width
                done[begin + (1 if opener.count else 0) :] = [node]
        if not isinstance(part, Mark) or part.count:
            done.append(part)
    return [_as_text(part) for part in done]


def _opener(done: list[Part], mark: Mark) -> int | None:
    """Where the emphasis begins that a mark ends; not right before it."""
    for place in range(len(done) - 2, -1, -1):
        one = done[place]
        if isinstance(one, Mark) and one.opens and one.sign == mark.sign:
            return place
    return None


def _as_text(part: Part) -> Node | str:
    return part.sign * part.count if isinstance(part, Mark) else part


def merged(parts: list[Node | str]) -> list[Node | str]:
    """The same with texts that follow each other as one."""
    found: list[Node | str] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return found


# The first that fits at a place reads there.
READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], list[Part]]], ...] = (
    (BREAK, lambda _found: [["br", {}]]),
    (ESCAPED, lambda found: [found[1]]),
    (CODE, lambda found: [["code", {}, " ".join(found[2].split("\n")).strip() or found[2]]]),
    (BLOCK_TEX, lambda found: [mathml(found[1], block=True)]),
    (TEX, lambda found: [mathml(found[1])]),
    (IMAGE, _image),
    (LINK, _link),
    (BARE, lambda found: [["a", {"href": found[1], "rel": "noreferrer"}, found[1]]]),
    (MARKS, _mark),
    (TEXT, lambda found: [found[0]]),
)
