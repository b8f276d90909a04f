"""`regard bench serve`: a run behind `regard serve`, and beside it `transformers serve` on the same weights."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.error import URLError

from regard.bench.load import Answered, Load, Waits, put_load, summed
from regard.errors import LONGEST_TOLD, ResourceError
from regard.run.readers import reader_of

if TYPE_CHECKING:
    from regard.core.model import TokenModel
    from regard.decoding.ending import Limits

STARTED_IN = 180.0
WARM = Load(concurrent=4, requests=4, prompt=16, tokens=8, seed=-1)


@dataclass(frozen=True)
class Served:
    """How a run is served; None: as the server chooses."""

    device: str = "cpu"
    threads: int | None = None
    slots: int | None = None
    precision: str | None = None


def measure(run: str, loads: Sequence[Load], served: Served, tell: Callable[[Waits], None]) -> list[Waits]:
    """Every load on every server that can be started, one server at a time; with `slots`, on the engine alone too."""
    found: list[Waits] = []
    name = Path(run).resolve().name
    servers = [("regard", name, lambda: _regard(run, served))]
    if reader_of(Path(run)) is not None and (Path(run) / "config.json").is_file() and shutil.which("transformers"):
        path = str(Path(run).resolve())
        servers.append(("transformers", path, lambda: _transformers(path, served)))
    for load in loads if served.slots else ():
        found.append(engine_alone(run, load, served))
        tell(found[-1])
    for server, model, start in servers:
        with start() as port:
            put_load(server, port, model, WARM)
            for load in loads:
                found.append(put_load(server, port, model, load))
                tell(found[-1])
    return found


def engine_alone(run: str, load: Load, served: Served) -> Waits:
    """The same requests in the engine itself, in this process and without a server; of a rate, one after the other."""
    import torch

    from regard.decoding.completion import TextCompletion
    from regard.decoding.ending import Limits
    from regard.run.run import load as loaded
    from regard.serving.engine.sizing import Sizes

    before = torch.get_num_threads()
    torch.set_num_threads(served.threads or before)
    writing = Sizes(precision=served.precision).in_precision(loaded(run, device=served.device))
    completion = TextCompletion(writing.writer)
    prompts = [completion.opened(load.body(number, "")["prompt"]).tokens for number in range(load.requests)]
    limits = Limits(load.tokens, completion.end_id, slide=False, window=completion.window)
    found = in_engine(completion.model, prompts, limits, load, served.slots or 1)
    torch.set_num_threads(before)
    return found


def in_engine(model: TokenModel, prompts: Sequence[Sequence[int]], limits: Limits, load: Load, slots: int) -> Waits:
    """Prompts through the engine as a server steps it, when it has been at work for a while."""
    from regard.decoding.logits_processing import Sampling
    from regard.serving.engine.sizing import engine_of

    most = load.concurrent if load.rate == 0 else 1
    found = [Answered(200) for _ in prompts]
    sent, waiting = dict[int, tuple[Answered, float]](), deque(enumerate(found))
    with engine_of(model, slots) as engine:
        for prompt in prompts[: 2 * most]:
            engine.submit(prompt, limits, Sampling())
        while engine.busy:
            engine.step()
        first = time.monotonic()
        while waiting or engine.busy:
            while waiting and len(sent) < most:
                number, answer = waiting.popleft()
                sent[engine.submit(prompts[number], limits, Sampling(), seed=number)] = answer, time.monotonic()
            for drawn in engine.step():
                answer, begun = sent[drawn.request]
                answer.events.append(time.monotonic() - begun)
                answer.tokens = len(answer.events)
                if drawn.finish is not None:
                    del sent[drawn.request]
    return summed("engine alone", load, found, time.monotonic() - first)


@contextlib.contextmanager
def _regard(run: str, served: Served) -> Iterator[int]:
    words = [word for name, value in asdict(served).items() if value is not None for word in (f"--{name}", str(value))]
    fixed = ["--port", "0", "--json", "--quiet", "--timeout", "600"]
    command = [sys.executable, "-m", "regard", "serve", run, *fixed, *words]
    with _process(command, subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said:
            raise ResourceError("regard serve did not start; what it said stands above")
        yield int(json.loads(said)["url"].rpartition(":")[2].strip("/"))


@contextlib.contextmanager
def _transformers(path: str, served: Served) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["transformers", "serve", path, "--port", str(port), "--continuous-batching"]
    command += ["--device", served.device, *(["--dtype", served.precision] if served.precision else [])]
    more = {"HF_HUB_OFFLINE": "1"} | ({"OMP_NUM_THREADS": str(served.threads)} if served.threads else {})
    with tempfile.TemporaryFile() as said, _process(command, said, **more) as process:
        end = time.monotonic() + STARTED_IN
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(URLError, OSError):
                urllib.request.urlopen(_question(port, path), timeout=STARTED_IN).close()
                break
            time.sleep(0.5)
        else:
            raise ResourceError(f"transformers serve did not start: {_last_line(said)}")
        yield port


def _last_line(said: IO[bytes]) -> str:
    """What a server said last."""
    said.seek(0)
    return (said.read().decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1][:LONGEST_TOLD]


def _question(port: int, model: str) -> urllib.request.Request:
    """A request that is answered with 200 once the model is there."""
    body = json.dumps({"model": model, "prompt": "the", "max_tokens": 1}).encode()
    return urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", body, {"Content-Type": "application/json"})


@contextlib.contextmanager
def _process(command: list[str], out: int | IO[bytes], **environment: str) -> Iterator[subprocess.Popen[bytes]]:
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
