"""Trainings side by side: what comes out is what one after the other gives, whatever is killed or stopped meanwhile."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from test_going_on import write

from regard.core import plugin
from regard.errors import CheckpointError, DataError, ResourceError, UsageError
from regard.run.settings import Origin, resolve
from regard.storage.lock import writer_of
from regard.studies.ahead import Ahead
from regard.studies.board import LineBoard
from regard.studies.compare import compare
from regard.studies.comparison import Comparison
from regard.studies.notes import notes
from regard.studies.pool.opening import SideBySide, opened
from regard.studies.pool.pool import Ended, Failed, Here, Told
from regard.studies.pool.worker import refuse_other_versions, versions
from regard.studies.search import Watched
from regard.studies.training import Training
from regard.training.display import Display, Passing, Silent, Start

MODELS = ["ngram", "fnn"]
# What hangs on the clock, on the memory of a process, and on where the comparison lies.
CHANCE = frozenset(("seconds", "speed", "peak_memory", "side_by_side", "path", "finding", "notes", "versions"))


@pytest.fixture(autouse=True)
def _no_parts_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests have imported by name is not there in a worker."""
    monkeypatch.setattr(plugin, "_imported", set())


def run(folder: Path, name: str, board: LineBoard | None = None, **settings: Any) -> Comparison:
    given = {"budget": "72steps", "seeds": 2, "size": "tiny", "length": 16, "batch_size": 4, "evaluate_every": 6}
    given |= {"save_every": 2, "models": MODELS} | settings
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
    """A board that hears when a training of a model has been saved in its middle."""

    def __init__(self, label: str) -> None:
        super().__init__(None)
        self.label, self.heard = label, list[str]()

    def stage(self, label: str, stage: str, first: float, last: float) -> Display:
        display = super().stage(label, stage, first, last)
        return _Saved(display, self) if label == self.label else display

    def note(self, text: str) -> None:
        self.heard.append(text)

    def saved(self, path: Path) -> None:
        raise NotImplementedError


class Stopping(Meddling):
    """It stops the comparison, once."""

    stopped = False

    def saved(self, path: Path) -> None:
        if not self.stopped:
            self.stopped = True
            os.kill(os.getpid(), signal.SIGINT)


class Killing(Meddling):
    """It ends the process that trains the run of a checkpoint, until one is missed.

    What is heard late may be of a training that has ended, or whose worker has been killed for the checkpoint before.
    """

    def saved(self, path: Path) -> None:
        run = path.parents[1]
        if not self.lost and writer_of(run) is not None:
            process = int((run / ".lock").read_text().split()[1])
            assert process != os.getpid()
            os.kill(process, signal.SIGKILL)

    @property
    def lost(self) -> list[str]:
        """What was said of a worker that was killed while it trained."""
        return [told for told in self.heard if "a worker was lost" in told and "goes on from its checkpoint" in told]


