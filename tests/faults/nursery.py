"""A process that imports torch once and then bears, for each request, a child that trains and may come to harm.

    python nursery.py    reads a JSON object a line: what to run and what should happen to it; writes a line for each

A fork is only safe before the first backward pass, which is why the tests cannot fork themselves.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tiny_run
from regard.errors import RegardError
from regard.storage import disk
from regard.training.display import Lines
from tiny_run import Steps


@dataclass
class Request:
    """One child.

    at        ("operation" | "batch" | "evaluation", n): at the n-th event of that kind `signals` are sent to the child.
    limit     largest file it may write, in bytes.
    """

    path: str
    name: str = "gpt"
    resume: str = "auto"
    settings: dict[str, Any] = field(default_factory=dict)
    at: tuple[str, int] | None = None
    signals: tuple[int, ...] = ()
    limit: int | None = None


class Harm:
    """Sends the signals of a request when their moment has come."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.seen = dict.fromkeys(("operation", "batch", "evaluation"), 0)

    def tick(self, kind: str) -> None:
        self.seen[kind] += 1
        if self.request.at == (kind, self.seen[kind]):
            for number in self.request.signals:
                os.kill(os.getpid(), number)

    def watch(self) -> Any:
        """Count file operations and held-out batches; return a sampler that counts its batches."""
        for name in disk.OPERATIONS:
            setattr(disk, name, self._counted(getattr(disk, name), "operation"))
        held_out = tiny_run.held_out

        def counted():
            for batch in held_out():
                self.tick("evaluation")
                yield batch

        tiny_run.held_out = counted
        sampler = Steps()
        harm = self

        class Counted:
            def batch(self, step: int, batch_size: int) -> Any:
                harm.tick("batch")
                return sampler.batch(step, batch_size)

        return Counted()

    def _counted(self, operation: Any, kind: str) -> Any:
        def wrapped(*arguments: Any) -> Any:
            self.tick(kind)
            return operation(*arguments)

        return wrapped


def bear(request: Request) -> int:
    """Fork a child for the request; its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with open(f"{request.path}.err", "w", encoding="utf-8") as messages:
            os.dup2(messages.fileno(), 2)
            if request.limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (request.limit, request.limit))
            sampler = Harm(request).watch()
            settings = {"on_save_error": "stop", **request.settings}
            display = Lines(messages)
            try:
                tiny_run.run(
                    Path(request.path),
                    request.name,
                    resume=request.resume,
                    sampler=sampler,
                    display=display,
                    **settings,
                )
                code = 0
            except RegardError as error:
                messages.write(f"{type(error).__name__}: {error}\n")
                code = error.exit_code
            except KeyboardInterrupt:
                code = 130
    finally:
        os._exit(code)


def end_of(child: int) -> int:
    """The exit code of a child, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        asked["at"] = tuple(asked["at"]) if asked.get("at") else None
        code = end_of(bear(Request(**asked)))
        text = Path(f"{asked['path']}.err").read_text(encoding="utf-8")
        print(json.dumps({"code": code, "text": text}), flush=True)


def to_line(request: Request) -> str:
    return json.dumps(asdict(request)) + "\n"


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("gpt", "lstm"):
        tiny_run.model_of(name)
    main()
