"""What the server lets in, and what it says to every browser.

The page is for the person at this machine. A site elsewhere that makes its name lead here (DNS rebinding) sends a
foreign Host; one that posts to it sends a foreign Origin; neither is answered.
"""

from __future__ import annotations

import json
import re
from email.message import Message
from typing import Any, BinaryIO
from urllib.parse import urlsplit

HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
SCHEMES = ("http", "https")  # the second where a proxy stands before it
ELSEWHERE = "this server answers to 127.0.0.1, localhost and [::1] only"
LENGTH = re.compile(r"[0-9]{1,9}")
LARGEST = 1 << 20  # bytes of a question
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refused(Exception):
    """A request that is not answered, with the status that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def path_of(target: str) -> str:
    """The path of what is asked for."""
    try:
        return urlsplit(target).path
    except ValueError:  # http://[::1
        raise Refused(400, "the address cannot be read") from None


def check_host(headers: Message) -> None:
    """The name by which the browser knows this server is one of this machine. Any port: one may be forwarded."""
    named = headers.get_all("Host", [])
    if len(named) != 1:
        raise Refused(403, ELSEWHERE)
    check_name(named[0])


def check_name(host: str) -> None:
    """The name of this machine, in letters of either case, and a port."""
    if HOST.fullmatch(host) is None:
        raise Refused(403, ELSEWHERE)


def check_origin(headers: Message) -> None:
    """A question comes from the page itself, or from no page at all."""
    origin, host = headers.get("Origin"), str(headers.get("Host")).lower()
    if origin is not None and origin.lower() not in (f"{scheme}://{host}" for scheme in SCHEMES):
        raise Refused(403, "questions of other pages are not answered")
    # A form of another page cannot send this type without asking first, which is refused.
    if headers.get_content_type() != "application/json":
        raise Refused(415, "a question is JSON: Content-Type: application/json")


def read_body(headers: Message, stream: BinaryIO) -> bytes:
    """What was posted. It is read before anything is refused: a browser listens when it has said all it had to say."""
    if "Transfer-Encoding" in headers:
        raise Refused(501, "a question comes in one piece: Content-Length, and no Transfer-Encoding")
    told = headers.get_all("Content-Length", [])
    if not told:
        raise Refused(411, "a question says how long it is: Content-Length")
    if len(told) > 1 or LENGTH.fullmatch(told[0].strip(" \t")) is None:
        raise Refused(400, "Content-Length: expected one number of bytes")
    length = int(told[0])
    if length > LARGEST:
        stream.read(min(length, 2 * LARGEST))
        raise Refused(413, f"the question has {length:,} bytes, and {LARGEST:,} are the most: give a shorter text")
    body = stream.read(length)
    if len(body) < length:
        raise Refused(400, f"the question ended after {len(body)} of {length} bytes")
    return body


def question_in(body: bytes) -> dict[str, Any]:
    """The object that was posted."""
    try:
        question = json.loads(body)
    except json.JSONDecodeError as error:
        raise Refused(400, f"the question is no JSON: {error}") from None
    except ValueError as error:
        told = "is no JSON: it is not UTF-8" if isinstance(error, UnicodeDecodeError) else "has too long a number"
        raise Refused(400, f"the question {told}") from None
    except RecursionError:
        raise Refused(400, "the question is nested too deeply") from None
    if not isinstance(question, dict):
        raise Refused(400, "a question is a JSON object")
    return question
