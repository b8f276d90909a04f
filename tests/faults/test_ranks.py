"""Several processes that train one model: one is killed, stopped, starved of disk or started for another run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from rank_nursery import Request, to_line

from regard.storage import tensors
from regard.training import checkpoint, metrics, run_folder
from tiny_run import run

HERE = Path(__file__).parent
STEPS: dict[str, Any] = {"budget": "8steps", "save_every": 2, "evaluate_every": 3}
WAYS = ["ddp", "fsdp"]
ENDED = 128 + signal.SIGTERM
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Ask]:
    """A function that trains as a request says and gives the exit codes and messages of all ranks."""
    paths = [str(HERE.parent), str(HERE), str(Path(checkpoint.__file__).parents[2])]
    said = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process: Any = subprocess.Popen([sys.executable, str(HERE / "rank_nursery.py")], env=os.environ | said, **pipe)

    def ask(path: Path, way: str = "ddp", **rest: Any) -> dict[str, Any]:
        settings = STEPS | {"parallel": way} | rest.pop("settings", {})
        process.stdin.write(to_line(Request(str(path), settings=settings, **rest)))
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    process.wait(timeout=60)


@pytest.fixture(scope="module")
def undisturbed(nursery: Ask, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of two processes, and of one."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for way in WAYS:
        assert nursery(folder / way, way)["codes"] == [0, 0]
    run(folder / "alone", "lstm", **STEPS)
    return {name: folder / name for name in (*WAYS, "alone")}


def weights(path: Path) -> dict[str, torch.Tensor]:
    return tensors.read(path / "model.safetensors")


def require_near(path: Path, other: Path) -> None:
    """Weights that differ by rounding alone. Steps are of float32, and a training makes more of each difference."""
    for name, tensor in weights(other).items():
        assert float((weights(path)[name] - tensor).abs().max()) < 1e-5, name


def losses(path: Path) -> dict[int, float]:
    """The held-out loss by step."""
    return {one["step"]: one["valid_loss"] for one in metrics.read(path / "metrics.jsonl") if "valid_loss" in one}


def told(answer: dict[str, Any]) -> list[str]:
    """What all ranks say of an end before the last step."""
    lines = [line for text in answer["texts"] for line in text.splitlines()]
    return [line for line in lines if "Error: " in line or "Stopped: " in line or "unexpected" in line]


def test_one_and_two_processes_come_to_the_same_weights(undisturbed: dict[str, Path]) -> None:
    for way in WAYS:
        require_near(undisturbed[way], undisturbed["alone"])


@pytest.mark.parametrize("way", WAYS)
def test_kills_of_either_rank_end_with_the_bits_of_the_undisturbed_run(
    nursery: Ask, undisturbed: dict[str, Path], tmp_path: Path, way: str
) -> None:
    """At random batches, evaluations and file operations; `benchmarks/kill_ranks.py` makes more."""
    chance, path = random.Random(way), tmp_path / "run"
    for harmed in (1, 0):
        kind = chance.choice(["batch", "evaluation"] if harmed else ["operation", "batch"])
        moment = chance.randint(1, {"operation": 40, "batch": 4, "evaluation": 3}[kind])
        answer = nursery(path, way, harmed=harmed, at=(kind, moment), signals=(signal.SIGKILL,))
        if answer["codes"] == [0, 0]:
            break
        codes = sorted(answer["codes"])
        # Who is ended with it, as torchrun does, in the moment in which it leaves has the signal's code, and no line.
        assert codes in ([-signal.SIGKILL, 6], [-signal.SIGKILL, ENDED]), (kind, moment, answer)
        assert len(told(answer)) == int(6 in codes)
        assert all("ended without a word" in line for line in told(answer))
        assert answer["seconds"] < 10
        checkpoint.newest(path / "checkpoints", fall_back=False)
    answer = nursery(path, way)
    assert answer["codes"] == [0, 0], answer
    assert (path / "model.safetensors").read_bytes() == (undisturbed[way] / "model.safetensors").read_bytes()
    assert set(run_folder.verify_run(path).values()) == {"ok"}


@pytest.mark.parametrize("way", WAYS)
def test_a_signal_to_one_rank_stops_all_at_one_step_and_other_numbers_of_them_go_on(
    nursery: Ask, undisturbed: dict[str, Path], tmp_path: Path, way: str
) -> None:
    path = tmp_path / "run"
    for size, harmed, at in ((2, 1, ("batch", 3)), (1, 0, ("batch", 2)), (4, 3, ("evaluation", 1))):
        number = signal.SIGTERM if size == 2 else signal.SIGINT
        answer = nursery(path, way, size=size, harmed=harmed, at=at, signals=(number,))
        assert answer["codes"] == [75] * size, answer
        assert len(told(answer)) == 1
        step = int(told(answer)[0].partition(" at step ")[2].partition(",")[0])
        assert checkpoint.newest(path / "checkpoints", fall_back=False)[0] == checkpoint.path_of(
            path / "checkpoints", step
        )
    answer = nursery(path, way, size=2)
    assert answer["codes"] == [0, 0], answer
    assert "continued with ranks 2 instead of 4" in answer["texts"][0]
    assert answer["texts"][1] == ""
    require_near(path, undisturbed["alone"])
    assert losses(path) == pytest.approx(losses(undisturbed["alone"]), abs=1e-5)


def test_a_run_goes_on_from_one_way_to_the_other(nursery: Ask, undisturbed: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "run"
    for way in ("fsdp", "ddp", "fsdp"):
        assert nursery(path, way, harmed=1, at=("batch", 2), signals=(signal.SIGTERM,))["codes"] == [75, 75]
    run(path, "lstm", resume="last", **STEPS)
    require_near(path, undisturbed["alone"])


@pytest.mark.parametrize("way", WAYS)
def test_a_loss_that_is_not_finite_on_one_rank_ends_all_with_5(nursery: Ask, tmp_path: Path, way: str) -> None:
    answer = nursery(tmp_path / "run", way, bad_at=4, name="gpt")
    assert answer["codes"] == [5, 5], answer
    assert len(told(answer)) == 1
    assert "the last checkpoint is untouched" in told(answer)[0]
    assert checkpoint.newest(tmp_path / "run" / "checkpoints", fall_back=False)[0] is not None


@pytest.mark.parametrize(("way", "limited"), [("ddp", 0), ("fsdp", 0), ("fsdp", 1)])
def test_a_full_disk_of_one_ends_all_with_6_and_the_last_checkpoint_good(
    nursery: Ask, tmp_path: Path, way: str, limited: int
) -> None:
    path = tmp_path / "run"
    assert nursery(path, way, harmed=1, at=("batch", 4), signals=(signal.SIGTERM,))["codes"] == [75, 75]
    answer = nursery(path, way, limit=5_000, limited=limited)
    assert answer["codes"] == [6, 6], answer
    assert len(told(answer)) == 1
    newest, problems = checkpoint.newest(path / "checkpoints", fall_back=False)
    assert newest is not None
    assert not problems


def test_ranks_that_were_started_for_other_runs_are_refused_with_both_named(nursery: Ask, tmp_path: Path) -> None:
    answer = nursery(tmp_path / "run", differs={"lr": 0.5})
    assert answer["codes"] == [2, 2], answer
    assert len(told(answer)) == 1
    assert "train.lr is 0.01 and 0.5" in told(answer)[0]
    assert "process 0 on " in told(answer)[0]
    assert " and process 1 on " in told(answer)[0]


def test_more_ranks_than_rows_are_refused(nursery: Ask, tmp_path: Path) -> None:
    answer = nursery(tmp_path / "run", size=3, settings={"batch_size": 2})
    # Who finds the connection closed before it is told why has the code of a lost process, who is ended by what started
    # all of them that of the signal; one tells.
    assert 2 in answer["codes"], answer
    assert set(answer["codes"]) <= {2, 6, ENDED, -signal.SIGTERM}, answer
    assert told(answer) == [
        "UsageError: train.batch_size=2: 3 processes share the rows of a batch; give a larger one, or fewer processes"
    ]


def test_one_writer_wins(nursery: Ask, tmp_path: Path) -> None:
    with run_folder.claim(tmp_path / "run"):
        answer = nursery(tmp_path / "run")
    assert answer["codes"] == [7, 7]
    assert len(told(answer)) == 1
