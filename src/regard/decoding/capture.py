"""Captured: a step of decoding as a CUDA graph, recorded once and replayed.

A small model's step is hundreds of kernels of a few microseconds each, and a host needs longer to launch one than a GPU
to run it. A graph launches all of them at once. What it holds are addresses: it is good for as long as every tensor
that the step reads or writes stays where it is.

A step that asks the device for a number cannot be recorded. It is found out in a trial run; then the same step is run
as it is, which gives the same numbers, and a warning says so once.

One step is recorded at a time, whichever engine it is of: all are tried and recorded on one stream. Two switches of a
trial are those of the whole process, for as long as one step takes: whoever waits for a CUDA device gets an error, in
whichever thread, and warnings are not shown. A thread beside an engine that reads numbers off a device (`item`,
`tolist`) must be ready for that when a step is met for the first time, or the engine be given `graphs=False`.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from regard.kernels.operators import count_fallback

_RECORDING = threading.Lock()


def is_recording() -> bool:
    """Whether a step is being tried or recorded in some thread, for which others wait."""
    return _RECORDING.locked()


@functools.cache
def _stream_of(device: torch.device) -> torch.cuda.Stream:
    """The one stream on which steps are tried and recorded: libraries keep memory for every stream that they meet."""
    return torch.cuda.Stream(device)


class Captured:
    """Graphs of one step by the kind of its drawing, in one pool of memory.

    told  what is done, for people: "graphs", or why not.
    """

    def __init__(self, device: torch.device, wanted: bool) -> None:
        self.device = device
        self.told = "graphs"
        if not wanted:
            self.told = "no graphs: not asked for"
        elif device.type != "cuda":
            self.told = f"no graphs: the device is {device.type}"
        elif torch.is_autocast_enabled("cuda"):
            self.told = "no graphs: autocast makes weights that a graph would outlive"
        self.graphs: dict[str, Any] = {}
        self.pool: Any = None

    @property
    def records(self) -> bool:
        return self.told == "graphs"

    def run(self, kind: str, step: Callable[[], None], books: Sequence[Tensor], alive: Tensor) -> None:
        """One step, replayed where it can be.

        books  small tensors that a step changes: put back after trial runs.
        alive  that of them by which rows are frozen: in trial runs all are, so that no state changes.
        """
        if self.records and kind not in self.graphs:
            with _RECORDING:
                self._record(kind, step, books, alive)
        if self.records:
            self.graphs[kind].replay()
        else:
            step()

    def forget(self) -> None:
        """Drop all graphs and their memory."""
        self.graphs.clear()
        self.pool = None

    def _record(self, kind: str, step: Callable[[], None], books: Sequence[Tensor], alive: Tensor) -> None:
        try:
            self.graphs[kind] = self._recorded(step, books, alive)
        except Exception as error:
            # Whatever a model does in its step, it can be run as it is; what is wrong with it is told there.
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self.told = f"no graphs: {reason}"
            self.forget()
            count_fallback("graphs")
            warnings.warn(f"a step of this model is run without CUDA graphs, slower: {reason}", stacklevel=2)

    def _recorded(self, step: Callable[[], None], books: Sequence[Tensor], alive: Tensor) -> Any:
        with torch.cuda.device(self.device):
            # A recording needs a stream of its own, and the trial runs must be on the same one.
            side = _stream_of(self.device)
            side.wait_stream(torch.cuda.current_stream())
            try:
                with torch.cuda.stream(side):
                    tried(step, books, alive)
                    with _no_waiting():
                        tried(step, books, alive)
            finally:
                # Also where a trial ends in an error: the step that is run instead reads the books that were put back.
                torch.cuda.current_stream().wait_stream(side)
            self.pool = self.pool or torch.cuda.graph_pool_handle()
            graph = torch.cuda.CUDAGraph()
            # What other threads do with the device meanwhile is theirs.
            with torch.cuda.graph(graph, pool=self.pool, stream=side, capture_error_mode="thread_local"):
                step()
        return graph


def tried(step: Callable[[], None], books: Sequence[Tensor], alive: Tensor) -> None:
    """A run that leaves no trace: no row goes on, and the books are put back. Kernels are compiled in it."""
    with _untouched(books):
        alive.zero_()
        step()


@contextmanager
def _untouched(books: Sequence[Tensor]) -> Iterator[None]:
    """Tensors as they were, afterwards."""
    before = [tensor.clone() for tensor in books]
    try:
        yield
    finally:
        for tensor, kept in zip(books, before, strict=True):
            tensor.copy_(kept)


@contextmanager
def _no_waiting() -> Iterator[None]:
    """Whoever waits for a device gets an error, in any thread: better now than in a recording, which it would spoil."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(action="ignore"):  # torch says that not all waiting is found
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)
