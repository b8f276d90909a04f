"""Labels on screens and pictures: harmless, with visible blanks, and as wide as they will be drawn.

A model may write anything, so a label may hold escape codes, marks that turn the direction of a line, or letters that
take two columns or none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

SHOWN = ("run", "model", "layer", "head", "side", "position", "word")
JOINERS = "\u200c\u200d"
SELECTORS = "\ufe0e\ufe0f"  # text or emoji style, which terminals take to be of different widths
PLAIN = {
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "×": "x",
    "·": ".",
    "→": "->",
    "←": "<-",
    "≤": "<=",
    "≥": ">=",
    "√": "sqrt ",
    "␣": "_",
    "◌": "",
}


def label(text: str) -> str:
    """A token in one line: blanks at its ends and whatever cannot be printed are made visible.

    >>> label(" a b"), label("a\\n"), label("\\x1b[2J"), label("é")
    ('␣a b', 'a\\\\n', '\\\\x1b[2J', 'é')
    """
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" ")) if inner else len(text)
    safe = _printable(inner)
    if safe and not width(safe[0]):
        safe = "◌" + safe  # or it would land on the letter before it
    return "␣" * before + safe + "␣" * (len(text) - before - len(inner))


def several(count: int, what: str) -> str:
    """A count of something that takes an s.

    >>> several(1, "example"), several(2000, "example")
    ('1 example', '2,000 examples')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def too_few(count: int, what: str) -> str:
    """The same as what is not enough.

    >>> too_few(0, "window"), too_few(1, "window")
    ('0 windows are too few', '1 window is too few')
    """
    return f"{several(count, what)} {'is' if count == 1 else 'are'} too few"


def prose(text: str) -> str:
    """A text of one or more lines without anything that commands a terminal.

    >>> prose("a\\tb\\nc\\x07")
    'a b\\nc\\\\x07'
    """
    return "\n".join(_printable(line.replace("\t", " ").replace("\xa0", " "), JOINERS) for line in text.split("\n"))


def facts(about: dict[str, Any]) -> str:
    """What a view is of, in a line; the rest of what is said of it is for programs.

    >>> facts({"run": "runs/gpt", "layer": 2, "head": None, "perplexity": 3.1})
    'run: runs/gpt; layer: 2'
    """
    return "; ".join(f"{name}: {about[name]}" for name in SHOWN if about.get(name) is not None)


def ascii_only(text: str) -> str:
    """The same in letters that every locale holds.

    >>> ascii_only("α_t ≤ 1…"), ascii_only("naïve")
    ('alpha_t <= 1...', 'na\\\\xefve')
    """
    return "".join(c if c.isascii() else PLAIN[c] if c in PLAIN else _spelled(c) for c in text)


def width(text: str) -> int:
    """Columns that a printable text takes in a terminal.

    >>> width("abc"), width("日本"), width("e\\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(_columns(c) for c in text)


def clusters(text: str) -> list[str]:
    """Letters, each with the marks that stand on it.

    >>> [len(one) for one in clusters("ne\\u0301e")]
    [1, 2, 1]
    """
    parts: list[str] = []
    for c in text:
        if parts and not _columns(c):
            parts[-1] += c
        else:
            parts.append(c)
    return parts


def cut(text: str, most: float, end: str = "…", wide: Callable[[str], float] = width) -> str:
    """At most so many columns; what was cut off leaves `end` behind. wide: another measure than columns.

    >>> cut("abcdef", 4), cut("日本語", 4), cut("ab", 4)
    ('abc…', '日…', 'ab')
    """
    if wide(text) <= most:
        return text
    end = end if wide(end) < most else ""
    kept = ""
    for one in clusters(text):
        if wide(kept + one + end) > most:
            break
        kept += one
    return kept + end


def padded(text: str, columns: int, right: bool = False) -> str:
    """Blanks to a width, before the text where it stands at the right."""
    blanks = " " * (columns - width(text))
    return blanks + text if right else text + blanks


def wrapped(text: str, most: float, wide: Callable[[str], float] = width) -> list[str]:
    """Lines of at most so many columns, broken at blanks, and within words that are longer.

    >>> wrapped("one two three", 7), wrapped("abcdef", 4)
    (['one two', 'three'], ['abcd', 'ef'])
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in (piece for word in paragraph.split(" ") for piece in _pieces(word, most, wide)):
            if line and wide(f"{line} {piece}") > most:
                lines.append(line)
                line = piece
            else:
                line = f"{line} {piece}" if line else piece
        lines.append(line)
    return lines


def _pieces(word: str, most: float, wide: Callable[[str], float]) -> list[str]:
    pieces = [""]
    for one in clusters(word) if wide(word) > most else [word]:
        if pieces[-1] and wide(pieces[-1] + one) > most:
            pieces.append("")
        pieces[-1] += one
    return pieces


def _printable(text: str, kept: str = "") -> str:
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text if c not in SELECTORS)


def _spelled(c: str) -> str:
    """The name of a Greek letter, and of others their number.

    >>> _spelled("Σ"), _spelled("é")
    ('Sigma', '\\\\xe9')
    """
    words = unicodedata.name(c, "").split(" ")
    if words[0] == "GREEK" and words[2:3] == ["LETTER"] and len(words) == 4:
        return words[3].lower() if words[1] == "SMALL" else words[3].capitalize()
    return c.encode("ascii", "backslashreplace").decode()


def _columns(c: str) -> int:
    if unicodedata.category(c) in ("Mn", "Me", "Cf") or "\u1160" <= c <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1
