"""A comparison meets a folder in use, data that changed, a signal, a model that breaks: what it leaves and says."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.errors import CheckpointError, LockedError, ResourceError, Stopped, UsageError
from regard.storage.lock import only_writer
from regard.studies import compare as comparing
from regard.studies import race as racing
from regard.studies import report as reporting
from regard.studies.board import LineBoard
from regard.studies.compare import compare
from regard.studies.comparison import KEPT, Comparison
from regard.training import loop

FNN = "fnn?lr=0.01"  # a rate of its own: none is searched, and one training is all
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def write(path: Path, letters: str, seed: int = 0) -> Path:
    draw = random.Random(seed)
    path.write_text("".join(draw.choice(letters) + (" " if i % 7 == 0 else "") for i in range(2000)))
    return path


def run(folder: Path, *models: str, **settings: Any) -> Comparison:
    given = {"budget": "8steps", "seeds": 1, "size": "tiny", "board": LineBoard(None), "out": folder / "c"}
    data = settings.pop("data", folder / "d.txt")
    return compare(list(models) or ["ngram"], data, **given | {"length": 16, "batch_size": 4} | settings)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_a_changed_file_gives_its_own_result_and_nothing_is_lost(tmp_path: Path) -> None:
    data = write(tmp_path / "d.txt", "ab")
    before = run(tmp_path)
    write(data, "abcdefgh")
    after, fresh = run(tmp_path), run(tmp_path, out=tmp_path / "fresh")
    assert not after.failed
    assert after.order[0].mean == fresh.order[0].mean
    assert after.order[0].mean > before.order[0].mean + 0.3
    assert [path.name.rpartition("-")[0] for path in (tmp_path / "c" / "earlier").iterdir()] == ["ngram"]


def test_a_training_that_was_cut_off_does_not_go_on_with_other_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path / "d.txt", "ab")
    monkeypatch.setattr(loop, "_step", sends(signal.SIGTERM, loop._step))
    cut = run(tmp_path, FNN)
    assert cut.stopped
    monkeypatch.undo()
    write(data, "abcdefgh")
    found = run(tmp_path, FNN)
    assert not found.failed
    assert found.row(FNN).runs[0]["step"] == 8
    # More letters are more parameters: the common size was not that of the data before.
    assert found.row(FNN).parameters > cut.row(FNN).parameters


def test_a_count_that_was_never_measured_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "d.txt", "ab")
    monkeypatch.setattr(racing, "measured", sends(signal.SIGINT, racing.measured))
    assert run(tmp_path).stopped
    monkeypatch.undo()
    found = run(tmp_path)
    assert not found.failed
    assert len(found.order) == 1


def test_the_second_on_one_folder_is_told_and_touches_nothing(tmp_path: Path) -> None:
    write(tmp_path / "d.txt", "ab")
    run(tmp_path)
    before = contents(tmp_path / "c")
    with only_writer(tmp_path / "c"):
        held = contents(tmp_path / "c")
        for force in (False, True):
            with pytest.raises(LockedError, match=f"in use by process {os.getpid()}"):
                run(tmp_path, force=force)
        assert contents(tmp_path / "c") == held
    assert held.keys() == before.keys()
    assert not run(tmp_path, force=True).failed


def test_the_lock_is_held_until_the_report_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "d.txt", "ab")
    tried = []

    def second(comparison: Comparison) -> None:
        with pytest.raises(LockedError):
            run(tmp_path)
        tried.append(comparison.out)

    monkeypatch.setattr(reporting, "write_reports", second)
    run(tmp_path)
    assert tried == [tmp_path / "c"]


def sends(number: int, real: Callable[..., Any], times: int = 1) -> Callable[..., Any]:
    """What `real` does, and before it, once, a signal to this process."""
    sent: list[int] = []

    def wrapped(*given: Any, **named: Any) -> Any:
        if not sent:
            sent.append(number)
            for _ in range(times):
                os.kill(os.getpid(), number)
        return real(*given, **named)

    return wrapped


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_the_data_is_read_leaves_nothing(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "d.txt", "ab")
    monkeypatch.setattr(comparing, "load_dataset", sends(number, comparing.load_dataset))
    with pytest.raises(Stopped, match="same command"):
        run(tmp_path)
    assert not (tmp_path / "c").exists()
    monkeypatch.undo()
    assert not run(tmp_path).stopped


@pytest.mark.parametrize(
    ("where", "what", "model", "number"),
    [
        (loop, "_step", "fnn", signal.SIGHUP),  # in the search for a rate
        (loop, "_step", FNN, signal.SIGTERM),
        (racing, "train_run", "ngram", signal.SIGHUP),
        (racing, "measured", "ngram", signal.SIGTERM),
        (reporting, "write_reports", "ngram", signal.SIGINT),
        (reporting, "write_reports", "ngram", signal.SIGHUP),
    ],
)
def test_a_signal_in_any_phase_reports_what_is_there_and_the_same_command_goes_on(
    where: Any, what: str, model: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "d.txt", "ab")
    usual = signal.getsignal(number)
    monkeypatch.setattr(where, what, sends(number, getattr(where, what)))
    found = run(tmp_path, model)
    assert found.stopped
    assert not found.failed
    assert (tmp_path / "c" / "report.html").exists()
    assert signal.getsignal(number) == usual
    monkeypatch.undo()
    whole = run(tmp_path, model)
    assert not whole.stopped
    assert not whole.failed
    assert len(whole.order) == 1


@pytest.mark.parametrize("number", SIGNALS)
def test_the_second_signal_ends_at_once(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(BaseException):
        pass

    def end(*_: object) -> None:
        raise Ended

    write(tmp_path / "d.txt", "ab")
    before = signal.signal(number, end)
    try:
        monkeypatch.setattr(loop, "_step", sends(number, loop._step, times=2))
        with pytest.raises(Ended):
            run(tmp_path, FNN)
    finally:
        signal.signal(number, before)
    monkeypatch.undo()
    assert not run(tmp_path, FNN).failed


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ResourceError("out of memory"), 6, "out of memory"),
        (MemoryError(), 6, "out of memory"),
        (KeyError("weights"), 1, "KeyError: 'weights'"),
    ],
)
def test_a_model_that_breaks_in_any_way_is_a_row_with_its_code(
    error: Exception, code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "d.txt", "ab")
    real = racing.train_run

    def fails(job: Any, *rest: Any) -> Any:
        if job.out.name != "ngram":
            raise error
        return real(job, *rest)

    monkeypatch.setattr(racing, "train_run", fails)
    found = run(tmp_path, "ngram", FNN)
    assert [(row.label, row.failed, row.code) for row in found.failed] == [(FNN, words, code)]
    assert [one.label for one in found.order] == ["ngram"]
    assert words in (tmp_path / "c" / "report.md").read_text()


def test_what_is_damaged_or_no_folder_is_told(tmp_path: Path) -> None:
    write(tmp_path / "d.txt", "ab")
    run(tmp_path)
    (tmp_path / "c" / "state.json").write_text('{"ngram": {"digest": 5}}')
    with pytest.raises(CheckpointError, match=r"state\.json"):
        run(tmp_path)
    assert not run(tmp_path, force=True).failed
    with pytest.raises(UsageError, match="is a file"):
        run(tmp_path, out=tmp_path / "d.txt" / "c")
    assert (tmp_path / "c" / KEPT).exists()
