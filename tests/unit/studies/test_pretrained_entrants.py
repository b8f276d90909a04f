"""Runs as entrants of a comparison: marked as pretrained, ranked by the byte, resumed, and refused once they change."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import RegardError
from regard.studies.board import LineBoard
from regard.studies.compare import compare
from regard.studies.comparison import Comparison, from_report, read_report
from regard.studies.summary import finding

STORIES = "world:stories?train=40&valid=9"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for name in ("gpt", "bert"):
        regard.train(
            name, STORIES, budget="1steps", out=folder / name, size="tiny", length=24, device="cpu", quiet=True
        )
    regard.train("ngram", STORIES, out=folder / "counted", quiet=True)
    draw = random.Random(0)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "the", "dog", "ran", "home"]
    lines = [" ".join(draw.choices(words, k=9)) for _ in range(150)]
    (folder / "d.txt").write_text("\n".join(lines))
    rows = [f"{line}\t{'good' if n % 2 else 'bad'}" for n, line in enumerate(lines)]
    (folder / "d.tsv").write_text("text\tlabel\n" + "\n".join(rows))
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*models: str, data: str = "runs/d.txt", **settings: Any) -> Comparison:
    given = {"budget": "4steps", "seeds": 1, "size": "tiny", "board": LineBoard(None), "out": "c"}
    return compare(list(models), data, **given | {"length": 16, "batch_size": 4} | settings)


def test_a_run_is_an_entrant_that_is_marked_and_goes_on(here: Path) -> None:
    models = ("ngram", "runs/gpt?lr=0.01", "runs/gpt?lora=2&lr=0.01")
    found = run(*models)
    assert not found.failed
    assert found.protocol.metric == "bits_per_byte"  # other tokens than those of the text
    assert [row.pretrained for row in found.rows] == ["", "runs/gpt", "runs/gpt"]
    told = json.loads((here / "c" / "report.json").read_text())
    assert [row["pretrained"] for row in told["rows"]] == ["", "runs/gpt", "runs/gpt"]
    said = next(note for note in told["notes"] if note.startswith("Pretrained"))
    assert "is not counted in its budget, and may hold the text of the test" in said
    for file in ("report.md", "report.html"):
        text = (here / "c" / file).read_text()
        assert "runs/gpt?lora=2&amp;lr=0.01 (pretrained)" in text.replace("2&lr", "2&amp;lr"), file
        assert "Pretrained: " in text
    weights = [regard.load(run["path"], device="cpu").config["train"]["start"] for run in found.rows[1].runs]
    assert weights == ["runs/gpt"]
    # What is finished is not made again, and its report is read as it was written.
    files = {file: file.stat().st_mtime_ns for file in (here / "c").rglob("model.safetensors")}
    again = run(*models)
    assert {file: file.stat().st_mtime_ns for file in files} == files
    assert [one.mean for one in again.order] == [one.mean for one in found.order]
    assert from_report(read_report(here / "c"), here / "c").rows[2].pretrained == "runs/gpt"
    like: Any = regard.train(like=found.rows[2].runs[0]["path"], budget="1steps", out="like", quiet=True)
    assert (like.config["train"]["start"], like.config["model"]["settings"]["lora"]) == ("runs/gpt", 2)


def test_what_a_tokenizer_does_not_know_is_not_free(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its words are none of the text's: `<unk>` after `<unk>` is easily told, and says nothing."""
    draw = random.Random(1)
    lines = [" ".join("".join(draw.choices("bdfghk", k=7)) for _ in range(6)) for _ in range(60)]
    (here / "strange.txt").write_text("\n".join(lines))
    found = run("ngram", "runs/gpt?lr=0.01", data="strange.txt", budget="40steps")
    assert not found.failed
    ngram, gpt = (next(one.mean for one in found.order if one.label.startswith(name)) for name in ("ngram", "runs/gpt"))
    assert ngram < 4 < 7 < gpt
    told = json.loads((here / "c" / "report.json").read_text())
    unequal = next(one for one in told["notes"] if one.startswith("Not equal"))
    assert re.search(r"runs/gpt\?lr=0\.01 does not know 9\d\.\d% of its test tokens", unequal)
    assert "held-out loss" not in finding(found)  # by other tokens, which are not compared
    regard.train(None, "strange.txt", start="runs/gpt", budget="1steps", out="on", length=8, batch_size=2)
    assert re.search(r"9\d\.\d% of the training tokens are unknown", capsys.readouterr().err)


def test_labels_are_told_over_the_encoders_of_runs_beside_models_from_scratch(here: Path) -> None:
    found = run("majority", "dan?lr=0.01", "runs/bert?lr=0.01", data="runs/d.tsv")
    assert not found.failed
    assert found.protocol.metric == "accuracy"
    assert [bool(row.pretrained) for row in found.rows] == [False, False, True]
    assert found.rows[2].parameters > 2000


def test_a_run_that_has_changed_since_is_refused(here: Path) -> None:
    run("runs/gpt?lr=0.01")
    kept = {file: file.read_bytes() for file in (here / "c").rglob("*") if file.is_file()}
    shutil.rmtree(here / "runs" / "gpt")
    regard.train("gpt", STORIES, budget="2steps", out="runs/gpt", size="tiny", length=24, device="cpu", quiet=True)
    with pytest.raises(RegardError, match="--models runs/gpt: the run has changed since c began; name another --out"):
        run("runs/gpt?lr=0.01")
    assert {file: file.read_bytes() for file in kept} == kept


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("runs/gtp", "runs/gtp: no such run folder, did you mean runs/gpt"),
        ("runs/bert", "is a run of the task masked, and the data is of the task text"),
        ("runs/counted", "ngram is fitted at once and has nothing to go on with"),
        ("runs/gpt?lora=99", "expected a rank from 1 to 15"),
        ("runs/gpt?n_layers=3", "model.n_layers: the model is that of runs/gpt"),
        ("runs/gpt?freeze=bed", "names no part of the model"),
        ("lstm?lora=2", "lora: changes what was learnt before"),
    ],
)
def test_what_cannot_be_an_entrant_is_told_in_a_line(here: Path, models: str, message: str) -> None:
    with pytest.raises(RegardError, match=message) as caught:
        run(models)
    assert "\n" not in str(caught.value)
