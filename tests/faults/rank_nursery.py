"""A process that imports torch once and then bears, for each request, the processes of one training.

    python rank_nursery.py    reads a JSON object a line: what to train and which rank comes to harm; writes a line each

It does what torchrun does: it holds the store, and when one process fails it ends the others.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch.distributed as dist
import torch.distributed.checkpoint  # what every child of a sharded training needs
import torch.distributed.fsdp
from nursery import Harm
from nursery import Request as One

import tiny_run
from regard.errors import RegardError
from regard.training.display import Lines
from regard.training.interrupt import ended_by_exception
from regard.training.parallel import sharded  # noqa: F401
from regard.training.parallel.group import joined

LONGEST = 60.0


@dataclass
class Request:
    """One training.

    size      how many processes.
    harmed    the rank to which `signals` are sent at the n-th event of a kind, as of `nursery.Request`.
    limit     largest file that one may write, in bytes. limited: which of them.
    differs   settings of the last rank alone.
    bad_at    the step whose loss is not finite on the last rank.
    """

    path: str
    size: int = 2
    name: str = "lstm"
    resume: str = "auto"
    settings: dict[str, Any] = field(default_factory=dict)
    harmed: int = 0
    at: tuple[str, int] | None = None
    signals: tuple[int, ...] = ()
    limit: int | None = None
    limited: int = 0
    differs: dict[str, Any] = field(default_factory=dict)
    bad_at: int | None = None


class Poisoned:
    """A sampler that spoils a weight of the last rank before one step."""

    def __init__(self, sampler: Any, bad_at: int | None, model: torch.nn.Module, is_last: bool) -> None:
        self.sampler, self.bad_at, self.model, self.is_last = sampler, bad_at, model, is_last

    def batch(self, step: int, batch_size: int) -> Any:
        if step == self.bad_at and self.is_last:
            with torch.no_grad():
                weights: Any = next(self.model.parameters())
                getattr(weights, "to_local", lambda: weights)().view(-1)[0] = float("nan")
        return self.sampler.batch(step, batch_size)


def bear(request: Request, rank: int, port: int) -> int:
    """Fork the process of one rank; its id."""
    child = os.fork()
    if child:
        return child
    code, is_last = 1, rank == request.size - 1
    said = {"RANK": rank, "WORLD_SIZE": request.size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": request.size}
    said |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": True}
    os.environ |= {name: str(value) for name, value in said.items()}
    with open(f"{request.path}.{rank}.err", "w", encoding="utf-8") as messages:
        os.dup2(messages.fileno(), 2)
        try:
            with ended_by_exception():
                train(request, rank, is_last, messages)
            code = 0
        except RegardError as error:
            messages.write(f"{type(error).__name__}: {error}\n")
            code = error.exit_code
        except SystemExit as ended:
            code = ended.code
        except BaseException as error:
            messages.write(f"unexpected {type(error).__name__}: {error}\n")
        finally:
            messages.flush()
            os._exit(code)


def train(request: Request, rank: int, is_last: bool, messages: Any) -> None:
    if request.limit is not None and rank == request.limited:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request.limit, request.limit))
    harm = One(request.path, at=request.at if rank == request.harmed else None, signals=request.signals)
    model = tiny_run.model_of(request.name)
    sampler = Poisoned(Harm(harm).watch(), request.bad_at, model, is_last)
    settings = {"on_save_error": "stop", **request.settings, **(request.differs if is_last else {})}
    with joined(torch.device("cpu")) as ranks:
        asked = tiny_run.replace(tiny_run.SETTINGS, **settings)
        ranks = ranks.as_set(asked, 0, 1)
        display = Lines(messages)
        options = {"resume": request.resume, "sampler": sampler, "display": display, "ranks": ranks}
        tiny_run.run(Path(request.path), request.name, model=model, **options, **settings)


def trained(request: Request) -> dict[str, Any]:
    """Exit codes and messages of all ranks, and how long the last lived after the first had failed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    left = {bear(request, rank, port): rank for rank in range(request.size)}
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    codes, begin, failed = dict[int, int](), time.monotonic(), None
    while left:
        found, status = os.waitpid(-1, os.WNOHANG)
        if found:
            codes[left.pop(found)] = code = os.waitstatus_to_exitcode(status)
            if code and failed is None:
                failed = time.monotonic()
                for child in left:
                    os.kill(child, signal.SIGTERM)
        elif time.monotonic() - begin > LONGEST:
            for child in left:
                os.kill(child, signal.SIGKILL)
        else:
            time.sleep(0.01)
    del store
    seconds = 0.0 if failed is None else time.monotonic() - failed
    texts = [Path(f"{request.path}.{rank}.err").read_text(encoding="utf-8") for rank in range(request.size)]
    return {"codes": [codes[rank] for rank in range(request.size)], "texts": texts, "seconds": seconds}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        asked["at"] = tuple(asked["at"]) if asked.get("at") else None
        print(json.dumps(trained(Request(**asked))), flush=True)


def to_line(request: Request) -> str:
    return json.dumps(asdict(request)) + "\n"


if __name__ == "__main__":
    torch.set_num_threads(1)
    tiny_run.model_of("lstm")
    main()
