"""JSON schemas as regular expressions: what they allow, written compactly, properties in the order of the schema.

Known: type, properties, required, additionalProperties, items, minItems, maxItems, enum, const, anyOf, oneOf (read as
anyOf), $ref within the schema, minLength, maxLength, pattern, some formats. Every other word that would narrow a value
is refused, and so are words of which no expression tells both, and a schema that holds itself. Where a schema leaves
more open than can be told, a part of it is written: values of any kind to some depth, no other properties than those
it names, and without a type the kinds that its words speak of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from regard.decoding import json_value
from regard.decoding.json_format import format_of
from regard.decoding.json_string import SHORT, string_of
from regard.decoding.json_value import SIMPLE, any_value, either, list_of, map_of, object_of
from regard.decoding.pattern import LONGEST, MOST_REPEATS
from regard.errors import UsageError

IGNORED = {
    *("title", "description", "default", "examples", "$defs", "definitions", "$schema", "$id", "$comment", "strict"),
    *("deprecated", "readOnly", "writeOnly", "discriminator"),
}
OF_KIND = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern", "format"},
}
VALUES = frozenset({"enum", "const", "type"})
# What says all of a value, and what may stand beside it.
WHOLE = {"$ref": {"$ref"}, "anyOf": {"anyOf"}, "oneOf": {"oneOf"}} | dict.fromkeys(("enum", "const"), VALUES)
KNOWN = {"type", *WHOLE}.union(*OF_KIND.values())
KINDS = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": int,
}
DEEPEST, MOST_OPTIONAL = 16, 12
ALONE, INSIDE = 3, 1  # how deep a value of any kind may go: on its own, and as a part of others


def pattern_of(schema: Any) -> str:
    """
    >>> pattern_of({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]})
    '\\\\{ ?"a": ?(?:true|false) ?\\\\}'
    """
    return _value(schema, schema, 0)


def any_object() -> str:
    """An object of any kind, so deep at most."""
    return json_value.any_object(ALONE)


def _value(schema: Any, root: Any, depth: int) -> str:
    """Refused as soon as a part of it is too long: what holds others many times over grows faster than it is deep."""
    if depth > DEEPEST:
        raise UsageError("the schema goes deeper than can be told, or holds itself")
    found = _told(schema, root, depth)
    if len(found) > LONGEST:
        raise UsageError(f"the schema is too large: as a pattern it has more than {LONGEST:,} characters")
    return found


def _told(schema: Any, root: Any, depth: int) -> str:
    if schema is True:
        return any_value(INSIDE if depth else ALONE)
    if not isinstance(schema, Mapping):
        raise UsageError("a schema is an object")
    unknown = sorted(set(schema) - KNOWN - IGNORED)
    if unknown:
        raise UsageError(f"the schema says {unknown[0]!r}, which is not known here; leave it out")
    for name, beside in WHOLE.items():
        others = sorted(KNOWN & set(schema) - beside) if name in schema else []
        if others:
            raise UsageError(f"the schema says {others[0]!r} beside {name!r}, which is not told here; leave one out")
    if "$ref" in schema:
        return _value(_found(schema["$ref"], root), root, depth + 1)
    if "const" in schema or "enum" in schema:
        return either(json_value.escaped(json.dumps(value, ensure_ascii=False)) for value in _values(schema))
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return either(_value(one, root, depth + 1) for one in _list(schema, name))
    kinds = _kinds(schema)
    if not kinds:
        return any_value(INSIDE if depth else ALONE)
    told = [_typed(kind, schema, root, depth) for kind in kinds]
    return told[0] if len(told) == 1 else either(told)


def _values(schema: Mapping[str, Any]) -> list[Any]:
    """The values that const, enum and type all allow."""
    values = _list(schema, "enum") if "enum" in schema else [schema["const"]]
    if "const" in schema:
        values = [value for value in values if json.dumps(value) == json.dumps(schema["const"])]
    if "type" in schema:
        values = [value for value in values if any(_is_of(kind, value) for kind in _kinds(schema))]
    if not values:
        raise UsageError("the schema allows no value: const, enum and type contradict each other")
    return values


def _is_of(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float):
        return kind == "number" or (kind == "integer" and value.is_integer())
    return isinstance(value, KINDS[kind])


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    """The kinds that a value may have; without a type those that the words of the schema speak of, none for any."""
    if "type" not in schema:
        return [kind for kind, words in OF_KIND.items() if words & set(schema)]
    kinds = _list(schema, "type") if isinstance(schema["type"], list) else [schema["type"]]
    for kind in kinds:
        if not isinstance(kind, str) or kind not in KINDS:
            raise UsageError(f"the schema says type {str(kind)[:40]!r}, which JSON has not")
    if "format" in schema and {"integer", "number"} & set(kinds):
        raise UsageError(f"format: {str(schema['format'])[:40]!r} of a number is not known here; leave it out")
    return kinds


def _typed(kind: str, schema: Mapping[str, Any], root: Any, depth: int) -> str:
    if kind == "object":
        return _object(schema, root, depth)
    if kind == "array":
        item = _value(schema.get("items", True), root, depth + 1)
        return list_of(item, *_counts(schema, "minItems", "maxItems"))
    if kind == "string":
        return _string(schema)
    return SIMPLE[kind]


def _string(schema: Mapping[str, Any]) -> str:
    least, most = _counts(schema, "minLength", "maxLength")
    if "pattern" in schema and "format" in schema:
        raise UsageError("the schema says 'format' beside 'pattern', which is not told here; leave one out")
    if "format" in schema:
        return string_of(format_of(schema["format"]), least, most)
    if "pattern" in schema:
        if not isinstance(schema["pattern"], str):
            raise UsageError("pattern: expected a text")
        return string_of(schema["pattern"], least, most)
    if least or most is not None:
        return f'"{SHORT}{{{least},{"" if most is None else most}}}"'
    return SIMPLE["string"]


def _object(schema: Mapping[str, Any], root: Any, depth: int) -> str:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", "properties" not in schema)
    if not isinstance(properties, Mapping):
        raise UsageError("properties: expected an object")
    if not isinstance(others, bool | Mapping):
        raise UsageError("additionalProperties: expected true, false or a schema")
    required = _list(schema, "required") if schema.get("required", []) != [] else []
    for name in required:
        if not isinstance(name, str) or name not in properties:
            raise UsageError(f"required: {str(name)[:80]!r} is not one of the properties")
    if not properties and others is not False:
        return any_object() if others is True and not depth else map_of(_value(others, root, depth + 1))
    pairs = [
        (json.dumps(name, ensure_ascii=False), _value(one, root, depth + 1), name in required)
        for name, one in properties.items()
    ]
    if sum(not needed for _, _, needed in pairs) > MOST_OPTIONAL:
        raise UsageError(f"an object has at most {MOST_OPTIONAL} properties that are not required")
    return object_of(pairs)


def _counts(schema: Mapping[str, Any], fewest: str, greatest: str) -> tuple[int, int | None]:
    least, most = _count(schema, fewest) or 0, _count(schema, greatest)
    if most is not None and most < least:
        raise UsageError(f"{greatest}: {most} is less than {fewest}, {least}")
    return least, most


def _count(schema: Mapping[str, Any], name: str) -> int | None:
    found = schema.get(name)
    if found is not None and (type(found) is not int or not 0 <= found <= MOST_REPEATS):
        raise UsageError(f"{name}: expected a number from 0 to {MOST_REPEATS:,}, found {str(found)[:40]!r}")
    return found


def _list(schema: Mapping[str, Any], name: str) -> list[Any]:
    found = schema[name]
    if not isinstance(found, list) or not found:
        raise UsageError(f"{name}: expected a list with something in it")
    return found


def _found(reference: Any, root: Any) -> Any:
    at = root
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise UsageError(f"$ref: {str(reference)[:80]!r} lies outside of the schema")
    for name in reference.removeprefix("#").strip("/").split("/"):
        if name and not (isinstance(at, Mapping) and name in at):
            raise UsageError(f"$ref: there is no {reference[:80]!r} in the schema")
        at = at[name] if name else at
    return at
