"""What a request wants its texts to look like, as a regular expression."""

from __future__ import annotations

from regard.decoding.json_schema import any_object
from regard.decoding.json_schema import pattern_of as of_schema
from regard.errors import UsageError
from regard.serving.http.errors import Error
from regard.serving.http.schema import ResponseFormat


def pattern_of(wanted: ResponseFormat | None) -> str | None:
    """The expression that every text has to match; None for any text."""
    if wanted is None or wanted.type == "text":
        return None
    if wanted.type == "regex":
        if not wanted.pattern:
            raise Error(400, "response_format: a regex needs a pattern", param="response_format")
        return wanted.pattern
    try:
        if wanted.type == "json_object":
            return any_object()
        if wanted.json_schema is None:
            raise UsageError("json_schema is missing")
        return of_schema(wanted.json_schema.schema_)
    except UsageError as error:
        raise Error(400, f"response_format: {error}", param="response_format") from None
