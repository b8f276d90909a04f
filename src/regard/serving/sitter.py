"""A lecture sat in a process of its own: `python -m regard.serving.sitter`, told by its first message which one.

Cells are code, which may take a minute and all of the memory, and print what they like: the server of the page stays as
it is. When the last cell has run the process stays, and makes the views of the sitting anew with other values of their
controls. It ends when its pipe does.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO

from regard.errors import RegardError
from regard.serving.wire import Message, Outbox, messages

if TYPE_CHECKING:
    from regard.explain.view import View
    from regard.lectures.execution import SatScreen
    from regard.lectures.notebook import Lecture


@dataclass
class Sitter:
    """views: what was shown, by the numbers of screen, cell and output, from 0 on."""

    outbox: Outbox
    views: dict[tuple[int, ...], View] = field(default_factory=dict)

    def sit(self, lecture: Lecture) -> None:
        """Run every cell, tell how far it is, and keep the sitting for the next time."""
        from regard.lectures.execution import screens
        from regard.lectures.sitting import gathered, keep

        def tell(number: int, _shown: dict[str, Any]) -> None:
            self.outbox.send({"screen": number})

        sitting = gathered(lecture, self._seen(screens(lecture)), tell)
        keep(lecture, sitting)
        self.outbox.send({"sitting": sitting})

    def _seen(self, screens: Iterator[SatScreen]) -> Iterator[SatScreen]:
        """The same screens, whose views are remembered."""
        for screen in screens:
            for cell_number, cell in enumerate(screen.cells):
                for number, output in enumerate(cell.outputs):
                    if output.kind == "view":
                        self.views[screen.number - 1, cell_number, number] = output.value
            yield screen

    def answer(self, asked: Message) -> Message:
        """A view of the sitting with other values of its controls."""
        view = self.views.get(tuple(asked["view"]))
        if view is None or view.remake is None:
            return {"id": asked["id"], "failed": "this picture has nothing to choose"}
        try:
            return {"id": asked["id"], "made": view.remake(asked["values"]).to_page()}
        except Exception as error:
            return {"id": asked["id"], "failed": line_of(error)}


def line_of(error: Exception) -> str:
    """What went wrong, in a line."""
    told = str(error) if isinstance(error, RegardError) else f"{type(error).__name__}: {error}"
    return " ".join(told.split())


def main() -> None:
    """Sit one lecture and answer until the pipe ends. What anything prints goes to the log and not into the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who is at the keyboard ends the server, which ends this process
    stream, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    inbox: SimpleQueue[Message] = SimpleQueue()
    Thread(target=_read, args=(stream, inbox), daemon=True).start()
    _serve(Outbox(out), inbox)


def _read(stream: BinaryIO, inbox: SimpleQueue[Message]) -> None:
    for message in messages(stream):
        inbox.put(message)
    os._exit(0)  # the main thread may be inside torch; what a lecture left on disk goes when the next one is sat


def _serve(outbox: Outbox, inbox: SimpleQueue[Message]) -> None:
    from regard.lectures import catalogue

    sitter = Sitter(outbox)
    try:
        sitter.sit(catalogue.lecture(inbox.get()["lecture"]))
    except Exception as error:
        outbox.send({"failed": line_of(error)})
        return
    while True:
        outbox.send(sitter.answer(inbox.get()))


if __name__ == "__main__":
    main()
