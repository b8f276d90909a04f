"""`regard bench serve`: a run behind `regard serve`, and beside it `transformers serve` on the same weights."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.error import URLError

from regard.bench.load import Answered, Load, Waits, put_load, summed
from regard.errors import ResourceError
from regard.run.readers import reader_of

STARTED_IN = 180.0
WARM = Load(concurrent=4, requests=4, prompt=16, tokens=8, seed=-1)


def measure(
    run: str, loads: Sequence[Load], threads: int | None, slots: int | None, tell: Callable[[Waits], None]
) -> list[Waits]:
    """Every load on every server that can be started, one server at a time; with `slots`, on the engine alone too."""
    found: list[Waits] = []
    name = Path(run).resolve().name
    servers = [("regard", name, lambda: _regard(run, threads, slots))]
    if reader_of(Path(run)) is not None and (Path(run) / "config.json").is_file() and shutil.which("transformers"):
        path = str(Path(run).resolve())
        servers.append(("transformers", path, lambda: _transformers(path, threads)))
    for load in loads if slots else ():
        found.append(engine_alone(run, load, threads, slots or 1))
        tell(found[-1])
    for server, model, start in servers:
        with start() as port:
            put_load(server, port, model, WARM)
            for load in loads:
                found.append(put_load(server, port, model, load))
                tell(found[-1])
    return found


def engine_alone(run: str, load: Load, threads: int | None, slots: int) -> Waits:
    """The same requests in the engine itself, in this process and without a server; of a rate, one after the other."""
    import torch

    from regard.decoding.completion import TextCompletion
    from regard.decoding.ending import Limits
    from regard.decoding.engine import Engine
    from regard.decoding.logits_processing import Sampling
    from regard.run.run import load as loaded

    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    completion = TextCompletion(loaded(run).writer)
    limits = Limits(load.tokens, completion.end_id, slide=False, window=completion.window)
    most = load.concurrent if load.rate == 0 else 1
    found = [Answered(200) for _ in range(load.requests)]
    sent, first = dict[int, tuple[Answered, float]](), time.monotonic()
    waiting = list(enumerate(found))
    with Engine(completion.model, slots) as engine:
        while waiting or engine.busy:
            while waiting and sum(len(one.events) < load.tokens for one, _ in sent.values()) < most:
                number, answer = waiting.pop(0)
                prompt = completion.opened(load.body(number, "")["prompt"]).tokens
                sent[engine.submit(prompt, limits, Sampling(), seed=number)] = answer, time.monotonic()
            for drawn in engine.step():
                answer, begun = sent[drawn.request]
                answer.events.append(time.monotonic() - begun)
                if drawn.finish is not None:
                    del sent[drawn.request]
    torch.set_num_threads(before)
    return summed("engine alone", load, found, time.monotonic() - first)


@contextlib.contextmanager
def _regard(run: str, threads: int | None, slots: int | None) -> Iterator[int]:
    words = [*(["--threads", str(threads)] if threads else []), *(["--slots", str(slots)] if slots else [])]
    fixed = ["--port", "0", "--json", "--quiet", "--timeout", "600"]
    command = [sys.executable, "-m", "regard", "serve", run, *fixed, *words]
    with _process(command, subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said:
            raise ResourceError("regard serve did not start; what it said stands above")
        yield int(json.loads(said)["url"].rpartition(":")[2].strip("/"))


@contextlib.contextmanager
def _transformers(path: str, threads: int | None) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["transformers", "serve", path, "--port", str(port), "--device", "cpu", "--continuous-batching"]
    more = {"HF_HUB_OFFLINE": "1"} | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
    with _process(command, subprocess.DEVNULL, **more) as process:
        end = time.monotonic() + STARTED_IN
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(URLError, OSError):
                urllib.request.urlopen(_question(port, path), timeout=STARTED_IN).close()
                break
            time.sleep(0.5)
        else:
            raise ResourceError("transformers serve did not start")
        yield port


def _question(port: int, model: str) -> urllib.request.Request:
    """A request that is answered with 200 once the model is there."""
    body = json.dumps({"model": model, "prompt": "the", "max_tokens": 1}).encode()
    return urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", body, {"Content-Type": "application/json"})


@contextlib.contextmanager
def _process(command: list[str], out: int, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server until the block ends."""
    known = {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ | environment
    process = subprocess.Popen(command, stdout=out, stderr=None if out == subprocess.PIPE else out, env=known)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
