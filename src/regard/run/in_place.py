"""What is redrawn in place: on a terminal, or in the cell of a notebook."""

from __future__ import annotations

import importlib
import io
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDTH = 104  # columns of a notebook
OFTEN = 0.2  # seconds between two pictures in a notebook, whose page has to lay each of them out
HTML = '<pre style="font-family:Menlo,DejaVu Sans Mono,Consolas,monospace;line-height:1.25">{code}</pre>'


class Redrawn(Protocol):
    """A place where one picture takes that of another."""

    @property
    def is_started(self) -> bool: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def update(self, renderable: RenderableType, *, refresh: bool = False) -> None: ...


Place: TypeAlias = "tuple[Console, Redrawn]"


def redrawn_on(stream: TextIO) -> Place | None:
    """Where lines of a stream go and where its pictures do; None where nothing can be redrawn, as in a pipe."""
    display = _notebook(stream)
    if display is None and (not stream.isatty() or os.environ.get("TERM") == "dumb"):
        return None
    if display is None:
        return on_terminal(stream)
    from rich.console import Console

    return Console(file=stream, highlight=False, width=WIDTH, force_jupyter=False), InNotebook(display)


def on_terminal(stream: TextIO) -> Place:
    """The same of a terminal, from which the last picture is wiped."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream, highlight=False)
    return console, Live(console=console, auto_refresh=False, transient=True)


class InNotebook:
    """The output of a cell. Its last picture stays."""

    def __init__(self, display: Any) -> None:
        self.display = display
        self.handle: Any = None
        self.waiting: RenderableType | None = None
        self.shown = -OFTEN

    @property
    def is_started(self) -> bool:
        return self.handle is not None

    def start(self) -> None:
        if self.handle is None:
            self.handle = self.display.display(self.display.HTML(""), display_id=True)

    def stop(self) -> None:
        if self.waiting is not None:
            self._show(self.waiting)

    def update(self, renderable: RenderableType, *, refresh: bool = False) -> None:
        self.start()
        if time.monotonic() - self.shown >= OFTEN:
            self._show(renderable)
        else:
            self.waiting = renderable

    def _show(self, renderable: RenderableType) -> None:
        self.waiting, self.shown = None, time.monotonic()
        if self.handle is not None:
            self.handle.update(self.display.HTML(as_html(renderable)))


def as_html(renderable: RenderableType) -> str:
    """A picture of rich as HTML, its words escaped."""
    from rich.console import Console

    console = Console(file=io.StringIO(), record=True, width=WIDTH, force_jupyter=False, color_system="truecolor")
    console.print(renderable)
    return console.export_html(inline_styles=True, code_format=HTML)


def _notebook(stream: TextIO) -> Any:
    """What displays in the notebook that a stream belongs to; None of any other stream."""
    if type(stream).__module__.partition(".")[0] != "ipykernel" or "IPython" not in sys.modules:
        return None
    return importlib.import_module("IPython.display")
