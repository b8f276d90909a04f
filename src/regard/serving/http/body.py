"""What was posted, as a request: JSON without anything that JSON does not have, of bounded size and depth."""

from __future__ import annotations

import asyncio
import json
import math
import re
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request

from regard.errors import nearest
from regard.serving.guard import LARGEST
from regard.serving.http.errors import Error
from regard.serving.http.schema import REFUSED, Asked

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

DEEPEST = 32
# What stands in the place of an error for one of several kinds.
KIND = re.compile(r"constrained-\w+|(?:list|dict)\[.*\]")
# What holds fields itself, or a list of such.
OF_FIELDS = frozenset(
    {"messages", "content", "stream_options", "metadata", "logit_bias", "response_format", "json_schema", "options"}
)
IN_TIME = 10.0  # seconds within which a body has come

A = TypeVar("A", bound=Asked)


async def asked(request: Request, kind: type[A]) -> A:
    """The request that was posted."""
    found = parsed(await content(request))
    if not isinstance(found, dict):
        raise Error(400, "a request is a JSON object")
    found = _said(found)
    for name in found:
        if name in REFUSED:
            raise Error(400, f"{name}: {REFUSED[name]}", param=name, code="unsupported_parameter")
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        raise _told(error, kind) from None


def _said(found: dict[str, Any]) -> dict[str, Any]:
    """Without fields that are null, in it, its turns and its options: clients send them for what nobody chose, and hand
    an answer back as a turn with all that it did not say. In a schema or in data null is a value like others.

    >>> _said({"n": None, "messages": [{"content": "a", "refusal": None}], "metadata": {"a": None}, "input": [None]})
    {'messages': [{'content': 'a'}], 'metadata': {}, 'input': [None]}
    """
    said = {name: value for name, value in found.items() if value is not None}
    for name in OF_FIELDS & said.keys():
        value = said[name]
        if isinstance(value, dict):
            said[name] = _said(value)
        elif isinstance(value, list):
            said[name] = [_said(one) if isinstance(one, dict) else one for one in value]
    return said


async def content(request: Request) -> bytes:
    """The bytes of a request, which may not be too many nor come too slowly."""
    told = request.headers.get("content-length", "")
    if told.isdigit() and int(told) > LARGEST:
        raise Error(413, f"the request has {int(told):,} bytes, and {LARGEST:,} are the most")
    found = bytearray()
    try:
        async with asyncio.timeout(IN_TIME):
            async for piece in request.stream():
                found += piece
                if len(found) > LARGEST:
                    raise Error(413, f"a request has at most {LARGEST:,} bytes")
    except TimeoutError:
        raise Error(408, f"the request did not come within {IN_TIME:g} seconds") from None
    except ClientDisconnect:
        raise ConnectionAbortedError("the client has left") from None
    return bytes(found)


def parsed(body: bytes) -> Any:
    """
    >>> parsed(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise Error(400, "the request is not UTF-8") from None
    except RecursionError:
        raise Error(400, "the request is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise Error(400, f"the request is not JSON: {error}") from None
    except ValueError:  # of digits, of which Python reads no more
        raise Error(400, "a number has too many digits") from None
    _check(found)
    return found


def _no_constant(name: str) -> NoReturn:
    raise Error(400, f"the request is not JSON: {name} is no number of it")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Error(400, "the request is not JSON: a field is given twice")
    return found


def _check(found: Any) -> None:
    """Refuse what goes deeper than it may, numbers beyond all bounds, and half characters."""
    left = [(found, 1)]
    while left:
        value, depth = left.pop()
        if depth > DEEPEST:
            raise Error(400, f"the request is nested deeper than {DEEPEST}")
        if isinstance(value, float) and not math.isfinite(value):
            raise Error(400, "a number is too large")
        if isinstance(value, str):
            _check_text(value)
        elif isinstance(value, dict):
            for name in value:
                _check_text(name)
            left += [(one, depth + 1) for one in value.values()]
        elif isinstance(value, list):
            left += [(one, depth + 1) for one in value]


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Error(400, "a text holds a lone surrogate, which is no character") from None


def _told(error: ValidationError, kind: type[Asked]) -> Error:
    """The first thing that is wrong, in one line."""
    first = _meant(error.errors(include_url=False, include_input=False, include_context=False))
    name = str(first["loc"][0]) if first["loc"] else None
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        hint = nearest(str(name), kind.model_fields)
        return Error(400, f"unknown field {str(name)[:100]!r}{hint}", param=name, code="unknown_parameter")
    place = ".".join(str(part) for part in _place(first)[:6])
    return Error(400, f"{place[:200]}: {first['msg']}", param=name, code="invalid_value")


def _meant(errors: list[ErrorDetails]) -> ErrorDetails:
    """The first error. Where several kinds of values may stand, every kind has errors of its own: the one that was
    meant is that which was followed furthest, and of equal ones one that is no matter of the kind.
    """
    first = errors[0]
    start = next((at for at, part in enumerate(first["loc"]) if KIND.fullmatch(str(part))), None)
    if start is None:
        return first
    of_kinds: dict[tuple[Any, ...], ErrorDetails] = {}
    for one in errors:
        if one["loc"][:start] == first["loc"][:start]:
            of_kinds.setdefault(tuple(part for part in one["loc"][start:] if KIND.fullmatch(str(part))), one)
    return max(of_kinds.values(), key=_followed)


def _followed(error: ErrorDetails) -> tuple[list[int], int]:
    """How far a value was followed before the error, by numbers in lists; and how near it was to the right kind there:
    of another kind itself, a list whose first item is, or right but for its size and the like.
    """
    place = [part if isinstance(part, int) else 0 for part in _place(error)]
    if not error["type"].endswith("_type"):
        return place, 2
    return (place[:-1], 1) if error["loc"] and _place(error)[-1] == 0 else (place, 0)


def _place(error: ErrorDetails) -> list[int | str]:
    """Where it is in what was posted."""
    return [part for part in error["loc"] if not KIND.fullmatch(str(part))]
