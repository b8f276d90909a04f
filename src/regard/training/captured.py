"""A step captured as one CUDA graph: hundreds of small kernels started by one call.

A model of a few million parameters leaves a GPU waiting for the host, which starts kernels one by one. Captured once,
they are replayed on the same memory: the batch is copied to where the graph reads it, and the count of targets, the
learning rate, the random seed and the carried state are read from the device. The numbers are those of the same kernels
started one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.core.state import State
from regard.data.batch import Batch
from regard.layers.position import kept_turns
from regard.training.prefetch import Loaded, device_parts

if TYPE_CHECKING:
    from regard.training.session import Session


class CapturedStep:
    """The graph of `update`, and the memory that it reads and writes."""

    def __init__(
        self, session: Session, loaded: Loaded, update: Callable[[Sequence[Batch]], tuple[Tensor, Tensor]]
    ) -> None:
        self.batches = [_copied(batch) for batch in loaded.batches]
        before = session.carried
        self.state = self._first_state(session)
        self.graph = torch.cuda.CUDAGraph()
        session.carried = self.state
        session.optimiser.clear()
        stream, pool = torch.cuda.current_stream(session.device), torch.cuda.graph_pool_handle()
        try:
            # Other threads may go on using the device meanwhile.
            with torch.cuda.graph(self.graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                self.loss, self.norm = update(self.batches)
                if self.state is not None and session.carried is not None:
                    _copy_state(self.state, session.carried)
        except Exception:
            _end_capture(session.device, pool)
            raise
        finally:
            session.carried = before
        self.turns = kept_turns(session.device)  # which the graph reads where they lie

    def takes(self, loaded: Loaded) -> bool:
        """Whether the graph was captured for batches of this shape."""
        pairs = zip(self.batches, loaded.batches, strict=True)
        return all(_shapes(mine) == _shapes(theirs) and not theirs.ragged for mine, theirs in pairs)

    def __call__(self, session: Session, loaded: Loaded) -> tuple[Tensor, Tensor]:
        """Replay the step for other batches; copies of its loss and norm come back."""
        for mine, theirs in zip(self.batches, loaded.batches, strict=True):
            for to, part in zip(device_parts(mine), device_parts(theirs), strict=True):
                to.copy_(part)
        if self.state is not None:
            batch = loaded.batches[0]
            if batch.fresh or session.carried is None:
                _copy_state(self.state, session.fresh_state(batch.tokens.shape[0]))
            elif session.carried is not self.state:
                _copy_state(self.state, session.carried)
            session.carried = self.state
        self.graph.replay()
        return self.loss.clone(), self.norm.clone()

    def _first_state(self, session: Session) -> State | None:
        """Memory for the carried state, of the form that it has after a step."""
        if not session.task.carries:
            return None
        known = session.carried or session.fresh_state(self.batches[0].tokens.shape[0])
        return known.map(lambda part: part.clone())


def _end_capture(device: torch.device, pool: tuple[int, int]) -> None:
    """Close what torch leaves open when a capture fails: its generator refuses to draw, its allocator to free."""
    index = torch.cuda.current_device() if device.index is None else device.index
    fresh = torch.Generator(device=device).graphsafe_get_state()
    torch.cuda.default_generators[index].graphsafe_set_state(fresh)
    with suppress(RuntimeError):  # it was closed
        torch._C._cuda_endAllocateToPool(index, pool)


def _copied(batch: Batch) -> Batch:
    source = None if batch.source is None else batch.source.clone()
    return replace(batch, tokens=batch.tokens.clone(), targets=batch.targets.clone(), source=source, fresh=False)


def _shapes(batch: Batch) -> list[torch.Size]:
    return [part.shape for part in device_parts(batch)]


def _copy_state(to: State, state: State) -> None:
    for mine, theirs in zip(to.tensors(), state.tensors(), strict=True):
        mine.copy_(theirs)
