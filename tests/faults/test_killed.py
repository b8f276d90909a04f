"""Processes that are killed, stopped, starved of disk or started twice on one folder."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from nursery import Request, to_line

from regard.errors import LockedError
from regard.storage import manifest
from regard.training import checkpoint, run_folder
from regard.training.run_folder import claim
from tiny_run import folder_hash, run, weight_hash

HERE = Path(__file__).parent
STEPS = {"budget": "12steps", "save_every": 2, "evaluate_every": 5}


@pytest.fixture(scope="module")
def nursery():
    """A function that runs a request in a child process and gives its exit code and its messages."""
    paths = [str(HERE.parent), str(HERE), str(Path(checkpoint.__file__).parents[2])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, str(HERE / "nursery.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )

    def ask(path: Path, **rest) -> tuple[int, str]:
        process.stdin.write(to_line(Request(str(path), **{"settings": STEPS, **rest})))
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        return answer["code"], answer["text"]

    yield ask
    process.stdin.close()
    process.wait(timeout=60)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    run(path, "lstm", **STEPS)
    return path


def require_same(path: Path, undisturbed: Path) -> None:
    assert folder_hash(path, 12) == folder_hash(undisturbed, 12)
    assert (path / "model.safetensors").read_bytes() == (undisturbed / "model.safetensors").read_bytes()
    assert set(run_folder.verify_run(path).values()) == {"ok"}


@pytest.mark.parametrize("seed", range(4))
def test_kills_at_random_moments_end_with_the_weights_of_the_undisturbed_run(nursery, undisturbed, tmp_path, seed):
    """Six kills a run, at a random file operation, batch or evaluation; `benchmarks/kill_resume.py` makes more."""
    chance = random.Random(seed)
    path = tmp_path / "run"
    for _ in range(6):
        kind = chance.choice(["operation", "operation", "batch", "evaluation"])
        moment = chance.randint(1, {"operation": 60, "batch": 5, "evaluation": 3}[kind])
        code, text = nursery(path, name="lstm", at=(kind, moment), signals=(signal.SIGKILL,))
        assert code in (-signal.SIGKILL, 0), text
    code, text = nursery(path, name="lstm")
    assert code == 0, text
    require_same(path, undisturbed)


def test_a_kill_at_every_operation_of_a_save_leaves_the_announced_checkpoint(nursery, tmp_path):
    """From the first operation of a run over its first saves; each kill in a new folder."""
    for moment in range(1, 90, 4):
        path = tmp_path / str(moment)
        code, text = nursery(path, at=("operation", moment), signals=(signal.SIGKILL,))
        assert code == -signal.SIGKILL, text
        announced = [int(line.split()[1]) for line in text.splitlines() if "  saved " in line]
        newest, problems = checkpoint.newest(path / "checkpoints", fall_back=False)
        assert not problems
        assert (int(newest.name) if newest else 0) >= max(announced, default=0)
        with claim(path):
            left = [
                n
                for where in (path, path / "checkpoints")
                for n in os.listdir(where)
                if n.startswith((".tmp", ".trash"))
            ]
            assert left == []
        if (path / "manifest.json").exists() and announced:
            manifest.verify(path, extras=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("at", [("batch", 5), ("evaluation", 2), ("operation", 45)], ids=lambda at: at[0])
def test_a_signal_ends_the_step_saves_and_exits_75(nursery, undisturbed, tmp_path, number, at):
    path = tmp_path / "run"
    code, text = nursery(path, name="lstm", at=at, signals=(number,))
    assert code == 75, text
    assert f"stopped by {number.name} at step " in text
    newest, _ = checkpoint.newest(path / "checkpoints", fall_back=False)
    step = int(text.partition(" at step ")[2].partition(",")[0])
    assert int(newest.name) == step
    run_folder.verified_weights(path)
    code, text = nursery(path, name="lstm")
    assert code == 0, text
    require_same(path, undisturbed)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130), (signal.SIGHUP, -signal.SIGHUP)]
)
def test_a_second_signal_ends_at_once_and_saves_nothing(nursery, tmp_path, number, code):
    path = tmp_path / "run"
    found, _ = nursery(path, at=("batch", 4), signals=(number, number))
    assert found == code
    # The save of step 2 may be under way in the background: then it is given up.
    assert checkpoint.steps(path / "checkpoints") in ([], [2])
    assert nursery(path)[0] == 0


def test_one_writer_wins_and_a_dead_one_leaves_no_lock(nursery, tmp_path):
    path = tmp_path / "run"
    with claim(path):
        code, text = nursery(path)
        assert code == 7
        assert f"in use by process {os.getpid()} on " in text
        with pytest.raises(LockedError), claim(path):
            pytest.fail("two writers")
    code, _ = nursery(path, at=("batch", 5), signals=(signal.SIGKILL,))
    assert code == -signal.SIGKILL
    assert nursery(path)[0] == 0


def test_a_full_disk_ends_in_one_line_with_everything_saved_so_far(nursery, undisturbed, tmp_path):
    """RLIMIT_FSIZE: the first run may write small files, the second none as large as a checkpoint."""
    path = tmp_path / "run"
    code, _ = nursery(path, name="lstm", at=("batch", 6), signals=(signal.SIGTERM,))
    assert code == 75
    code, text = nursery(path, name="lstm", limit=9000)
    assert code == 6, text
    last = text.strip().splitlines()[-1]
    assert last.startswith("ResourceError: ")
    assert "File too large" in last
    assert not [name for name in os.listdir(path / "checkpoints") if name.startswith(".tmp")]
    checkpoint.newest(path / "checkpoints", fall_back=False)
    assert nursery(path, name="lstm")[0] == 0
    require_same(path, undisturbed)


def test_a_folder_that_may_not_be_written_is_found_before_any_step(tmp_path, monkeypatch):
    from regard.errors import ResourceError
    from regard.storage import disk

    def read_only(path):
        raise OSError(30, "Read-only file system")

    class Never:
        def batch(self, step: int, batch_size: int):
            pytest.fail("a step was made")

    for name in ("make_folder", "try_lock"):
        monkeypatch.setattr(disk, name, read_only)
        with pytest.raises(ResourceError, match="Read-only file system; choose a folder that may be written"):
            run(tmp_path / "absent" / "run", sampler=Never())
        monkeypatch.undo()
    assert not (tmp_path / "absent" / "run" / "manifest.json").exists()


def test_a_wall_clock_that_jumps_changes_nothing(tmp_path, monkeypatch):
    import time

    plain, _ = run(tmp_path / "plain")
    jumps = iter(range(10**6))
    monkeypatch.setattr(time, "time", lambda: 1.7e9 + (-1) ** next(jumps) * 3.15e7)
    monkeypatch.setattr(time, "time_ns", lambda: (-1) ** next(jumps) * 10**17)
    model, result = run(tmp_path / "jumping")
    assert weight_hash(model) == weight_hash(plain)
    assert 0 < result.seconds < 3600
    assert checkpoint.newest(tmp_path / "jumping" / "checkpoints", fall_back=False)[0].name == "00000012"
