"""Many processes that train one model: torch.distributed, and DistributedDataParallel around the training step.

Every process holds the whole model and makes the same updates. What depends on a clock, a signal or a disk is decided
by the first of them and told to the others, so that all make the same steps and none waits for one that has left. What
passes between them goes by gloo on the host and by NCCL between GPUs.
"""

from __future__ import annotations

import copy
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard import errors
from regard.core.version import __version__
from regard.data.batch import Batch
from regard.errors import RegardError, ResourceError, UsageError
from regard.training.display import Silent
from regard.training.interrupt import SIGNALS, Interrupt, Interrupted
from regard.training.parallel.ranks import Ranks
from regard.training.parallel.rows import joined_rows, own_rows, part_of
from regard.training.run_folder import RunFolder, claim
from regard.training.track import flat

if TYPE_CHECKING:
    from regard.training.display import Display
    from regard.training.settings import TrainSettings

T = TypeVar("T")
UNTOLD = ("train.device", "train.threads", "train.track", "train.parallel")  # settings that may differ
SHOWN = 3
TIMEOUT = timedelta(minutes=30)  # for the slowest thing that others wait for: a save of a large model
NOT_NEEDED = "`broadcast_buffers` is deprecated"  # its other name is not known to every torch


@dataclass(frozen=True)
class _Outcome:
    """What the first process came to: a value, or the kind and the words of a failure."""

    now: float
    value: Any = None
    failure: tuple[str, str] | None = None


