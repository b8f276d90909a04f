"""What clients of a server have met: every answer counts, and its tokens as the server counts them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from regard.bench.load import COLUMNS, Answered, Load, put_load, summed

LOAD = Load(requests=3)


def test_tokens_are_those_of_usage_and_answers_without_text_count() -> None:
    several = Answered(200, [0.1, 0.3], 9)  # two events of nine tokens
    ended_at_once = Answered(200, [], 1)
    found = summed("a", LOAD, [several, ended_at_once, Answered(503)], 2.0)
    assert (found.answered, found.refused, found.tokens_per_second, found.counted) == (2, 1, 5.0, "usage")
    assert found.first == (100, 100, 100)
    assert found.between == pytest.approx((200, 200, 200))


def test_where_a_server_does_not_tell_its_tokens_events_are_counted_and_the_table_says_so() -> None:
    found = summed("a", LOAD, [Answered(200, [0.1, 0.3]), Answered(200, [0.1], 7)], 1.0)
    assert (found.tokens_per_second, found.counted) == (3.0, "events")
    assert dict(zip(COLUMNS, found.cells(), strict=True))["counted by"] == "events"


@pytest.fixture
def port() -> Iterator[int]:
    """A server that answers one request with text, one without, and one by an error in the stream."""
    usage = {"choices": [], "usage": {"completion_tokens": 5}}
    answers = [[{"choices": [{"text": "a"}], "usage": None}, {"choices": [{"text": "bc"}]}, usage]]
    answers += [[{"choices": [{"text": ""}]}, usage], [{"error": {"message": "too many", "type": "server_error"}}]]
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def serve() -> None:
            for events in answers:
                line, _ = server.accept()
                with line, line.makefile("rb") as reading:
                    length = 0
                    while (head := reading.readline()) not in (b"\r\n", b""):
                        length = int(head[15:]) if head.lower().startswith(b"content-length:") else length
                    asked = json.loads(reading.read(length))
                    told = events if asked["stream_options"] == {"include_usage": True} else []
                    lines = "".join(f"data: {json.dumps(event)}\n\n" for event in told)
                    line.sendall(f"HTTP/1.1 200 OK\r\n\r\n{lines}data: [DONE]\n\n".encode())

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield server.getsockname()[1]


def test_load_is_counted_as_its_answers_say(port: int) -> None:
    # In a thread of its own: a browser of other tests keeps a loop running in this one.
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(put_load, "a", port, "m", Load(concurrent=1, requests=3)).result()
    assert (found.answered, found.refused, found.counted) == (2, 1, "usage")
    assert found.tokens_per_second * found.seconds == pytest.approx(10)