class _Saved(Passing):
    def __init__(self, inner: Display, board: Meddling) -> None:
        super().__init__(inner)
        self.board = board

    def saved(self, step: int, path: Path) -> None:
        self.board.saved(path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text, and in it the comparison of one process."""
    folder = tmp_path_factory.mktemp("alone")
    write(folder / "d.txt", "abcd")
    assert not run(folder, "c").failed
    return folder


def test_workers_that_are_stopped_and_then_killed_give_what_one_process_gives(alone: Path) -> None:
    assert run(alone, "side", Stopping("fnn"), workers=2).stopped
    assert not [one for one in (alone / "side").rglob("config.json") if writer_of(one.parent) is not None]
    killing = Killing("fnn")
    found = run(alone, "side", killing, workers=2)
    assert told(alone / "side") == told(alone / "c")
    assert weights(alone / "side") == weights(alone / "c")
    assert len(weights(alone / "side")) == 3
    assert [told for told in killing.lost if "killed by SIGKILL" in told]
    assert any("2 trainings side by side" in note for note in notes(found))


class Losing(Here):
    """A pool that loses the worker of some trainings so many times."""

    def __init__(self, name: Hashable, times: int) -> None:
        super().__init__()
        self.name, self.times = name, times

    def wait(self, told: Told) -> list[Ended]:
        assert self.submitted is not None
        key = self.submitted[0]
        if key != self.name or not self.times:
            return super().wait(told)
        self.times -= 1
        self.submitted = None
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
    assert all("seed 2 of 2: a worker was lost 3 times (process 5, killed" in row.failed for row in found.failed)
    assert len(found.row("rnn?lr=0.01").runs) == (1 if failed else 2)


@pytest.mark.parametrize("count", [0, -1, 5000])
def test_a_count_of_workers_that_is_none_is_refused_before_anything(count: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--workers: expected a whole number"):
        compare(["ngram"], tmp_path / "none.txt", workers=count)


def test_more_workers_than_cores_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.studies.pool.opening.n_cores", lambda: 2)
    assert SideBySide(2).note == SideBySide(None).note == SideBySide(8, "auto").note == ""
    assert SideBySide(3).note.startswith("--workers 3 is more than the 2 cores here")


def test_a_worker_of_another_version_is_refused_by_name() -> None:
    refuse_other_versions(versions())
    with pytest.raises(UsageError, match=f"{socket.gethostname()} has regard .* and the comparison began with 9.9"):
        refuse_other_versions(versions() | {"regard": "9.9"})


def test_data_that_is_another_elsewhere_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "d.txt", "abcd")
    settings = resolve({"data.path": Origin(str(tmp_path / "d.txt"), "x")})
    training = Training(settings, tmp_path / "c" / "gpt", tmp_path / "c", settings, None, "0" * 64)
    with pytest.raises(CheckpointError, match="give an --out on storage that all machines share"):
        training(lambda _: None)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "comparison.json").write_text("{}")
    with pytest.raises(DataError, match="reads other data from"):
        training(lambda _: None)
    assert os.listdir(tmp_path / "c") == ["comparison.json"]


def test_data_goes_along_where_it_is_small_and_is_read_again_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    data: Any = [1, 2, 3]
    settings = resolve({})
    training = Training(settings, Path("c/gpt"), Path("c"), settings, data, "0" * 64)
    assert pickle.loads(pickle.dumps(training)) == training
    monkeypatch.setattr("regard.studies.training.LARGEST_TAKEN", 10)
    assert pickle.loads(pickle.dumps(training)).data is None
    assert pickle.loads(pickle.dumps(replace(training, data=lambda: None))).data is None


def test_a_search_that_goes_on_counts_the_evaluations_before(tmp_path: Path) -> None:
    lines = [{"step": step, "valid_loss": 3.0, "seconds": 1.0} for step in (2, 4, 6)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    watched = Watched(Silent(), [3.0, 2.0, 1.5, 1.2])
    watched.start(Start(tmp_path, "8steps", 1, "cpu", 4, 0.5))
    assert watched.count == 2
    watched.start(Start(tmp_path, "8steps", 1, "cpu", 0, 0.0))
    assert watched.count == 0


@dataclass
class Doubles:
    """A job that doubles a number."""

    number: int

    def __call__(self, tell: Callable[[Any], None]) -> int:
        return 2 * self.number


def test_results_ahead_come_by_name_and_a_lost_worker_is_bounded() -> None:
    jobs = {number: Doubles(number) for number in range(3)}
    ahead = Ahead(Losing(1, 2), jobs)
    assert [ahead.result(number) for number in (2, 0, 1)] == [4, 0, 2]
    ahead = Ahead(Losing(1, 3), jobs)
    assert ahead.result(2) == 4
    with pytest.raises(Failed, match="a worker was lost 3 times"):
        ahead.result(1)


def test_a_model_of_the_script_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.core.registry import entry
    from regard.studies.entrant import modules_of

    assert modules_of([]) == []
    monkeypatch.setattr(entry("rnn").preset, "__module__", "__main__")
    with pytest.raises(UsageError, match="rnn is registered in the script itself"):
        modules_of([resolve({"model.name": Origin("rnn", "x")})])


@pytest.mark.parametrize(
    ("address", "kind", "words"),
    [
        ("127.0.0.1:1", ResourceError, "does not answer"),
        ("nowhere", UsageError, "expected auto"),
        ("ray://127.0.0.1:1", UsageError, "start this on one of its machines"),
    ],
)
def test_an_address_that_is_none_is_one_line(address: str, kind: type[Exception], words: str) -> None:
    pytest.importorskip("ray", reason="the package ray is not installed")
    with pytest.raises(kind, match=words), opened(SideBySide(ray=address), "cpu"):
        pass
