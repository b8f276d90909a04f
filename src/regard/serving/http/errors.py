"""Errors in the form that clients of OpenAI's API know."""

from __future__ import annotations

import json
from typing import Any

from regard.serving.guard import Refused

JSON = "application/json; charset=utf-8"
LONGEST = 1000  # characters of a message


class Error(Refused):
    """A request that is not answered.

    param  the field that is wrong. code: a word for programs. retry: seconds after which to try again.
    """

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None, retry: int | None = None
    ) -> None:
        super().__init__(status, message)
        self.param, self.code, self.retry = param, code, retry

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry is None else {"Retry-After": str(self.retry)}

    def body(self) -> bytes:
        return json.dumps(error_object(self.status, str(self), self.param, self.code)).encode()


def ending() -> Error:
    """What those are told whose requests a server that ends does not take, or hands back."""
    return Error(503, "the server is ending: ask another one, or this one later", retry=10)


def error_object(status: int, message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """
    >>> error_object(404, "no such model", "model")["error"]["type"]
    'not_found_error'
    """
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    told = " ".join(message.split())[:LONGEST]
    return {"error": {"message": told, "type": kind, "param": param, "code": code}}
