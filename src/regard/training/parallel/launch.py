"""Starting the processes of a training on one machine: torchrun's own launcher, on 127.0.0.1 and a free port."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard import errors
from regard.errors import RegardError, ResourceError
from regard.training.parallel.group import LAUNCHED

LOOPBACK = ("lo", "lo0")


def launch(words: Sequence[str], devices: int) -> int:
    """Run `regard` with these words once for each device; the exit code they agree on comes back.

    They tell of themselves what there is to tell; of one that was killed this process does.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    with _prepared(devices), tempfile.TemporaryDirectory(prefix="regard-") as folder:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=devices,
            run_id=uuid.uuid4().hex,
            rdzv_backend="c10d",
            rdzv_endpoint="127.0.0.1:0",
            local_addr="127.0.0.1",
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=folder),
        )
        try:
            elastic_launch(config, sys.executable)("-m", "regard", *words)
        except ChildFailedError as failed:
            return exit_code(failed)
        except SignalException as ended:
            return _left_word(Path(folder)) or 128 + int(ended.sigval)
        except RuntimeError as error:
            told = " ".join(str(error).split())[:200]
            raise ResourceError(f"{devices} processes cannot be started on this machine: {told}") from None
    return 0


@contextmanager
def _prepared(devices: int) -> Iterator[None]:
    """Cores shared out, and nothing that leaves this machine, unless somebody has said otherwise.

    The launcher's own account of a failure is left out.
    """
    before = dict(os.environ)
    os.environ[LAUNCHED] = str(devices)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // devices)))
    names = [name for _, name in socket.if_nameindex() if name in LOOPBACK]
    if names:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", names[0])
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        os.environ.clear()
        os.environ.update(before)


def exit_code(failed: Any) -> int:
    """The exit code of processes of which one has failed; a line for one that could not tell of itself."""
    # The launcher itself ends the others with SIGTERM: what they make of it says nothing.
    ended = (-signal.SIGTERM, 128 + signal.SIGTERM)
    failures = {rank: one for rank, one in failed.failures.items() if one.exitcode not in ended} or failed.failures
    killed = {rank: one for rank, one in failures.items() if one.exitcode < 0}
    codes = [one.exitcode for one in failures.values() if one.exitcode > 0]
    if killed:
        rank, one = next(iter(killed.items()))
        raise ResourceError(
            f"process {rank} of the training was ended by {one.signal_name()}, and the others with it; continue from "
            f"the last checkpoint with --resume"
        )
    return max(codes, default=1)


def _left_word(folder: Path) -> int | None:
    """The exit code of the failure that a process has written down for the launcher; None without one."""
    for path in folder.rglob("error.json"):
        try:
            words = json.loads(path.read_text(encoding="utf-8"))["message"]["message"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        found = getattr(errors, words.partition(":")[0], None)
        if isinstance(found, type) and issubclass(found, RegardError):
            return found.exit_code
    return None
