"""One training by several processes, from the command line: what it says, what it leaves, what it refuses."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from calling import TEXT, TINY, call_here, call_process, refused
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from regard.errors import ResourceError
from regard.run import many
from regard.training import checkpoint, run_folder
from regard.training.parallel.launch import exit_code


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my.txt").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_two_devices_train_one_run_and_one_of_them_tells(here: Path) -> None:
    outcome = call_process("train", "my.txt", "--devices", "2", "--budget", "4steps", "--out", "run", *TINY, cwd=here)
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    assert outcome.out.count("run starts: ") == 1
    assert outcome.out.count("Next:") == 1
    assert "in each of 2 processes, each of which holds the whole model (ddp)" in outcome.out
    newest, _ = checkpoint.newest(here / "run" / "checkpoints", fall_back=False)
    assert newest is not None
    assert checkpoint.read_state(newest)["environment"]["ranks"] == 2
    assert set(run_folder.verify_run(here / "run").values()) == {"ok"}


def failed(**codes: int) -> Any:
    """What torchrun's launcher says of processes that have failed."""
    failures = {rank: ProcessFailure(rank, 1, code, "none") for rank, code in enumerate(codes.values())}
    return ChildFailedError("regard", failures)


def test_the_exit_code_is_that_of_who_failed_and_not_of_whom_the_launcher_ended() -> None:
    assert exit_code(failed(first=2, second=143)) == 2
    assert exit_code(failed(first=-signal.SIGTERM, second=3)) == 3
    with pytest.raises(ResourceError, match=r"process 1 of the training was ended by SIGKILL.*--resume"):
        exit_code(failed(first=6, second=-signal.SIGKILL))


def test_a_counted_model_says_that_one_process_counts_it(here: Path) -> None:
    outcome = call_here("train", "my.txt", "--model", "ngram", "--devices", "2", "--out", "run", *TINY[:2])
    assert outcome.code == 0, outcome.err
    assert outcome.err.startswith("ngram is counted or solved for by one process; --devices has no effect\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("my.txt", "--set", "train.batch_size=1"), "--devices 2: train.batch_size=1 has no row for each of them"),
        (("-",), "standard input is read by one process alone; keep it in a file for several"),
        (("my.txt", "--set", "train.ensemble=2"), "train.ensemble: several processes train one model"),
        (("my.txt", "--set", "train.parallel=none"), "--devices 2: train.parallel=none is for one process"),
        (("my.txt", "--set", "train.parallel=dpp"), "train.parallel: 'dpp' is not a choice, did you mean 'ddp'?"),
    ],
)
def test_what_several_processes_cannot_do_is_refused_before_any_is_started(
    here: Path, words: tuple[str, ...], line: str
) -> None:
    assert line in refused("train", *words, "--devices", "2", "--out", "run", "--device", "cpu")
    assert not (here / "run").exists()


def test_a_torch_without_nccl_is_refused_before_any_is_started(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "device_named", lambda name: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)
    outcome = call_here("train", "my.txt", "--devices", "2", "--out", "run", *TINY)
    assert (outcome.code, outcome.out) == (6, "")
    assert outcome.err == (
        "regard: error: this torch has no NCCL, by which GPUs exchange gradients; say --device cpu\n"
    )
    assert not (here / "run").exists()


def test_a_port_in_use_is_told_in_a_line(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first of two processes that were started by hand: --devices takes a port that is free."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        said = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": where.partition(":")[2]}
        for name, value in said.items():
            monkeypatch.setenv(name, value)
        outcome = call_process("train", "my.txt", "--out", "run", *TINY, cwd=here)
    assert outcome.code == 6, outcome.err
    (line,) = outcome.err.splitlines()
    assert line.startswith(f"regard: error: process 0 of 2 cannot join the others at {where}: ")
    assert line.endswith("; see that the port is free and the first process can be reached")
    assert not (here / "run").exists()


def test_a_shard_that_vanished_is_told_once_and_no_run_is_begun(here: Path) -> None:
    asked = ("train", "my.txt", "--set", "data.cache=cache", *TINY)
    assert call_here(*asked, "--budget", "1steps", "--out", "first").code == 0
    (shard,) = (here / "cache").glob("*/train.ids")
    shard.unlink()
    outcome = call_process(*asked, "--devices", "2", "--out", "run", cwd=here)
    assert outcome.code == 3, outcome.err
    (line,) = outcome.err.splitlines()
    assert f"{shard.relative_to(here)}: is missing" in line
    assert line.endswith("and it will be prepared again")
    assert not (here / "run").exists()
