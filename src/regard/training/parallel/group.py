"""Joining the processes that torchrun started, and ending together: a failure is told once, and all have its exit code.

The store through which processes find each other outlives each of them where torchrun holds it. Who fails first says so
there before it leaves; whoever then finds a connection closed knows why, and ends without a word.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Thread
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from regard.errors import ResourceError, Stopped, UsageError
from regard.training.interrupt import heeded
from regard.training.parallel.joined import TIMEOUT, JoinedRanks, environment_says
from regard.training.parallel.ranks import ALONE, Ranks

T = TypeVar("T")

NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
LAUNCHED = "REGARD_LAUNCHED"  # by --devices, which tells of a process that was killed
WAIT = 4.0  # seconds for somebody to say why he left, who may have little of a busy machine
JOINING = 300.0  # seconds until all are there
LATER = timedelta(seconds=60)  # after which torch gives it up too, with a trace
BETWEEN = 0.2  # seconds between two moments at which a signal is heard while others are waited for
LOST = 6
CLOSED = ("gloo", "Connection closed", "Connection reset", "Broken pipe", "NCCL", "ncclRemoteError", "TCPStore")


def is_one_of_many() -> bool:
    """Whether torchrun, or somebody who does as it does, has started this process as one of several."""
    return all(name in os.environ for name in NEEDED)


def was_restarted() -> bool:
    """Whether torchrun has started the processes anew after one of them had failed."""
    return is_one_of_many() and environment_says("TORCHELASTIC_RESTART_COUNT", 0) > 0


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """The processes that train together on devices of this kind; a training alone where there is one process."""
    if not is_one_of_many():
        yield ALONE
        return
    store, ranks = _join(device)
    try:
        yield ranks
    except BaseException as error:
        _end(store, error)
    ranks.release()
    dist.barrier()  # who leaves first would close a connection that another still reads
    dist.destroy_process_group()


def _join(device: torch.device) -> tuple[Any, Ranks]:
    rank, size = environment_says("RANK", 0), environment_says("WORLD_SIZE", 1)
    local_rank, n_local = environment_says("LOCAL_RANK", rank), environment_says("LOCAL_WORLD_SIZE", size)
    where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    backend = "gloo"
    if device.type == "cuda":
        require_nccl()
        if local_rank >= torch.cuda.device_count():
            raise UsageError(
                f"{n_local} processes on this machine and {torch.cuda.device_count()} CUDA devices; start one for each"
            )
        torch.cuda.set_device(local_rank)
        backend = "cpu:gloo,cuda:nccl"

    def join() -> Any:
        if device.type == "cuda":
            torch.cuda.set_device(local_rank)  # of this thread
        store, rank, size = next(rendezvous("env://", timeout=timedelta(seconds=JOINING) + LATER))
        own = PrefixStore(f"regard/{environment_says('TORCHELASTIC_RESTART_COUNT', 0)}", store)
        dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=TIMEOUT)
        return own

    try:
        own = _heeding_signals(join, JOINING)
    except (RuntimeError, ValueError, OSError) as error:
        raise ResourceError(
            f"process {rank} of {size} cannot join the others at {where}: {_brief(error)}; see that the port is free "
            f"and the first process can be reached"
        ) from None
    return own, JoinedRanks(rank, size, local_rank, n_local)


def _heeding_signals(work: Callable[[], T], seconds: float) -> T:
    """What some work comes to within so many seconds that cannot be broken off: a signal ends the wait for it.

    It is done in a thread, as torch waits for others without hearing signals.
    """
    done = Future[T]()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    end = time.monotonic() + seconds
    while not wait([done], BETWEEN).done:
        if time.monotonic() > end:
            raise TimeoutError(f"after {seconds:g} seconds not all of them were there")
    return done.result()


def require_nccl() -> None:
    if not dist.is_nccl_available():
        raise ResourceError("this torch has no NCCL, by which GPUs exchange gradients; say --device cpu")


def _end(store: Any, error: BaseException) -> NoReturn:
    """Leave with a failure that nobody has told yet, or without a word."""
    # torchrun ends those that are left when one has failed; what there is to tell is told first.
    for number in heeded():
        signal.signal(number, signal.SIG_IGN)
    code: Any = getattr(error, "exit_code", getattr(error, "code", 1))
    if isinstance(error, KeyboardInterrupt):
        code = 130
    if any(_is_closed(one) for one in _behind(error)):
        told = _told(store)
        if told is not None:
            raise SystemExit(told)
        if LAUNCHED in os.environ:
            raise SystemExit(LOST)
        code, error = LOST, ResourceError(
            "another process of the training has ended without a word: it was killed, or its machine is lost; "
            "continue from the last checkpoint with --resume"
        )  # fmt: skip
    # Without a store nobody can ask whether it was told; what all agreed on is then for the first.
    is_first = environment_says("RANK", 0) == 0 or not isinstance(error, Stopped)
    with suppress(RuntimeError, OSError):
        store.set("failure", str(code))
        is_first = store.add("failures", 1) == 1
    if not is_first:
        raise SystemExit(code)
    _leave_word(error)
    raise error


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """A failure and those during which it came, such as a signal while the loop was left."""
    while error is not None:
        yield error
        error = error.__context__


def _is_closed(error: BaseException) -> bool:
    """Whether an exchange failed because another process is gone."""
    return isinstance(error, dist.DistError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in CLOSED)
    )


def _told(store: Any) -> int | None:
    """The exit code of a process that has said that it fails."""
    end = time.monotonic() + WAIT
    with suppress(RuntimeError, OSError):
        while time.monotonic() < end:
            if store.check(["failure"]):
                return int(store.get("failure"))
            time.sleep(0.05)
    return None


def _leave_word(error: BaseException) -> None:
    """Write the failure where torchrun looks for it, for its own report."""
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    if "TORCHELASTIC_ERROR_FILE" in os.environ:
        with suppress(OSError):
            get_error_handler().record_exception(error)


def _brief(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
