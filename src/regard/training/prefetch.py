"""Batches of the coming steps, made and moved to the device while it computes.

What a step reads is a pure function of its number, so that reading ahead changes nothing: a resume, an error or a
signal finds each step with its own batches. An error of a batch is raised when its step comes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.training.problem import Sampler

AHEAD = 2


@dataclass(frozen=True)
class Loaded:
    """The batches of one step on their device, or the rows of them that this process reads.

    tokens   targets that count in all of them, whoever reads them; likewise the others.
    samples  global numbers of their rows.
    places, padding  for tokens in all of them, and how many hold padding.
    ready    on a GPU, when the copies are there.
    """

    batches: list[Batch]
    tokens: int
    samples: list[int]
    places: int
    padding: int
    ready: torch.cuda.Event | None = None

    def wait(self) -> None:
        """Let the device wait for the copies; the host does not."""
        if self.ready is None:
            return
        stream = torch.cuda.current_stream(self.batches[0].tokens.device)
        stream.wait_event(self.ready)
        for batch in self.batches:
            for part in device_parts(batch):
                part.record_stream(stream)


def device_parts(batch: Batch) -> list[Tensor]:
    """The tensors of a batch that lie on the device."""
    return [part for part in (batch.tokens, batch.targets, batch.source) if part is not None]


class Prefetch:
    """The batches of each step: made when asked for on a CPU, whose cores are busy, and ahead of it for a GPU."""

    def __init__(
        self,
        sampler: Sampler,
        batch_size: int,
        accumulate: int,
        device: torch.device,
        part: Callable[[Batch], Batch] = lambda batch: batch,
    ) -> None:
        self.part = part
        self.sampler, self.batch_size, self.accumulate, self.device = sampler, batch_size, accumulate, device
        self.ahead = AHEAD if device.type == "cuda" else 0
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.thread: ThreadPoolExecutor | None = None
        self.coming: dict[int, Future[Loaded]] = {}

    def take(self, step: int) -> Loaded:
        """What step `step` reads."""
        if not self.ahead:
            return self._load(step)
        if self.thread is None:
            self.thread = ThreadPoolExecutor(1, "batches")
        if step not in self.coming:
            self.coming.clear()
        for number in range(step, step + self.ahead + 1):
            if number not in self.coming:
                self.coming[number] = self.thread.submit(self._load, number)
        return self.coming.pop(step).result()

    def rest(self) -> None:
        """Return when the thread does nothing and will not before the next `take`."""
        wait(self.coming.values())

    def close(self) -> None:
        """End the thread; a batch that is being made is waited for, others are not made."""
        if self.thread is not None:
            self.thread.shutdown(wait=True, cancel_futures=True)
        self.thread = None
        self.coming.clear()

    def _load(self, step: int) -> Loaded:
        first = step * self.accumulate
        made = [self.sampler.batch(first + i, self.batch_size) for i in range(self.accumulate)]
        tokens, samples = sum(batch.n_counted for batch in made), [i for batch in made for i in batch.indices]
        counts = tokens, samples, sum(batch.n_places for batch in made), sum(batch.n_padding for batch in made)
        made = [self.part(batch) for batch in made]
        if self.stream is None:
            return Loaded([batch.to(self.device) for batch in made], *counts)
        with torch.cuda.stream(self.stream):
            moved = [replace(batch.to(self.device), indices=[]) for batch in made]
            ready = torch.cuda.Event()
            ready.record(self.stream)
        return Loaded(moved, *counts, ready)
