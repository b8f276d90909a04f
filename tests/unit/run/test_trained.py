"""What a run tells of itself: its metrics, its curve, its look in a notebook, and a copy of its folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.data.records import Records
from regard.errors import CheckpointError, RegardError, UsageError
from regard.storage import disk
from regard.tasks.verbs import Report
from regard.training import run_folder

ROWS = [(f"a {word} film, part {n}", label) for n in range(20) for word, label in (("fine", "good"), ("dull", "bad"))]
TEXTS = [text for text, _ in ROWS]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> regard.Run:
    out = tmp_path_factory.mktemp("trained") / "r"
    return regard.train("dan", ROWS, out=out, size="tiny", budget="4steps", batch_size=4, device="cpu", quiet=True)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> regard.Run:
    return regard.train("ngram", TEXTS, out=tmp_path_factory.mktemp("counted") / "r", quiet=True)


def test_metrics_are_records_and_a_frame(run: regard.Run, monkeypatch: pytest.MonkeyPatch):
    found = run.metrics
    assert [row["step"] for row in found if "loss" in row] == [1, 2, 3, 4]
    assert max(found.column("valid_accuracy")) == pytest.approx(run.evaluate().scores["accuracy"])
    frame = found.to_frame()
    assert list(frame.columns) == found.columns
    assert frame["loss"].dropna().tolist() == found.column("loss")
    assert repr(found).startswith(f"Records({len(found)} rows: step, ")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"needs pandas, which is not installed; pip install 'regard\[tables\]'"):
        found.to_frame()


def test_a_curve_is_shown_in_a_notebook_and_saved_whole(run: regard.Run, tmp_path: Path):
    curve = run.plot()
    assert curve.to_svg().count("<polyline") >= 2, "training and what was held out"
    assert "held out" in curve._repr_html_()
    curve.save(tmp_path / "a.svg")
    run.plot("accuracy").save(tmp_path / "a.png")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == curve.to_svg()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match=r"saved as one of \.svg, \.png"):
        curve.save(tmp_path / "a.gif")
    with pytest.raises(UsageError, match="there is no folder"):
        curve.save(tmp_path / "no" / "a.svg")
    with pytest.raises(UsageError, match=r"no curve to draw, .*; it measured accuracy, loss"):
        run.plot("bleu")


def test_a_model_that_is_fitted_at_once_has_no_curve(counted: regard.Run):
    with pytest.raises(UsageError, match="no curve to draw, for nothing was measured at two steps"):
        counted.plot()


def test_reprs_are_short_and_what_a_notebook_shows_is_escaped(run: regard.Run, counted: regard.Run):
    report, scored = run.evaluate(), counted.score("a <b> film")
    for one in (run, report, scored, run.metrics):
        assert len(repr(one)) < 300
        assert "\n" not in repr(one)
    assert repr(report).startswith("Report(accuracy=")
    assert repr(scored).startswith("ScoredText('a <b> film': log p -")
    for text, told in (
        (run._repr_html_(), ("labelled, N-1", "classifier tiny", "memory:data", "held-out accuracy")),
        (report._repr_html_(), ("accuracy", "by class", "good")),
        (scored._repr_html_(), ("&lt;", "perplexity", "p so far")),
    ):
        assert "<script" not in text
        assert "<b>" not in text
        assert all(words in text for words in told)


def test_words_of_a_report_are_escaped_and_its_change_is_told():
    report = Report({"a<b": 0.5}, {"by_class": [{"class": "<i>", "f1": 1.0}]}).since(Report({"a<b": 0.75}))
    text = report._repr_html_()
    assert "a&lt;b" in text
    assert "&lt;i&gt;" in text
    assert "-0.25" in text
    assert "<i>" not in Records([{"<i>": "<i>"}])._repr_html_()


def test_long_records_show_both_ends():
    text = Records([{"step": step} for step in range(500)])._repr_html_()
    assert "499" in text
    assert "250" not in text
    assert text.count("<tr>") == 1 + 21


def test_a_run_is_moved_and_stays_itself(run: regard.Run):
    assert run.to("cpu") is run
    assert str(run.device) == "cpu"
    with pytest.raises(UsageError, match="'gpu' is no device"):
        run.to("gpu")


def test_a_saved_run_is_a_copy_that_verifies_and_goes_on(run: regard.Run, tmp_path: Path):
    target = run.save(tmp_path / "deep" / "copy")
    assert target == tmp_path / "deep" / "copy"
    assert set(run_folder.verify_run(target).values()) == {"ok"}
    assert not (target / ".lock").exists()
    assert disk.names(target.parent) == ["copy"], "nothing unfinished is left beside it"
    copy = regard.load(target)
    assert (copy.predict(TEXTS), copy.metrics) == (run.predict(TEXTS), run.metrics)
    again = regard.train(data=ROWS, out=target, resume=True, budget="5steps", quiet=True)
    assert again.metrics[-1]["step"] == 5
    assert run.metrics[-1]["step"] == 4


def test_a_place_that_is_taken_is_left_as_it_is(run: regard.Run, tmp_path: Path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for place in ("taken", "file"):
        with pytest.raises(UsageError, match="is there already; save the run under another name"):
            run.save(tmp_path / place)
    with pytest.raises(UsageError, match="is a file, not a folder"):
        run.save(tmp_path / "file" / "below")
    with pytest.raises(UsageError, match="lies within the run itself"):
        run.save(run.path / "checkpoints" / "copy")
    assert (os.listdir(tmp_path / "taken"), (tmp_path / "file").read_text(encoding="utf-8")) == ([], "mine")


def test_a_damaged_run_is_not_saved(run: regard.Run, tmp_path: Path):
    source = regard.load(run.save(tmp_path / "source"))
    weights = source.path / run_folder.WEIGHTS
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: is not what the manifest says; nothing was saved"):
        source.save(tmp_path / "target")
    assert disk.names(tmp_path) == ["source"]


@pytest.mark.parametrize("operation", ["create", "write", "sync", "rename"])
def test_a_disk_that_fails_leaves_nothing(
    run: regard.Run, tmp_path: Path, operation: str, monkeypatch: pytest.MonkeyPatch
):
    def failing(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, operation, failing)
    with pytest.raises(RegardError, match=r"cannot save the run: No space left on device; free some space") as caught:
        run.save(tmp_path / "copy")
    assert "\n" not in str(caught.value)
    assert disk.names(tmp_path) == []
