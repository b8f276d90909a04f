"""Regular expressions as trees: the part of their language that an automaton can tell by reading once.

    abc  a|b  (ab)*  (?:ab)+  a?  a{2,5}  [a-z_]  [^"]  .  \\d \\w \\s \\D \\W \\S (of ASCII)  \\n \\t \\x41 \\u00e9
    ^ and $ at the ends

A pattern is what a whole text matches (`parsed`), or what is found somewhere in it (`searched`).
What looks around or back ((?=..), \\1, \\b) is refused: no automaton of finite size tells it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from regard.decoding.utf8_range import LAST, Range, complement
from regard.errors import UsageError

LONGEST, MOST_REPEATS, DEEPEST = 1 << 16, 1000, 100
DIGIT: list[Range] = [(0x30, 0x39)]
WORD: list[Range] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
SPACE: list[Range] = [(9, 13), (0x20, 0x20)]
CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
NEWLINE: list[Range] = [(0x0A, 0x0A)]
LINE_ENDS: list[Range] = [*NEWLINE, (0x0D, 0x0D), (0x2028, 0x2029)]


@dataclass(frozen=True)
class Characters:
    """One character of these code points."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Either:
    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Repeat:
    """part, so often at least and at most; None for any number of times."""

    part: Tree
    least: int
    most: int | None


Tree = Characters | Sequence | Either | Repeat
ANYTHING = Repeat(Characters(((0, LAST),)), 0, None)


def parsed(pattern: str) -> Tree:
    """The tree of an expression that a whole text has to match."""
    return _read(pattern, whole=True)


def searched(pattern: str) -> Tree:
    """The tree of the texts in which an expression is found, as JSON Schema reads one (by ECMA-262): what does not
    begin with ^ may have anything before it, and what does not end with $ anything after it.
    """
    return _read(pattern, whole=False)


def _read(pattern: str, *, whole: bool) -> Tree:
    if len(pattern) > LONGEST:
        raise UsageError(f"the pattern has {len(pattern):,} characters, and {LONGEST:,} are the most")
    reader = _Reader(pattern, whole)
    tree = reader.either(0)
    if reader.at < len(pattern):
        reader.refuse("there is a ) without a (")
    return tree


class _Reader:
    def __init__(self, text: str, whole: bool) -> None:
        self.text, self.at, self.whole = text, 0, whole

    def refuse(self, why: str) -> None:
        raise UsageError(f"the pattern cannot be read at character {self.at}: {why}")

    def peek(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def take(self) -> str:
        found = self.peek()
        if not found:
            self.refuse("it ends too early")
        self.at += 1
        return found

    def either(self, depth: int) -> Tree:
        if depth > DEEPEST:
            self.refuse("it is nested too deeply")
        parts = [self._sequence(depth)]
        while self.peek() == "|":
            self.at += 1
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _sequence(self, depth: int) -> Tree:
        parts: list[Tree] = []
        anchors = ""
        while (mark := self.peek()) not in ("", "|", ")"):
            if mark in "^$":
                self._check_anchor(depth, first=not parts)
                anchors += self.take()
            else:
                parts.append(self._repeated(self._atom(depth)))
        if not self.whole and depth == 0:
            parts = [*[ANYTHING] * ("^" not in anchors), *parts, *[ANYTHING] * ("$" not in anchors)]
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _check_anchor(self, depth: int, *, first: bool) -> None:
        """Refuse one that stands elsewhere than at an end: of the whole, or of an alternative where one is searched."""
        mark = self.peek()
        if self.whole:
            before, after = self.text[: self.at].strip("(^?:"), self.text[self.at + 1 :].strip(")$")
        else:
            before, after = depth > 0 or not first, depth > 0 or self.peek(1) not in ("", "|", "$")
        if (mark == "^" and before) or (mark == "$" and after):
            self.refuse("^ and $ may stand at its ends alone")

    def _atom(self, depth: int) -> Tree:
        character = self.take()
        if character == "(":
            return self._group(depth)
        if character == "[":
            return self._class()
        if character == ".":
            return Characters(tuple(complement(NEWLINE if self.whole else LINE_ENDS)))
        if character == "\\":
            return Characters(tuple(self._escape()))
        if character in "*+?{":
            self.at -= 1
            self.refuse(f"there is nothing before {character} to repeat")
        return Characters(((ord(character), ord(character)),))

    def _group(self, depth: int) -> Tree:
        if self.peek() == "?":
            if self.peek(1) != ":":
                self.refuse("groups that look around or have names are not known; (?:...) is")
            self.at += 2
        tree = self.either(depth + 1)
        if self.peek() != ")":
            self.refuse("a ( is not closed")
        self.at += 1
        return tree

    def _repeated(self, part: Tree) -> Tree:
        while (mark := self.peek()) and mark in "*+?{":
            self.at += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(mark) or self._counts()
            if self.peek() in ("?", "+"):
                self.refuse("how greedy a repetition is makes no difference to what matches; leave it out")
            part = Repeat(part, least, most)
        return part

    def _counts(self) -> tuple[int, int | None]:
        end = self.text.find("}", self.at)
        first, comma, last = self.text[self.at : max(end, self.at)].partition(",")
        if end < 0 or not first.isdecimal() or (last and not last.isdecimal()):
            self.refuse("expected counts such as {2} or {2,5}")
        least, most = int(first[:5]), int(last[:5]) if last else None if comma else int(first[:5])
        if least > MOST_REPEATS or (most or 0) > MOST_REPEATS or (most is not None and most < least):
            self.refuse(f"counts go up, and to {MOST_REPEATS:,} at most")
        self.at = end + 1
        return least, most

    def _escape(self) -> list[Range]:
        letter = self.take()
        if letter.lower() in CLASSES:
            found = CLASSES[letter.lower()]
            return found if letter.islower() else complement(found)
        if letter in "xu":
            size = 2 if letter == "x" else 4
            digits, self.at = self.text[self.at : self.at + size], self.at + size
            try:
                number = int(digits, 16)
            except ValueError:
                number = -1
            if len(digits) < size or number < 0:
                self.refuse(f"expected {size} hexadecimal digits")
            return [(number, number)]
        if letter in CONTROLS:
            letter = CONTROLS[letter]
        elif letter.isalnum():
            of = re.match(r"\{\w{1,30}\}", self.text[self.at :])  # such as \p{L}
            self.refuse(f"\\{letter}{of[0] if of else ''} is not known")
        return [(ord(letter), ord(letter))]

    def _class(self) -> Tree:
        negated = self.peek() == "^"
        self.at += negated
        ranges: list[Range] = []
        while self.peek() != "]" or not ranges:
            low = self._member()
            if len(low) == 1 and low[0][0] == low[0][1] and self.peek() == "-" and self.peek(1) not in ("]", ""):
                self.at += 1
                high = self._member()
                if len(high) != 1 or high[0][1] < low[0][0]:
                    self.refuse("a range goes up")
                low = [(low[0][0], high[0][1])]
            ranges += low
        self.at += 1
        if negated:
            ranges = complement(ranges)
        return Characters(tuple((low, min(high, LAST)) for low, high in ranges))

    def _member(self) -> list[Range]:
        character = self.take()
        return self._escape() if character == "\\" else [(ord(character), ord(character))]
