"""What the server lets in, and what it says to every browser.

The page is for the person at this machine. A site elsewhere that makes its name lead here (DNS rebinding) sends a
foreign Host; one that posts to it sends a foreign Origin; neither is answered.
"""

from __future__ import annotations

import json
import re
from email.message import Message
from typing import Any, BinaryIO

HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?")
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


def check_host(headers: Message) -> None:
    """The name by which the browser knows this server is one of this machine. Any port: one may be forwarded."""
    if HOST.fullmatch(headers.get("Host", "")) is None:
        raise Refused(403, "this server answers to 127.0.0.1 and localhost only")


def check_origin(headers: Message) -> None:
    """A question comes from the page itself, or from no page at all."""
    origin = headers.get("Origin")
    if origin is not None and origin != f"http://{headers.get('Host')}":
        raise Refused(403, "questions of other pages are not answered")
    # A form of another page cannot send this type without asking first, which is refused.
    if headers.get_content_type() != "application/json":
        raise Refused(415, "a question is JSON: Content-Type: application/json")


def read_body(headers: Message, stream: BinaryIO) -> bytes:
    """What was posted. It is read before anything is refused: a browser listens when it has said all it had to say."""
    length = headers.get("Content-Length", "")
    if not length.isdigit():
        raise Refused(411, "a question says how long it is: Content-Length")
    if int(length) > LARGEST:
        stream.read(min(int(length), 2 * LARGEST))
        raise Refused(413, f"a question has at most {LARGEST} bytes")
    return stream.read(int(length))


def question_in(body: bytes) -> dict[str, Any]:
    """The object that was posted."""
    try:
        question = json.loads(body)
    except ValueError as error:
        raise Refused(400, f"the question is no JSON: {error}") from None
    except RecursionError:
        raise Refused(400, "the question is nested too deeply") from None
    if not isinstance(question, dict):
        raise Refused(400, "a question is a JSON object")
    return question
