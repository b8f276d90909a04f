"""Ranks: the processes that train one model together, as one of them sees it.

    loss = sum_r loss_r,  gradient = sum_r gradient_r      over the processes, each of its rows of the batch

A step divides by the targets of the whole batch, which every process knows; so what is added up is the loss and the
gradient of one process with all rows, whatever the lengths and the counts of each part.

This class is what a training without others has: every method gives back what it was given. `JoinedRanks`
(training/parallel/joined.py) is the form of many processes; the loop asks and does not know which it has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from regard.data.batch import Batch
from regard.storage import tensors
from regard.training import checkpoint
from regard.training.checkpoint import Contents
from regard.training.interrupt import Interrupt
from regard.training.run_folder import WEIGHTS, RunFolder, claim

if TYPE_CHECKING:
    from regard.training.display import Display
    from regard.training.settings import TrainSettings

T = TypeVar("T")


class Ranks:
    """One process that trains alone.

    rank, size  its number among all of them, from 0 on, and how many there are.
    way         how they train together, for people.
    """

    rank = 0
    size = 1
    way = ""

    @property
    def holders(self) -> int:
        """How many processes share the parameters out among them."""
        return 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and tells people."""
        return self.rank == 0

    def release(self) -> None:
        """Let go of what would hold on to the other processes after the end."""

    # Beginning.

    def as_set(self, settings: TrainSettings, needs: int, limit: int) -> Ranks:
        """The same in the way that `train.parallel` says. needs, limit: bytes of a training and of this device."""
        del settings, needs, limit
        return self

    def device(self, device: torch.device) -> torch.device:
        """The device of this process, where `device` is what the settings say."""
        return device

    def memory(self, limit: int, device: torch.device) -> int:
        """The share of this process in the bytes of a device."""
        del device
        return limit

    def require_rows(self, batch_size: int) -> None:
        """Refuse batches that have no row for some process."""
        del batch_size

    def display(self, display: Display) -> Display:
        """Who is told."""
        return display

    @contextmanager
    def claim(self, path: Path) -> Iterator[RunFolder]:
        """The run folder, for one writer."""
        with claim(path) as run:
            yield run

    def require_same(self, description: Mapping[str, Any]) -> None:
        """Refuse processes that were started for another training than this one."""
        del description

    # Decisions, which are the same everywhere.

    def now(self) -> float:
        """Seconds of a clock that all processes share, as of the last thing they agreed on."""
        return time.monotonic()

    @property
    def beside(self) -> Ranks:
        """The same processes, for a thread in each of them whose exchange is not to meet that of the steps."""
        return self

    def meet(self, interrupt: Interrupt, is_busy: bool = False) -> bool:
        """Agree on the time and on whether a signal has come, at the beginning of a step; whether somebody is busy."""
        del interrupt
        return is_busy

    def heard(self, interrupt: Interrupt) -> str | None:
        """The signal that one of the processes has got."""
        return interrupt.received

    def leave_if_heard(self) -> None:
        """Between two parts of work that may be dropped: raise `Interrupted` everywhere if a signal has come."""

    def at_once(self, interrupt: Interrupt, work: Callable[[], T]) -> T | None:
        """What `work` gives; None where a signal comes meanwhile."""
        return interrupt.at_once(work)

    def whole_model(self) -> AbstractContextManager[object]:
        """Within it every process has the whole model, and may call any part of it in any way."""
        return nullcontext()

    def first(self, work: Callable[[], T]) -> T:
        """What `work` gives, or fails with, on the first process, which alone does it; known to all."""
        return work()

    def shared(self, value: T) -> T:
        """The value that the first process has."""
        return value

    # Batches and states.

    def part(self, batch: Batch) -> Batch:
        """The rows of a batch that this process reads."""
        return batch

    def counts(self, batch: Batch) -> bool:
        """Whether there are rows for this process in a batch; without any it reads one for company."""
        del batch
        return True

    def own_rows(self, whole: Tensor) -> Tensor:
        """The rows of this process of a state that was carried by one."""
        return whole

    def all_rows(self, own: Tensor) -> Tensor:
        """The same of all processes, in the order of the batch."""
        return own

    def stream(self, purpose: str) -> str:
        """What chance is drawn for: each process draws its own."""
        return purpose

    # A step.

    def shard(self, step: nn.Module, products: torch.dtype) -> None:
        """Leave to each process its part of every parameter of a training step, where they are shared out.

        products  the numbers in which the large products are computed.
        """
        del step, products

    def wrapped(self, step: nn.Module) -> nn.Module:
        """A training step whose gradients are those of all processes."""
        return step

    def adding(self, step: object, *, last: bool) -> AbstractContextManager[object]:
        """Around one of the batches of a step: after the last of them gradients are added up."""
        del step, last
        return nullcontext()

    def scaled(self, loss: Tensor) -> Tensor:
        """What to take the gradient of, so that those of all processes add up to that of their sum."""
        return loss

    def summed(self, loss: Tensor) -> Tensor:
        """The sum over all processes."""
        return loss

    def norm(self, gradients: Iterable[Tensor]) -> Tensor:
        """The norm of the whole gradient."""
        return get_total_norm(gradients)

    def clip(self, parameters: Iterable[Tensor], most: float, norm: Tensor) -> None:
        """Shorten the whole gradient, which has that norm, to `most` at most."""
        clip_grads_with_norm_(parameters, most, norm)

    def local(self, tensor: Tensor) -> Tensor:
        """The numbers of a tensor that this process holds."""
        return tensor

    def as_part(self, own: Tensor, like: Tensor) -> Tensor:
        """Numbers that this process holds, as its part of a tensor of the form of `like`."""
        del like
        return own

    def whole_matrices(self, own: Tensor, rows: int) -> Tensor:
        """Matrices (n, r, c) of which this process holds some rows, with all of their `rows`."""
        del rows
        return own

    def own_matrices(self, whole: Tensor) -> Tensor:
        """The rows that this process holds of matrices (n, r, c)."""
        return whole

    # Files.

    def kept(self, named: Mapping[str, Tensor], room: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
        """A copy of tensors on the host, to be written later. room: copies of before, which may be overwritten."""
        return tensors.copied(named, {} if room is None else room)

    def publish_weights(self, run: RunFolder, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """Put weights into the run folder as one file."""
        self.first(lambda: run.publish({WEIGHTS: tensors.chunks(weights, metadata)}))

    def save_checkpoint(self, folder: Path, step: int, contents: Contents) -> Path:
        """Write a checkpoint; where it is comes back."""
        return self.first(lambda: checkpoint.save(folder, step, contents))

    def copy_into(self, own: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
        """Overwrite tensors in place, by name, with whole ones."""
        tensors.copy_into(own, values)


ALONE = Ranks()
