"""A comparison meets a folder in use, data that changed, a signal, a model that breaks: what it leaves and says."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.errors import CheckpointError, DataError, LockedError, ResourceError, Stopped, UsageError
from regard.storage.lock import only_writer
from regard.studies import ledger, readings, summary
from regard.studies import report as reporting
from regard.studies import training as racing
from regard.studies.board import LineBoard
from regard.studies.compare import compare
from regard.studies.comparison import KEPT, Comparison, from_report, read_report
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


def test_one_from_before_there_was_a_refit_goes_on_and_trains_nothing_again(tmp_path: Path) -> None:
    data = tmp_path / "d.tsv"
    data.write_text("text\tlabel\n" + "".join(f"{'fine' if i % 2 else 'dull'} film {i}\t{i % 2}\n" for i in range(90)))
    given: dict[str, Any] = {"budget": "6steps", "seeds": 1, "out": tmp_path / "c", "board": LineBoard(None)}
    compare(["majority", "naive_bayes"], data, **given)
    file = tmp_path / "c" / KEPT
    told = json.loads(file.read_text())
    assert told["settings"].pop("train.refit") is False
    file.write_text(json.dumps(told))
    before = (tmp_path / "c" / ledger.STATE).read_bytes()
    compare(["majority", "naive_bayes"], data, **given)
    assert (tmp_path / "c" / ledger.STATE).read_bytes() == before
    with pytest.raises(UsageError, match=r"train\.refit False there and True here"):
        compare(["majority", "naive_bayes"], data, **given, refit=True)


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
    monkeypatch.setattr(readings, "load_dataset", sends(number, readings.load_dataset))
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


@pytest.mark.parametrize(
    ("what", "words"), [("_step", "before its first evaluation"), ("_end", "at a held-out loss of")]
)
def test_a_model_that_was_stopped_is_not_tested(
    what: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "d.txt", "ab")
    monkeypatch.setattr(loop, what, sends(signal.SIGINT, getattr(loop, what)))
    tested: list[object] = []
    monkeypatch.setattr(racing, "measured", lambda run, **_: tested.append(run) or {})
    found = run(tmp_path, FNN)
    assert found.stopped
    assert not tested
    assert not found.row(FNN).runs
    assert any(note.startswith(f"{FNN} was stopped {words}") for note in summary.notes(found))


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


def test_a_model_that_is_not_named_again_is_said_to_be_left_out(tmp_path: Path) -> None:
    write(tmp_path / "d.txt", "ab")
    assert not run(tmp_path, "ngram", FNN).left_out
    for _ in range(2):
        fewer = run(tmp_path, "ngram")
        assert any(f"Left out, as not named this time: {FNN}." in note for note in summary.notes(fewer))
        assert summary.notes(from_report(read_report(fewer.out), fewer.out)) == summary.notes(fewer)
    whole = run(tmp_path, "ngram", FNN)
    assert not whole.left_out
    assert len(whole.order) == 2
    assert not run(tmp_path, "ngram", force=True).left_out


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


DIGESTS = ("../../mine", "x", "0123456789abcdeg", "", "0123456789abcdef\n", 5, None)


@pytest.mark.parametrize("digest", DIGESTS)
def test_no_word_of_a_state_file_leads_out_of_the_folder(tmp_path: Path, digest: Any) -> None:
    data = write(tmp_path / "d.txt", "ab")
    run(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("dear")
    (tmp_path / "c" / "earlier" / "ngram-..").mkdir(parents=True)
    state = json.loads((tmp_path / "c" / "state.json").read_text())
    state["ngram"]["digest"] = digest
    (tmp_path / "c" / "state.json").write_text(json.dumps(state))
    write(data, "abcdefgh")
    with pytest.raises(CheckpointError, match=r"state\.json: ngram"):
        run(tmp_path)
    assert (mine / "letter.txt").read_text() == "dear"
    assert sorted(os.listdir(tmp_path)) == ["c", "d.txt", "mine"]


def test_a_finished_run_that_was_set_aside_comes_back_untouched_with_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path / "d.txt", "ab")
    first = run(tmp_path, FNN)
    before = contents(tmp_path / "c" / "fnn_lr-0.01")
    write(data, "abcdefgh")
    second = run(tmp_path, FNN)
    monkeypatch.setattr(racing, "train_run", lambda *_: pytest.fail("trained again"))
    write(data, "ab")
    assert run(tmp_path, FNN).order == first.order
    assert contents(tmp_path / "c" / "fnn_lr-0.01") == before
    write(data, "abcdefgh")
    assert run(tmp_path, FNN).order == second.order


def test_setting_a_run_aside_destroys_none_that_was_set_aside_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path / "d.txt", "ab")
    run(tmp_path, FNN)
    finished = contents(tmp_path / "c" / "fnn_lr-0.01")
    write(data, "abcdefgh")
    run(tmp_path, FNN)
    # The state knows nothing of what was set aside, as after a kill at the wrong moment: A is begun again, and cut off.
    state = json.loads((tmp_path / "c" / "state.json").read_text())
    (tmp_path / "c" / "state.json").write_text(json.dumps({FNN: state[FNN]}))
    write(data, "ab")
    monkeypatch.setattr(loop, "_step", sends(signal.SIGTERM, loop._step))
    assert run(tmp_path, FNN).stopped
    monkeypatch.undo()
    write(data, "abcdefgh")
    run(tmp_path, FNN)
    aside = sorted((tmp_path / "c" / "earlier").iterdir())
    assert len(aside) == 2
    assert finished in [contents(path) for path in aside]


@pytest.mark.parametrize("moment", range(6))
def test_a_kill_at_any_moment_of_setting_aside_and_bringing_back_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    class Killed(BaseException):
        pass

    data = write(tmp_path / "d.txt", "ab")
    first = run(tmp_path)
    write(data, "abcdefgh")
    second = run(tmp_path)
    left = [moment]

    def kills(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any) -> Any:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return real(*given)

        return wrapped

    write(data, "ab")
    monkeypatch.setattr(ledger.disk, "publish", kills(ledger.disk.publish))
    monkeypatch.setattr(ledger.disk, "rename", kills(ledger.disk.rename))
    with contextlib.suppress(Killed):
        run(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(racing, "train_run", lambda *_: pytest.fail("trained again"))
    assert run(tmp_path).order == first.order
    write(data, "abcdefgh")
    assert run(tmp_path).order == second.order


@pytest.mark.parametrize("name", ["ngram", "rates", "earlier"])
def test_a_link_in_the_place_of_a_folder_of_the_comparison_is_refused(tmp_path: Path, name: str) -> None:
    data, mine = write(tmp_path / "d.txt", "ab"), tmp_path / "mine"
    mine.mkdir()
    enough = {"budget": "24steps"}  # for rates to be tried
    run(tmp_path, **enough)
    if name == "ngram":
        (tmp_path / "c" / "ngram").rename(tmp_path / "elsewhere")
        (tmp_path / "c" / "state.json").unlink()
    (tmp_path / "c" / name).symlink_to(mine)
    write(data, "abcdefgh")
    found = run(tmp_path, "fnn" if name == "rates" else "ngram", **enough)
    assert [row.code for row in found.failed] == [4]
    assert f"{name}: is a link" in found.failed[0].failed
    assert os.listdir(mine) == []


def test_force_takes_away_a_comparison_and_nothing_that_it_did_not_make(tmp_path: Path) -> None:
    write(tmp_path / "d.txt", "ab")
    run(tmp_path)
    folder = tmp_path / "c"
    (folder / "notes.txt").write_text("mine")
    (folder / "work").mkdir()
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps(state | {"work": state["ngram"], "notes.txt": state["ngram"]}))
    (folder / "ngram" / "config.json").write_text("{}")
    assert not run(tmp_path, force=True).failed
    assert {"notes.txt", "work", "ngram"} <= set(os.listdir(folder))
    assert not (folder / "earlier").exists()


@pytest.mark.parametrize("force", [True, False])
def test_a_folder_of_other_things_is_no_place_for_a_comparison(tmp_path: Path, force: bool) -> None:
    write(tmp_path / "d.txt", "ab")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "state.json").write_text("{}")
    (folder / "thesis.tex").write_text("years")
    before = contents(folder)
    with pytest.raises(UsageError, match="not empty and not a comparison"):
        run(tmp_path, out=folder, force=force)
    (folder / "comparison.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"comparison\.json: not what a comparison keeps"):
        run(tmp_path, out=folder, force=force)
    assert before.items() <= contents(folder).items()


def test_a_model_that_does_not_fit_the_settings_is_told_before_any_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "d.txt", "ab")
    monkeypatch.setattr(racing, "train_run", lambda *_: pytest.fail("trained"))
    short = "gpt?position=learned&max_length=64"
    told = rf"^{re.escape(short)} cannot .* 65 is above the 64 positions .* set train\.length=64"
    with pytest.raises(UsageError, match=told):
        run(tmp_path, "ngram", "lstm", short, length=65)
    assert not (tmp_path / "c").exists()


def test_a_target_that_is_too_long_for_a_model_is_told_before_any_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"a b {i}\t{'c ' * 70}{i}\n" for i in range(40)]
    (tmp_path / "p.tsv").write_text("".join(rows))
    monkeypatch.setattr(racing, "train_run", lambda *_: pytest.fail("trained"))
    short = "transformer?position=learned&max_length=16"
    with pytest.raises((UsageError, DataError), match=f"^{re.escape(short)} cannot be trained so: .* positions"):
        run(tmp_path, "seq2seq", short, data=tmp_path / "p.tsv", task="pairs")


OUTCOMES: dict[str, Any] = {
    "score": "x",
    "fold": [None],
    "curve": [{"step": 1}],
    "scores": [],
    "slices": {"a": 3},
    "speed": None,
    "step": 10**400,
    "samples": [1],
    "scored": [[["a"]]],
    "sample": 7,
    "seconds": [],
}


@pytest.mark.parametrize("key", [*OUTCOMES, "", "all"])
def test_an_outcome_that_is_malformed_is_refused_by_file_and_key(tmp_path: Path, key: str) -> None:
    write(tmp_path / "d.txt", "ab")
    run(tmp_path)
    state = json.loads((tmp_path / "c" / "state.json").read_text())
    if key in OUTCOMES:
        state["ngram"]["outcome"][key] = OUTCOMES[key]
    else:
        state["ngram"]["outcome"] = {} if key == "all" else {"path": ""}
    (tmp_path / "c" / "state.json").write_text(json.dumps(state))
    with pytest.raises(CheckpointError, match=rf"state\.json: outcome\.{key if key in OUTCOMES else ''}"):
        run(tmp_path)
