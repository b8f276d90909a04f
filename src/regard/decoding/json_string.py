"""Texts as they stand in JSON: the pattern of a text becomes that of the text between quotes.

In every set of characters a quote, a backslash and what is below a space become their escapes; the others stay.
"""

from __future__ import annotations

from regard.decoding.pattern import ANYTHING, Characters, Either, Repeat, Sequence, Tree, searched
from regard.decoding.utf8_range import Range
from regard.errors import UsageError

ESCAPED: dict[int, str] = {0x22: '"', 0x5C: "\\", 8: "b", 9: "t", 10: "n", 12: "f", 13: "r"}
HEX = "0123456789abcdef"
# A character of a text: as it is, or as an escape. Half a pair of surrogates is none.
UNICODE = r"\\u(?:[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2})"
CHARACTER = rf'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|{UNICODE})'
SHORT = r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])'  # without numbers, where characters are counted one by one
STRING = f'"{CHARACTER}*"'


def string_of(pattern: str, least: int = 0, most: int | None = None) -> str:
    r"""The pattern of the strings of JSON in whose text a pattern is found. It is refused unless all texts that it
    tells have so many characters.

    >>> print(string_of("^[ab]+$"))
    "(?:[ab])+"
    >>> print(string_of(r"^\n$"))
    "\\[n]"
    """
    tree = searched(pattern)
    shortest, longest = _lengths(tree)
    if shortest < least or (most is not None and (longest is None or longest > most)):
        told = f"{shortest} to {longest}" if longest is not None else f"{shortest} or more"
        raise UsageError(
            f"the schema says a length beside a form of {told} characters: say it in a pattern alone, as ^[a-z]{{1,5}}$"
        )
    return f'"{_written(tree)}"'


def _lengths(tree: Tree) -> tuple[int, int | None]:
    """How many characters a text has at least and at most; None for any number."""
    if isinstance(tree, Characters):
        return 1, 1
    if isinstance(tree, Repeat):
        shortest, longest = _lengths(tree.part)
        many = None if longest is None or tree.most is None else longest * tree.most
        return shortest * tree.least, 0 if longest == 0 else many
    parts = [_lengths(part) for part in tree.parts]
    shortest = [least for least, _ in parts]
    longest = [most for _, most in parts if most is not None]
    bounded = len(longest) == len(parts)
    if isinstance(tree, Sequence):
        return sum(shortest), sum(longest) if bounded else None
    return min(shortest), max(longest) if bounded else None


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
