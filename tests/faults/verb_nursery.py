"""A process that imports torch and regard once and then bears, for each request, a child that runs one command.

    python verb_nursery.py    reads a JSON object a line, a command and when it is sent a signal; writes one for each

The moment is counted, not timed: the n-th time that something happens. A fork is only safe before the first backward
pass, which is why the tests cannot fork themselves.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from regard.__main__ import main
from regard.storage import disk

# What is counted, by where it is called from; "module" is any call of any module, "operation" any change of the disk.
MOMENTS = {
    "start": "regard.cli.main:written_out",
    "prepare": "regard.run.train:load_dataset",
    "tokenizer": "regard.data.tokenizer.subword:_checked",
    "step": "regard.training.loop:_step",
    "evaluation": "regard.training.held_out:held_out_loss",
    "counting": "regard.ngram.counts:counted_rows",
    "reading": "regard.tasks.text:evaluate",
    "serving": "regard.serving.lab:Lab.serve_forever",
}


@dataclass
class Request:
    """One child: its words, the folder in which it is called, and the n-th moment at which it sends itself a signal."""

    words: tuple[str, ...]
    folder: str
    moment: str = ""
    n: int = 1
    number: int = 0


@dataclass
class Ended:
    """How it ended, and the processor's seconds that it took after the signal; None: the moment never came."""

    code: int
    out: str
    err: str
    seconds: float | None


class Sender:
    """Counts, and sends the signal when its moment has come."""

    def __init__(self, request: Request, note: Path) -> None:
        self.request, self.note = request, note
        self.seen = 0

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            self.seen += 1
            if self.seen == self.request.n:
                self.note.write_text(str(time.process_time()))
                os.kill(os.getpid(), self.request.number)
            return function(*arguments, **named)

        return wrapped

    def watch(self) -> None:
        moment = self.request.moment
        if moment == "module":
            nn.Module.__call__ = self.counted(nn.Module.__call__)
        elif moment == "operation":
            for name in disk.OPERATIONS:
                setattr(disk, name, self.counted(getattr(disk, name)))
        elif moment:
            module, _, path = MOMENTS[moment].partition(":")
            *owners, name = path.split(".")
            owner: Any = importlib.import_module(module)
            for part in owners:
                owner = getattr(owner, part)
            setattr(owner, name, self.counted(getattr(owner, name)))


def bear(request: Request) -> Ended:
    """Fork a child for the request and wait for its end."""
    place = Path(request.folder)
    note, out, err = (place / f".{name}" for name in ("note", "out", "err"))
    note.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        code = 1
        try:
            os.chdir(place)
            for path, descriptor in ((out, 1), (err, 2)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
            Sender(request, note).watch()
            sys.argv = ["regard", *request.words]
            code = main()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    spent = usage.ru_utime + usage.ru_stime
    seconds = spent - float(note.read_text()) if note.exists() else None
    return Ended(os.waitstatus_to_exitcode(status), out.read_text(), err.read_text(), seconds)


def to_line(request: Request) -> str:
    return json.dumps(asdict(request)) + "\n"


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for module in ("run.train", "run.run", "training.fitted_run", "studies.compare", "explain.registry", "serving.lab"):
        importlib.import_module(f"regard.{module}")
    for line in sys.stdin:
        print(json.dumps(asdict(bear(Request(**json.loads(line))))), flush=True)