class JoinedRanks(Ranks):
    """One of several processes. local_rank, n_local: the same among those on its machine."""

    way = "each of which holds the whole model (ddp)"
    group: Any = None  # through which they agree; None: torch's own of all processes
    _beside: JoinedRanks | None = None

    def __init__(self, rank: int, size: int, local_rank: int = 0, n_local: int = 1) -> None:
        self.rank, self.size, self.local_rank, self.n_local = rank, size, local_rank, n_local
        self._now, self._heard = 0.0, None
        self._parent = os.getppid()
        self._interrupt: Interrupt | None = None
        self._ddp: DistributedDataParallel | None = None
        self.shared(None)  # the time

    def release(self) -> None:
        self._ddp = None
        self._beside = None

    @property
    def beside(self) -> JoinedRanks:
        if self._beside is None:
            self._beside = copy.copy(self)
            self._beside.group = dist.new_group(backend="gloo", timeout=TIMEOUT)
        return self._beside

    def as_set(self, settings: TrainSettings, needs: int, limit: int) -> Ranks:
        from regard.training.parallel.sharded import ShardedRanks

        if settings.parallel == "none" and self.size > 1:
            raise UsageError(f"train.parallel=none: {self.size} processes were started; say auto, ddp or fsdp")
        if settings.parallel == "fsdp" or (settings.parallel == "auto" and self.size > 1 and needs > limit):
            return ShardedRanks(self.rank, self.size, self.local_rank, self.n_local)
        return self

    def device(self, device: torch.device) -> torch.device:
        if device.type != "cuda" or device.index is not None:
            return device
        return torch.device("cuda", self.local_rank)

    def memory(self, limit: int, device: torch.device) -> int:
        return limit if device.type == "cuda" else limit // self.n_local

    def require_rows(self, batch_size: int) -> None:
        if batch_size < self.size:
            raise UsageError(
                f"train.batch_size={batch_size}: {self.size} processes share the rows of a batch; give a larger one, "
                f"or fewer processes"
            )

    def display(self, display: Display) -> Display:
        return display if self.is_first else Silent()

    @contextmanager
    def claim(self, path: Path) -> Iterator[RunFolder]:
        with ExitStack() as stack:
            claimed = list[RunFolder]()
            self.first(lambda: claimed.append(stack.enter_context(claim(path))))
            if not self.is_first and not path.is_dir():
                raise ResourceError(
                    f"{path}: process {self.rank} on {socket.gethostname()} does not see it; a run folder lies where "
                    f"all processes see it"
                )
            yield claimed[0] if self.is_first else RunFolder(path)

    def require_same(self, description: Mapping[str, Any]) -> None:
        mine = flat({key: description[key] for key in ("model", "data", "train")})
        mine |= {"model.config": str(description["model"].get("config"))}
        mine |= {"regard": __version__, "torch": torch.__version__}
        mine = {key: value for key, value in mine.items() if key not in UNTOLD}
        (host, first), *others = self.gathered((socket.gethostname(), mine))
        for rank, (other, theirs) in enumerate(others, 1):
            keys = [key for key in {**first, **theirs} if first.get(key) != theirs.get(key)]
            if keys:
                told = [f"{key} is {_brief(first.get(key))} and {_brief(theirs.get(key))}" for key in keys[:SHOWN]]
                raise UsageError(
                    f"process 0 on {host} and process {rank} on {other} were started for different trainings: "
                    f"{'; '.join(told)}"
                )

    def now(self) -> float:
        return self._now

    def meet(self, interrupt: Interrupt, is_busy: bool = False) -> bool:
        self._interrupt = interrupt
        received = interrupt.received
        if received is None and os.getppid() != self._parent:
            received = SIGNALS[0].name  # torchrun is gone, which would have told when the work is to end
        number = 0 if received is None else SIGNALS.index(_signal(received)) + 1
        message = torch.tensor([time.monotonic() if self.is_first else 0.0, number, is_busy], dtype=torch.float64)
        dist.all_reduce(message, dist.ReduceOp.MAX)
        self._now, number = float(message[0]), int(message[1])
        self._heard = SIGNALS[number - 1].name if number else None
        return bool(message[2])

    def heard(self, interrupt: Interrupt) -> str | None:
        return self._heard

    def leave_if_heard(self) -> None:
        if self._interrupt is not None:
            self.meet(self._interrupt)
            if self._heard is not None:
                raise Interrupted

    def at_once(self, interrupt: Interrupt, work: Callable[[], T]) -> T | None:
        # A signal that left the work of one process in its middle would let the others wait for it.
        try:
            return work()
        except Interrupted:
            return None

    def first(self, work: Callable[[], T]) -> T:
        failure: RegardError | None = None
        message: list[Any] = [None]
        if self.is_first:
            try:
                value = work()
                message = [_Outcome(time.monotonic(), value)]
            except RegardError as error:
                failure = error
                message = [_Outcome(time.monotonic(), failure=(type(error).__name__, str(error)))]
        dist.broadcast_object_list(message, src=0, group=self.group)
        outcome: _Outcome = message[0]
        self._now = outcome.now
        if outcome.failure is not None:
            raise failure or _again(*outcome.failure)
        return outcome.value

    def shared(self, value: T) -> T:
        return self.first(lambda: value)

    def gathered(self, value: T) -> list[T]:
        """What each of the processes has."""
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value, group=self.group)
        return found

    def part(self, batch: Batch) -> Batch:
        return part_of(batch, self.rank, self.size)

    def counts(self, batch: Batch) -> bool:
        return self.rank < len(batch.lengths)

    def own_rows(self, whole: Tensor) -> Tensor:
        return own_rows(whole, self.rank, self.size)

    def all_rows(self, own: Tensor) -> Tensor:
        return joined_rows(self.gathered(own.detach().cpu()))

    def stream(self, purpose: str) -> str:
        return f"{purpose}/{self.rank}" if self.rank else purpose

    def wrapped(self, step: nn.Module) -> nn.Module:
        # Where torch looks for unused parameters it leaves gradients laid out as they are. Else it does so anew after
        # the first step of a life: of more than two processes sums then come in another order, and a resume would
        # differ in its last bits.
        options: dict[str, Any] = {"find_unused_parameters": True, "gradient_as_bucket_view": True}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=NOT_NEEDED)
            self._ddp = DistributedDataParallel(step, broadcast_buffers=False, **options)
        return self._ddp

    def adding(self, step: object, *, last: bool) -> AbstractContextManager[object]:
        return nullcontext() if last or self._ddp is None else self._ddp.no_sync()

    def scaled(self, loss: Tensor) -> Tensor:
        return loss * self.size  # which DDP divides by: it gives the mean

    def summed(self, loss: Tensor) -> Tensor:
        total = loss.detach().clone()
        dist.all_reduce(total)
        return total

    def kept(self, named: Mapping[str, Tensor], room: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
        return super().kept(named, room) if self.is_first else {}


def _again(kind: str, words: str) -> RegardError:
    """The failure of another process."""
    found = getattr(errors, kind, RegardError)
    error = found.__new__(found)
    Exception.__init__(error, words)
    return error


def _signal(name: str) -> Any:
    return next(number for number in SIGNALS if number.name == name)


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def environment_says(name: str, default: int) -> int:
    """A number that torchrun leaves in the environment of its processes."""
    return int(os.environ.get(name, default))
