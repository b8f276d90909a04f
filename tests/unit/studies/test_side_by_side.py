"""Trainings side by side: what comes out is what one after the other gives, whatever is killed or stopped meanwhile."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import pytest
from test_going_on import write

from regard.errors import UsageError
from regard.studies import compare as comparing
from regard.studies.board import LineBoard
from regard.studies.compare import compare
from regard.studies.comparison import Comparison
from regard.studies.notes import notes
from regard.studies.pool.opening import Workers
from regard.studies.pool.pool import Ended, Here, Job, Told
from regard.training.display import Display, Passing

MODELS = ["ngram", "fnn", "rnn?lr=0.01"]
# What hangs on the clock, on the memory of a process, and on where the comparison lies.
CHANCE = frozenset(("seconds", "speed", "peak_memory", "side_by_side", "path", "finding", "notes", "versions"))


def run(folder: Path, name: str, board: LineBoard | None = None, **settings: Any) -> Comparison:
    given = {"budget": "96steps", "seeds": 2, "size": "tiny", "length": 16, "batch_size": 4, "evaluate_every": 6}
    given |= {"save_every": 6, "models": MODELS} | settings
    return compare(given.pop("models"), folder / "d.txt", board=board or LineBoard(None), out=folder / name, **given)


def told(folder: Path) -> Any:
    """The report of a comparison without what hangs on chance."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items() if key not in CHANCE}
        return [plain(part) for part in value] if isinstance(value, list) else value

    return plain(json.loads((folder / "report.json").read_text()))


def weights(folder: Path) -> dict[str, bytes]:
    return {file.parent.name: file.read_bytes() for file in folder.glob("*/model.safetensors")}


class Meddling(LineBoard):
    """A board that does something once, when a training of a model has been saved in its middle."""

    def __init__(self, label: str, deed: Callable[[Path], None]) -> None:
        super().__init__(None)
        self.label, self.deed, self.heard = label, deed, list[str]()

    def stage(self, label: str, stage: str, first: float, last: float) -> Display:
        display = super().stage(label, stage, first, last)
        return _Saved(display, self) if label == self.label else display

    def note(self, text: str) -> None:
        self.heard.append(text)


class _Saved(Passing):
    def __init__(self, inner: Display, board: Meddling) -> None:
        super().__init__(inner)
        self.board = board

    def saved(self, step: int, path: Path) -> None:
        deed, self.board.deed = self.board.deed, lambda _: None
        deed(path)


def kill_writer(path: Path) -> None:
    """End the process that trains the run of a checkpoint."""
    process = int((path.parents[1] / ".lock").read_text().split()[1])
    assert process != os.getpid()
    os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text, and in it the comparison of one process."""
    folder = tmp_path_factory.mktemp("alone")
    write(folder / "d.txt", "abcd")
    assert not run(folder, "c").failed
    return folder


def test_two_workers_of_which_one_is_killed_give_what_one_process_gives(alone: Path) -> None:
    board = Meddling("rnn?lr=0.01", kill_writer)
    found = run(alone, "killed", board, workers=2)
    assert told(alone / "killed") == told(alone / "c")
    assert weights(alone / "killed") == weights(alone / "c")
    assert len(weights(alone / "killed")) == 5
    assert [note for note in board.heard if "killed by SIGKILL" in note and "goes on from its checkpoint" in note]
    assert any("2 trainings side by side" in note for note in notes(found))


def test_a_signal_stops_all_workers_and_the_same_comparison_goes_on(alone: Path) -> None:
    board = Meddling("rnn?lr=0.01", lambda _: os.kill(os.getpid(), signal.SIGINT))
    assert run(alone, "stopped", board, workers=2).stopped
    unfinished = [file.parent for file in (alone / "stopped").rglob("config.json")]
    assert not [one for one in unfinished if _is_held(one)]
    assert not run(alone, "stopped").stopped
    assert told(alone / "stopped") == told(alone / "c")
    assert weights(alone / "stopped") == weights(alone / "c")


def _is_held(path: Path) -> bool:
    from regard.storage.lock import writer_of

    return writer_of(path) is not None


class Losing(Here):
    """A pool that loses the worker of some trainings so many times."""

    def __init__(self, name: str, times: int) -> None:
        super().__init__()
        self.name, self.times = name, times

    def wait(self, told: Told) -> list[Ended]:
        assert self.submitted is not None
        key: Hashable = self.submitted[0]
        job: Job = self.submitted[1]
        if key != self.name or not self.times:
            return super().wait(told)
        self.times -= 1
        self.submitted = None
        assert callable(job)
        return [Ended(key, "lost", text="process 5, killed by SIGKILL")]


@pytest.mark.parametrize(("times", "failed"), [(2, []), (3, ["rnn?lr=0.01"])])
def test_a_worker_that_is_lost_again_and_again_is_a_row_with_its_reason(
    times: int, failed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "d.txt", "abcd")
    monkeypatch.setattr("regard.studies.pool.opening.Here", lambda: Losing("rnn?lr=0.01-1", times))
    found = run(tmp_path, "c", models=["ngram", "rnn?lr=0.01"], budget="8steps")
    assert [row.label for row in found.failed] == failed
    assert [row.code for row in found.failed] == [6] * len(failed)
    assert len(found.order) == 2 - len(failed) or failed
    assert all("seed 2 of 2: a worker was lost 3 times (process 5, killed" in row.failed for row in found.failed)
    assert len(found.row("rnn?lr=0.01").runs) == (1 if failed else 2)


@pytest.mark.parametrize("count", [0, -1, 5000])
def test_a_count_of_workers_that_is_none_is_refused_before_anything(count: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--workers: expected a whole number"):
        compare(["ngram"], tmp_path / "none.txt", workers=count)


def test_more_workers_than_cores_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.studies.pool.opening.n_cores", lambda: 2)
    assert Workers(2).note == Workers(None).note == Workers(8, "auto").note == ""
    assert Workers(3).note.startswith("--workers 3 is more than the 2 cores here")


def test_a_model_of_the_script_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.core.registry import entry
    from regard.studies.entrant import modules_of

    assert modules_of([]) == []
    monkeypatch.setattr(entry("rnn").preset, "__module__", "__main__")
    with pytest.raises(UsageError, match="rnn is registered in the script itself"):
        modules_of([comparing.resolve({"model.name": comparing.Origin("rnn", "x")})])
