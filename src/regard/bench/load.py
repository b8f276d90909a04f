"""Load on a server of texts: requests that come by chance at a rate, or so many at a time, and how long each waits.

Open loop: arrivals are a Poisson process that does not wait for answers, so that a server that falls behind is seen to.
Closed loop: a number of clients, each of which asks again when it was answered, which finds the most that it can do.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

WORDS = ("the", "of", "and", "to", "in", "is", "that", "it", "was", "for", "on", "are", "as", "with", "his", "they")
LONGEST = 300.0  # seconds of a request


@dataclass(frozen=True)
class Load:
    """rate: requests a second, or 0 for a closed loop of `concurrent` clients. prompt, tokens: words in, tokens out."""

    rate: float = 0.0
    concurrent: int = 16
    requests: int = 64
    prompt: int = 64
    tokens: int = 64
    seed: int = 0

    def body(self, number: int, model: str) -> dict[str, Any]:
        """Request `number`: no two have the same prompt."""
        chance = random.Random(f"{self.seed} {number}")
        prompt = " ".join(chance.choices(WORDS, k=self.prompt))
        counted = {"stream": True, "stream_options": {"include_usage": True}}
        return {"model": model, "prompt": prompt, "max_tokens": self.tokens, "seed": number, **counted}


@dataclass
class Answered:
    """One request: seconds from when it was to be sent to each event with text, and its tokens as the server counts
    them, where it says so.
    """

    status: int = 0
    events: list[float] = field(default_factory=list)
    tokens: int | None = None

    def hear(self, event: dict[str, Any], seconds: float) -> None:
        """Take an event of the stream."""
        if "error" in event:  # of a request that waited for its slot in vain
            self.status = 503
        if any(choice.get("text") for choice in event.get("choices", ())):
            self.events.append(seconds)
        if event.get("usage"):
            self.tokens = event["usage"]["completion_tokens"]


@dataclass(frozen=True)
class Waits:
    """What clients have met. first, between events with text, each in milliseconds at p50, p95 and p99.

    tokens_per_second  of all answers. counted: "usage" where the server told their tokens of each; else "events", of
                       which one may be several tokens, or a token none.
    """

    server: str
    rate: float
    requests: int
    answered: int
    refused: int
    seconds: float
    tokens_per_second: float
    first: tuple[float, float, float]
    between: tuple[float, float, float]
    counted: str = "usage"

    def cells(self) -> tuple[str, ...]:
        load = f"{self.rate:g}/s" if self.rate else "closed"
        numbers = [f"{value:,.1f}" for value in (*self.first, *self.between)]
        speed = f"{self.tokens_per_second:,.0f}"
        return self.server, load, str(self.answered), str(self.refused), speed, self.counted, *numbers


COLUMNS = (
    *("server", "load", "answered#", "refused#", "tokens/s#", "counted by"),
    *(f"{what} {share}#" for what in ("first ms", "between ms") for share in ("p50", "p95", "p99")),
)


def put_load(server: str, port: int, model: str, load: Load) -> Waits:
    """Put load on a server of this machine and tell what clients have met."""
    return asyncio.run(_put(server, port, model, load))


async def _put(server: str, port: int, model: str, load: Load) -> Waits:
    chance, begun = random.Random(load.seed), time.monotonic()
    places = asyncio.Semaphore(load.concurrent if load.rate == 0 else load.requests)

    async def one(number: int) -> Answered:
        async with places:
            return await _ask(port, load.body(number, model), time.monotonic())

    asking = []
    for number in range(load.requests):
        asking.append(asyncio.create_task(one(number)))
        if load.rate:
            await asyncio.sleep(chance.expovariate(load.rate))
    found = await asyncio.gather(*asking)
    return summed(server, load, found, time.monotonic() - begun)


async def _ask(port: int, body: dict[str, Any], begun: float) -> Answered:
    content = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    found = Answered()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    try:
        async with asyncio.timeout(LONGEST):
            writer.write(f"{head}Connection: close\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
            found.status = int((await reader.readline()).split()[1])
            while line := await reader.readline():
                if not line.startswith(b"data: {"):
                    continue
                found.hear(json.loads(line[6:]), time.monotonic() - begun)
    finally:
        writer.close()
    return found


def summed(server: str, load: Load, found: Sequence[Answered], seconds: float) -> Waits:
    """What all answers come to, those without a text among them. Where a server does not tell the tokens of each
    answer, an event with text is counted as one.
    """
    good = [one for one in found if one.status == 200]
    told = [one.tokens for one in good if one.tokens is not None]
    counted = "usage" if len(told) == len(good) else "events"
    gaps = [after - before for one in good for before, after in pairwise(one.events)]
    tokens = sum(told) if counted == "usage" else sum(len(one.events) for one in good)
    firsts = [one.events[0] for one in good if one.events]
    refused = sum(one.status == 503 for one in found)
    return Waits(
        *(server, load.rate, load.requests, len(good), refused, seconds, tokens / seconds),
        *(_percentiles(firsts), _percentiles(gaps), counted),
    )


def _percentiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Milliseconds at p50, p95 and p99, each a value that was measured."""
    if not values:
        return math.nan, math.nan, math.nan
    ordered = sorted(values)
    p50, p95, p99 = (1000 * ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95, 0.99))
    return p50, p95, p99
