"""What a request wants its texts to look like, as a regular expression."""

from __future__ import annotations

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
    raise Error(400, "response_format: not served yet", param="response_format")
