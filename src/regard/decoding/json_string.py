"""Texts as they stand in JSON: the pattern of a text becomes that of the text between quotes.

In every set of characters a quote, a backslash and what is below a space become their escapes; the others stay.
"""

from __future__ import annotations

from regard.decoding.pattern import ANYTHING, Characters, Either, Repeat, Sequence, Tree, searched
from regard.decoding.utf8_range import Range

ESCAPED: dict[int, str] = {0x22: '"', 0x5C: "\\", 8: "b", 9: "t", 10: "n", 12: "f", 13: "r"}
HEX = "0123456789abcdef"
# A character of a text: as it is, or as an escape. Half a pair of surrogates is none.
UNICODE = r"\\u(?:[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2})"
CHARACTER = rf'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|{UNICODE})'
SHORT = r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])'  # without numbers, where characters are counted one by one
STRING = f'"{CHARACTER}*"'


def string_of(pattern: str) -> str:
    r"""The pattern of the strings of JSON in whose text a pattern is found.

    >>> print(string_of("^[ab]+$"))
    "(?:[ab])+"
    >>> print(string_of(r"^\n$"))
    "\\[n]"
    """
    return f'"{_written(searched(pattern))}"'


def _written(tree: Tree) -> str:
    if tree == ANYTHING:
        return f"{CHARACTER}*"
    if isinstance(tree, Characters):
        return _character(tree)
    if isinstance(tree, Either):
        return f"(?:{'|'.join(map(_written, tree.parts))})"
    if isinstance(tree, Sequence):
        return "".join(map(_written, tree.parts))
    return f"(?:{_written(tree.part)}){_often(tree)}"


def _often(tree: Repeat) -> str:
    if tree.most is None and tree.least < 2:
        return "*+"[tree.least]
    return f"{{{tree.least},{'' if tree.most is None else tree.most}}}"


def _character(tree: Characters) -> str:
    """One character of a set: one that stands as it is, or the escape of one that does not."""
    special = [code for code in (*range(0x20), *b'"\\') if any(low <= code <= high for low, high in tree.ranges)]
    plain = [piece for low, high in tree.ranges for piece in _without_special(low, high)]
    parts = [_class(plain)] if plain or not special else []
    letters = [ESCAPED[code] for code in special if code in ESCAPED]
    if letters:
        parts.append(r"\\" + _class([(ord(letter), ord(letter)) for letter in letters]))
    for row in (0, 1):
        digits = [HEX[code % 16] for code in special if code not in ESCAPED and code // 16 == row]
        if digits:
            parts.append(rf"\\u00{row}[{''.join(digits)}]")
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def _without_special(low: int, high: int) -> list[Range]:
    bounds = ((0x20, 0x21), (0x23, 0x5B), (0x5D, high))
    return [(max(low, first), min(high, last)) for first, last in bounds if max(low, first) <= min(high, last)]


def _class(ranges: list[Range]) -> str:
    """A class of characters; of none it is what no character is."""
    if not ranges:
        return r"[^\x00-" + chr(0x10FFFF) + "]"
    return f"[{''.join(_code(low) if low == high else f'{_code(low)}-{_code(high)}' for low, high in ranges)}]"


def _code(code: int) -> str:
    """A character by its number where it may mean something in a class, or is no character alone."""
    if code > 0xFFFF or (code < 0x80 and chr(code).isalnum()):
        return chr(code)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
