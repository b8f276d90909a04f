"""JSON schemas as regular expressions: what they allow, written compactly, properties in the order of the schema.

Known: type, properties, required, items, minItems, maxItems, enum, const, anyOf, oneOf, $ref within the schema,
minLength, maxLength, pattern. Other words that would narrow a value are refused; a schema that holds itself is too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from regard.decoding.json_string import CHARACTER, STRING, string_of
from regard.decoding.pattern import LONGEST
from regard.errors import UsageError

BLANK = " ?"
INTEGER = "-?(?:0|[1-9][0-9]{0,17})"
NUMBER = rf"{INTEGER}(?:\.[0-9]{{1,17}})?(?:[eE][+-]?[0-9]{{1,3}})?"
SIMPLE = {"string": STRING, "integer": INTEGER, "number": NUMBER, "boolean": "(?:true|false)", "null": "null"}
IGNORED = {"title", "description", "default", "examples", "$defs", "definitions", "$schema", "$id", "format", "strict"}
KNOWN = {
    *("type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "enum", "const"),
    *("anyOf", "oneOf", "$ref", "minLength", "maxLength", "pattern"),
}
DEEPEST, MOST_OPTIONAL = 16, 12
ANY_DEPTH = 3  # how deep a value of any kind may go


def pattern_of(schema: Any) -> str:
    """
    >>> pattern_of({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]})
    '\\\\{ ?(?:"a": ?(?:true|false)) ?\\\\}'
    """
    return _value(schema, schema, 0)


def any_object() -> str:
    """An object of any kind, so deep at most."""
    return _any_object(ANY_DEPTH)


def _value(schema: Any, root: Any, depth: int) -> str:
    """Refused as soon as a part of it is too long: what holds others many times over grows faster than it is deep."""
    if depth > DEEPEST:
        raise UsageError("the schema goes deeper than can be told, or holds itself")
    found = _told(schema, root, depth)
    if len(found) > LONGEST:
        raise UsageError(f"the schema is too large: as a pattern it has more than {LONGEST:,} characters")
    return found


def _told(schema: Any, root: Any, depth: int) -> str:
    if schema is True or schema == {}:
        return _any(ANY_DEPTH)
    if not isinstance(schema, Mapping):
        raise UsageError("a schema is an object")
    unknown = sorted(set(schema) - KNOWN - IGNORED)
    if unknown:
        raise UsageError(f"the schema says {unknown[0]!r}, which is not known here; leave it out")
    if "$ref" in schema:
        return _value(_found(schema["$ref"], root), root, depth + 1)
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else _list(schema, "enum")
        return _either(re_escaped(json.dumps(value, ensure_ascii=False)) for value in values)
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return _either(_value(one, root, depth + 1) for one in _list(schema, name))
    kinds = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kinds, list):
        return _either(_value({**schema, "type": one}, root, depth + 1) for one in _list(schema, "type"))
    return _typed(kinds, schema, root, depth)


def _typed(kind: Any, schema: Mapping[str, Any], root: Any, depth: int) -> str:
    if kind is None:
        return _any(ANY_DEPTH)
    if kind == "object":
        return _object(schema, root, depth)
    if kind == "array":
        return _array(schema, root, depth)
    if kind == "string" and "pattern" in schema:
        if not isinstance(schema["pattern"], str):
            raise UsageError("pattern: expected a text")
        return string_of(schema["pattern"])
    if kind == "string" and ("minLength" in schema or "maxLength" in schema):
        least, most = _count(schema, "minLength") or 0, _count(schema, "maxLength")
        return f'"{CHARACTER}{{{least},{"" if most is None else most}}}"'
    if not isinstance(kind, str) or kind not in SIMPLE:
        raise UsageError(f"the schema says type {str(kind)[:40]!r}, which JSON has not")
    return SIMPLE[kind]


def _object(schema: Mapping[str, Any], root: Any, depth: int) -> str:
    properties = schema.get("properties")
    if properties is None:
        return _any_object(ANY_DEPTH)
    if not isinstance(properties, Mapping):
        raise UsageError("properties: expected an object")
    required = _list(schema, "required") if schema.get("required") else []
    pairs = [
        (f"{re_escaped(json.dumps(name, ensure_ascii=False))}:{BLANK}{_value(one, root, depth + 1)}", name in required)
        for name, one in properties.items()
    ]
    if sum(not needed for _, needed in pairs) > MOST_OPTIONAL:
        raise UsageError(f"an object has at most {MOST_OPTIONAL} properties that are not required")
    return rf"\{{{BLANK}{_in_order(pairs)}{BLANK}\}}" if pairs else rf"\{{{BLANK}\}}"


def _in_order(pairs: list[tuple[str, bool]]) -> str:
    """Pairs with commas between those that are there: whichever comes first has none before it."""
    comma = f",{BLANK}"
    needed = next((place for place, (_, own) in enumerate(pairs) if own), None)

    def rest(after: int) -> str:
        return "".join(f"{comma}{text}" if own else f"(?:{comma}{text})?" for text, own in pairs[after:])

    last = len(pairs) if needed is None else needed + 1
    firsts = [f"{pairs[place][0]}{rest(place + 1)}" for place in range(last)]
    found = _either(firsts)
    return f"(?:{found})?" if needed is None else found


def _array(schema: Mapping[str, Any], root: Any, depth: int) -> str:
    item = _value(schema.get("items", True), root, depth + 1)
    least, most = _count(schema, "minItems") or 0, _count(schema, "maxItems")
    if most == 0:
        return rf"\[{BLANK}\]"
    more = f"{{{max(least - 1, 0)},{'' if most is None else most - 1}}}"
    inside = f"{item}(?:,{BLANK}{item}){more}"
    return rf"\[{BLANK}{inside if least else f'(?:{inside})?'}{BLANK}\]"


def _count(schema: Mapping[str, Any], name: str) -> int | None:
    found = schema.get(name)
    if found is not None and (type(found) is not int or found < 0):
        raise UsageError(f"{name}: expected a number from 0 on, found {str(found)[:40]!r}")
    return found


def _list(schema: Mapping[str, Any], name: str) -> list[Any]:
    found = schema[name]
    if not isinstance(found, list) or not found:
        raise UsageError(f"{name}: expected a list with something in it")
    return found


def _any(depth: int) -> str:
    simple = [STRING, NUMBER, "true", "false", "null"]
    if depth == 0:
        return _either(simple)
    item = _any(depth - 1)
    array = rf"\[{BLANK}(?:{item}(?:,{BLANK}{item})*)?{BLANK}\]"
    return _either([*simple, array, _any_object(depth)])


def _any_object(depth: int) -> str:
    pair = f"{STRING}:{BLANK}{_any(depth - 1)}"
    return rf"\{{{BLANK}(?:{pair}(?:,{BLANK}{pair})*)?{BLANK}\}}"


def _either(parts: Any) -> str:
    return f"(?:{'|'.join(parts)})"


def re_escaped(text: str) -> str:
    """Text as an expression that matches it alone."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


def _found(reference: Any, root: Any) -> Any:
    at = root
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise UsageError(f"$ref: {str(reference)[:80]!r} lies outside of the schema")
    for name in reference.removeprefix("#").strip("/").split("/"):
        if name and not (isinstance(at, Mapping) and name in at):
            raise UsageError(f"$ref: there is no {reference[:80]!r} in the schema")
        at = at[name] if name else at
    return at
