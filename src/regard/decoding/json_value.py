"""Values of JSON as regular expressions, written compactly: of any kind to some depth, lists, and objects."""

from __future__ import annotations

import re
from collections.abc import Iterable

from regard.decoding.json_string import STRING

BLANK = " ?"
COMMA = f",{BLANK}"
INTEGER = "-?(?:0|[1-9][0-9]{0,17})"
NUMBER = rf"{INTEGER}(?:\.[0-9]{{1,17}})?(?:[eE][+-]?[0-9]{{1,3}})?"
SIMPLE = {"string": STRING, "integer": INTEGER, "number": NUMBER, "boolean": "(?:true|false)", "null": "null"}
EMPTY = rf"\{{{BLANK}\}}"


def any_value(depth: int) -> str:
    """A value of any kind, in which lists and objects are nested so deep at most."""
    simple = [STRING, NUMBER, "true", "false", "null"]
    return either([*simple, list_of(any_value(depth - 1)), any_object(depth)] if depth else simple)


def any_object(depth: int) -> str:
    return map_of(any_value(depth - 1))


def list_of(item: str, least: int = 0, most: int | None = None) -> str:
    if most == 0:
        return rf"\[{BLANK}\]"
    inside = _separated(item, max(least - 1, 0), None if most is None else most - 1)
    return rf"\[{BLANK}{inside if least else f'(?:{inside})?'}{BLANK}\]"


def map_of(value: str) -> str:
    """An object of any names, whose values are all of one form."""
    return rf"\{{{BLANK}(?:{_separated(f'{STRING}:{BLANK}{value}', 0, None)})?{BLANK}\}}"


def object_of(pairs: list[tuple[str, str, bool]]) -> str:
    """Names, the forms of their values, and whether they have to be there; in this order."""
    told = [(f"{escaped(name)}:{BLANK}{value}", needed) for name, value, needed in pairs]
    if not told:
        return EMPTY
    inside = _first(told) if any(needed for _, needed in told) else f"(?:{_first(told)})?"
    return rf"\{{{BLANK}{inside}{BLANK}\}}"


def _separated(item: str, least: int, most: int | None) -> str:
    """An item, and so many more. The automaton holds both copies of it in one, where any number may follow."""
    often = "*" if (least, most) == (0, None) else f"{{{least},{'' if most is None else most}}}"
    return f"(?:{item})(?:{COMMA}(?:{item})){often}"


def _first(pairs: list[tuple[str, bool]]) -> str:
    """Pairs with commas between those that are there, of which there is one: whichever comes first has none before it.
    By halves, so that n pairs are written n log n times.
    """
    if len(pairs) == 1 or pairs[0][1]:
        return pairs[0][0] + _rest(pairs[1:])
    half = len(pairs) // 2
    left, right = pairs[:half], pairs[half:]
    found = _first(left) + _rest(right)
    return found if any(needed for _, needed in left) else either([found, _first(right)])


def _rest(pairs: list[tuple[str, bool]]) -> str:
    return "".join(f"{COMMA}{text}" if needed else f"(?:{COMMA}{text})?" for text, needed in pairs)


def either(parts: Iterable[str]) -> str:
    return f"(?:{'|'.join(parts)})"


def escaped(text: str) -> str:
    """Text as an expression that matches it alone."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)
