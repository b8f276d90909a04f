"""A server under stress: a burst of 10,000 requests, 500 mixed ones each asked again alone, 2,000 malformed ones.

    python benchmarks/serve_stress.py RUN [RUN ...] [--requests 10000] [--mixed 500] [--malformed 2000] [--slots 16]

The runs are served by `regard serve` on 127.0.0.1, all at once. Told are the statuses that came back, how many answers
under load differ from those alone, and the memory of both processes before and after each part.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

SOCKETS = 256
WORDS = ("the", "a", "cat", "dog", "went", "to", "old", "house", "and", "sang", "in", "was")


async def asked(port: int, content: bytes, head: str = "") -> tuple[int, bytes]:
    """The status and the body of a request; status 0 where the connection was closed without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        named = head or "Content-Type: application/json\r\n"
        first = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{named}Connection: close\r\n"
        writer.write(f"{first}Content-Length: {len(content)}\r\n\r\n".encode("latin-1") + content)
        async with asyncio.timeout(120):
            found = await reader.read(-1)
    except (OSError, TimeoutError):
        return 0, b""
    finally:
        writer.close()
    line, _, rest = found.partition(b"\r\n")
    return (int(line.split()[1]) if line.startswith(b"HTTP/") else 0), rest.partition(b"\r\n\r\n")[2]


async def all_of(port: int, contents: list[tuple[bytes, str]]) -> list[tuple[int, bytes]]:
    places = asyncio.Semaphore(SOCKETS)

    async def one(content: bytes, head: str) -> tuple[int, bytes]:
        async with places:
            return await asked(port, content, head)

    return await asyncio.gather(*(one(*content) for content in contents))


def wish(chance: random.Random, number: int, runs: list[str]) -> dict[str, Any]:
    return {
        "model": runs[number % len(runs)],
        "prompt": " ".join(chance.choices(WORDS, k=chance.randint(1, 20))),
        "max_tokens": chance.choice([1, 8, 24]),
        "seed": number,
        "n": chance.choice([1, 1, 1, 3]),
        "temperature": chance.choice([0.0, 0.7, 1.0]),
        "top_p": chance.choice([1.0, 0.9]),
    }


def mangled(chance: random.Random) -> tuple[bytes, str]:
    """A request of which bytes are changed, or a value is one that nobody would expect."""
    body: dict[str, Any] = {"prompt": "the cat", "max_tokens": 2, "temperature": 0.5, "stop": ["x"]}
    odd = [None, True, -1, 10**30, 1e300, "", "\u0000", [], [[]], {}, "9" * 500, [1e9], {"a": {"b": []}}, float("inf")]
    for _ in range(chance.randint(1, 3)):
        name = chance.choice([*body, "n", "seed", "logit_bias", "model", "response_format", "top_k", "zzz"])
        body[name] = chance.choice(odd)
    content = bytearray(json.dumps(body).encode())
    for _ in range(chance.choice([0, 0, 1, 4])):
        at = chance.randrange(len(content))
        content[at : at + 1] = chance.randbytes(chance.choice([0, 1, 2]))
    if chance.random() < 0.05:
        content = bytearray(b"[" * chance.randint(1, 5000))
    return bytes(content), chance.choice(
        ["", "", "Content-Type: text/plain\r\n", "Content-Type: application/json\r\nX: \x01\r\n"]
    )


def memory(pid: int) -> dict[str, int]:
    """Megabytes of the server and of its engine."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return {name: _resident(int(one)) for name, one in zip(("http", "engine"), [pid, *children], strict=False)}


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))


def texts(body: bytes) -> list[str]:
    return [choice["text"] for choice in json.loads(body)["choices"]]


def stress(port: int, pid: int, runs: list[str], counts: argparse.Namespace) -> None:
    chance = random.Random(0)
    wishes = [json.dumps(wish(chance, number, runs)).encode() for number in range(counts.mixed)]
    print("memory, MB:", memory(pid))
    begun = time.monotonic()
    crowded = asyncio.run(_patiently(port, wishes))
    alone = [asyncio.run(asked(port, content)) for content in wishes]
    differ = sum(texts(one) != texts(other) for (_, one), (_, other) in zip(crowded, alone, strict=True))
    print(f"mixed: {len(wishes)} requests, {differ} differ from alone; {time.monotonic() - begun:.0f} s", memory(pid))
    one = {"model": runs[0], "prompt": "the", "max_tokens": 4}
    short = [(json.dumps(one | {"seed": number}).encode(), "") for number in range(counts.requests)]
    begun = time.monotonic()
    statuses = Counter(status for status, _ in asyncio.run(all_of(port, short)))
    print(f"burst: {dict(statuses)} in {time.monotonic() - begun:.0f} s", memory(pid))
    bad = [mangled(chance) for _ in range(counts.malformed)]
    statuses = Counter(status for status, _ in asyncio.run(all_of(port, bad)))
    print(f"malformed: {dict(sorted(statuses.items()))}", memory(pid))


async def _patiently(port: int, wishes: list[bytes]) -> list[tuple[int, bytes]]:
    """Answers to all; who is told to come again does."""

    async def one(content: bytes) -> tuple[int, bytes]:
        while (found := await asked(port, content))[0] == 503:
            await asyncio.sleep(0.5)
        return found

    return await asyncio.gather(*(one(content) for content in wishes))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+")
    for name, count in (("requests", 10_000), ("mixed", 500), ("malformed", 2_000), ("slots", 16)):
        parser.add_argument(f"--{name}", type=int, default=count)
    counts = parser.parse_args()
    command = [sys.executable, "-m", "regard", "serve", *counts.runs, "--port", "0", "--json", "--quiet"]
    command += ["--slots", str(counts.slots)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ)) as server:
        try:
            assert server.stdout is not None
            told = json.loads(server.stdout.readline())
            stress(int(told["url"].rpartition(":")[2].strip("/")), server.pid, told["models"], counts)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
