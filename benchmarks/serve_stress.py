"""A server under stress: 500 mixed requests each asked again alone, a burst of 10,000, 2,000 malformed ones, and those
who are slow, leave in the middle, or come back after it was killed.

    python benchmarks/serve_stress.py RUN [RUN ...] [--requests 10000] [--mixed 500] [--malformed 2000] [--slots 16]

The runs are served by `regard serve` on 127.0.0.1, all at once. Told are the statuses that came back, how many answers
under load differ from those alone, and the memory of both processes after each part.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from serve_wishes import malformed, request, wish

PATIENCE = 180.0  # seconds after which an answer counts as lost


@dataclass
class Target:
    """The server that is asked. log: of its errors."""

    process: subprocess.Popen[bytes]
    port: int
    runs: list[str]
    log: Path

    def get(self, path: str) -> str:
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        return asyncio.run(exchanged(self.port, head.encode()))[1].decode()

    def counted(self) -> Counter[int]:
        """How many requests for texts have met each status, as the server counts them."""
        found = re.findall(r'requests_total{path="/v1/completions",status="(\d+)"} (\d+)', self.get("/metrics"))
        return Counter({int(status): int(count) for status, count in found})

    def memory(self) -> dict[str, int]:
        """Megabytes of the server and of its engine."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
        return {name: _resident(int(one)) for name, one in zip(("http", "engine"), [pid, *children], strict=False)}

    def is_free(self) -> bool:
        """Whether no slot is taken and nobody waits for one."""
        lines = self.get("/metrics").splitlines()
        states = [line for line in lines if line.startswith(("regard_engine_taken", "regard_engine_waiting"))]
        return sum(float(line.rpartition(" ")[2]) for line in states) == 0


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))


async def exchanged(port: int, content: bytes) -> tuple[int, bytes]:
    """The status and the body that come back for bytes; status 0 where the connection was closed without one."""
    writer = None
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(content)
            found = await reader.read(-1)
    except (OSError, TimeoutError):
        return 0, b""
    finally:
        if writer is not None:
            writer.close()
    head, _, body = found.partition(b"\r\n\r\n")
    if body.count(b"HTTP/1.1 ") or not head.startswith(b"HTTP/"):
        return 0, found  # nothing, or more than one answer
    return int(head.split()[1]), _joined(body) if b"transfer-encoding: chunked" in head.lower() else body


def _joined(body: bytes) -> bytes:
    """A body that came in chunks."""
    found = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        found, body = found + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return found


async def all_of(port: int, contents: list[bytes], connections: int) -> list[tuple[int, bytes]]:
    places = asyncio.Semaphore(connections)

    async def one(content: bytes) -> tuple[int, bytes]:
        async with places:
            return await exchanged(port, content)

    return await asyncio.gather(*(one(content) for content in contents))


def told(status: int, body: bytes) -> Any:
    """What an answer says, whether it came whole or as a stream; without the names and times that differ."""
    if not body.startswith(b"data: "):
        found = json.loads(body)
        return status, found.get("choices"), found.get("usage"), found.get("error")
    chunks = [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: {")]
    assert body.endswith(b"data: [DONE]\n\n"), body[-200:]
    choices: dict[int, dict[str, Any]] = {}
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        whole = choices.setdefault(choice["index"], choice | {"text": "", "logprobs": choice["logprobs"] and {}})
        whole["text"] += choice["text"]
        whole["finish_reason"] = choice["finish_reason"]
        for name, values in (choice["logprobs"] or {}).items():
            whole["logprobs"][name] = whole["logprobs"].get(name, []) + values
    errors = [chunk["error"] for chunk in chunks if "error" in chunk]
    return status, [choices[index] for index in sorted(choices)], chunks[-1].get("usage"), errors[0] if errors else None


def mixed(target: Target, chance: random.Random, count: int) -> None:
    """Many requests at once, each of them again with nobody beside it: what came as a stream whole."""
    models = {one["id"]: one["regard"] for one in json.loads(target.get("/v1/models"))["data"]}
    runs = [(name, models[name]["task"] == "text") for name in target.runs]
    wishes = [wish(chance, number, *runs[number % len(runs)]) for number in range(count)]
    counts = {"include_usage": True}
    asked = [one | ({"stream_options": counts} if one["stream"] else {}) for one in wishes]
    begun = time.monotonic()
    crowded = asyncio.run(
        _patiently(target.port, [request("/v1/completions", json.dumps(one).encode()) for one in asked])
    )
    took, differ = time.monotonic() - begun, Counter[str]()
    for one, found in zip(wishes, crowded, strict=True):
        alone = request("/v1/completions", json.dumps(one | {"stream": False}).encode())
        if (crowd := told(*found)) != (wanted := told(*asyncio.run(exchanged(target.port, alone)))):
            differ[one["model"]] += 1
            print("differs:", json.dumps({"asked": one, "crowded": crowd, "alone": wanted}), file=sys.stderr)
    statuses = dict(Counter(status for status, _ in crowded))
    print(f"mixed: {statuses} in {took:.0f} s, {differ.total()} differ from alone {dict(differ)}", target.memory())


async def _patiently(port: int, contents: list[bytes]) -> list[tuple[int, bytes]]:
    """Answers to all; who is told to come again does."""

    async def one(content: bytes) -> tuple[int, bytes]:
        while (found := await exchanged(port, content))[0] == 503:
            await asyncio.sleep(0.5)
        return found

    return await asyncio.gather(*(one(content) for content in contents))


def burst(target: Target, count: int, connections: int) -> None:
    """More connections than slots and queue together; what was served is asked again, a part of it, alone."""
    one = {"model": target.runs[0], "prompt": "the", "max_tokens": 4}
    asked = [request("/v1/completions", json.dumps(one | {"seed": seed}).encode()) for seed in range(count)]
    before, begun = target.counted(), time.monotonic()
    answers = asyncio.run(all_of(target.port, asked, connections))
    took, statuses = time.monotonic() - begun, Counter(status for status, _ in answers)
    counted = target.counted() - before
    served = [number for number, (status, _) in enumerate(answers) if status == 200]
    names = {json.loads(answers[number][1])["id"] for number in served}
    again = served[:: max(1, len(served) // 200)]
    differ = sum(
        told(*answers[number]) != told(*asyncio.run(exchanged(target.port, asked[number]))) for number in again
    )
    print(f"burst: {dict(statuses)} over {connections} connections in {took:.0f} s; the server counts {dict(counted)};")
    print(
        f"  {len(names)} answers with names of their own, {differ} of {len(again)} differ from alone", target.memory()
    )


def strange(target: Target, chance: random.Random, count: int) -> None:
    """Malformed requests, and whether anything of them came into the log as a failure."""
    bad = [malformed(chance, target.runs) for _ in range(count)]
    answers = asyncio.run(all_of(target.port, bad, 128))
    for number, (status, body) in enumerate(answers):
        if status >= 500:
            print(f"  {status}: {bad[number][:300]!r} -> {body[:200]!r}", file=sys.stderr)
    statuses = dict(sorted(Counter(status for status, _ in answers).items()))
    failures = target.log.read_text(encoding="utf-8", errors="replace").count("Traceback")
    print(f"malformed: {statuses}, {failures} tracebacks", target.memory())


def left(target: Target, count: int) -> None:
    """Streams that are left in the middle, until all slots are free."""
    asked = {"model": target.runs[0], "prompt": "the", "max_tokens": 4000, "n": 2, "stream": True}

    async def begun_and_left(seed: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        writer.write(request("/v1/completions", json.dumps(asked | {"seed": seed}).encode()))
        await reader.read(100)
        writer.transport.abort()

    async def all_leave() -> None:
        await asyncio.gather(*(begun_and_left(seed) for seed in range(count)))

    asyncio.run(all_leave())
    begun = time.monotonic()
    while not target.is_free() and time.monotonic() - begun < PATIENCE:
        time.sleep(0.05)
    print(f"left: all slots free {time.monotonic() - begun:.1f} s after the last of {count}", target.memory())


def slow(target: Target, count: int) -> None:
    """Clients that send a byte a second, half a request, or nothing: after how long the last of them was cut."""
    body = request("/v1/completions", b'{"prompt": "the", "max_tokens": 1}')

    async def one(number: int) -> float:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        begun, end = time.monotonic(), asyncio.ensure_future(reader.read(-1))
        writer.write((b"", body[:40], body[:-5], body[:1])[number % 4])
        at = 1
        while not end.done() and time.monotonic() - begun < PATIENCE:
            await asyncio.wait([end], timeout=1)
            if number % 4 == 3 and not end.done():
                writer.write(body[at : at + 1])
                at += 1
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await end
        return time.monotonic() - begun

    async def every() -> list[float]:
        return await asyncio.gather(*(one(number) for number in range(count)))

    print(f"slow: {count} cut after {max(asyncio.run(every())):.1f} s at most", target.memory())


@contextlib.contextmanager
def served(command: list[str], log: IO[bytes], port: int = 0) -> Iterator[Target]:
    whole = [*command, "--port", str(port)]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=log, env=dict(os.environ)) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            yield Target(process, int(said["url"].rpartition(":")[2].strip("/")), said["models"], Path(log.name))
        finally:
            process.kill()


def restarted(command: list[str], log: IO[bytes], port: int) -> None:
    """Kill a server without a word and start it again at the same port, three times; to its first answer each."""
    took: list[float] = []
    for _ in range(4):
        begun = time.monotonic()
        with served(command, log, port) as target:
            one = json.dumps({"model": target.runs[0], "prompt": "the", "max_tokens": 1}).encode()
            assert asyncio.run(exchanged(port, request("/v1/completions", one)))[0] == 200
            took.append(time.monotonic() - begun)
    print("restarted after kill -9, to the first answer:", ", ".join(f"{one:.1f} s" for one in took[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+")
    counts = {"requests": 10_000, "connections": 900, "mixed": 500, "malformed": 2_000, "slow": 100, "slots": 16}
    for name, count in counts.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    given, chance = parser.parse_args(), random.Random(0)
    command = [sys.executable, "-m", "regard", "serve", *given.runs, "--json", "--slots", str(given.slots)]
    print("load average:", " ".join(f"{one:.1f}" for one in os.getloadavg()))
    with tempfile.NamedTemporaryFile(suffix=".log") as log, served(command, log) as target:
        for run in target.runs:
            one = json.dumps({"model": run, "prompt": "the", "max_tokens": 1}).encode()
            assert asyncio.run(exchanged(target.port, request("/v1/completions", one)))[0] == 200, run
        print("memory, MB:", target.memory())
        mixed(target, chance, given.mixed)
        burst(target, given.requests, given.connections)
        strange(target, chance, given.malformed)
        left(target, 100)
        slow(target, given.slow)
        port = target.port
        target.process.kill()
        target.process.wait()
        restarted(command, log, port)
    print("load average:", " ".join(f"{one:.1f}" for one in os.getloadavg()))


if __name__ == "__main__":
    main()
