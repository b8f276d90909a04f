"""What a fit has noted stands wherever its numbers do: beside its run, and in a comparison."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import regard
from regard.cli.main import main
from regard.models.linear_half import LinearHalf
from regard.studies.board import LineBoard
from regard.studies.compare import compare
from regard.studies.notes import of_fits
from regard.studies.row import Row
from regard.studies.summary import commands

UNSOLVED = "the solver did not converge"
CHOICE = {"DT": ("the", "a"), "NN": ("dog", "cat", "run"), "VB": ("sees", "runs", "run")}


def sentences(path: Path) -> Path:
    chance = random.Random(0)
    lines = [
        [*(f"{chance.choice(words)} {tag}" for tag, words in CHOICE.items()), f"day{number} NN"]
        for number in range(120)
    ]
    path.write_text("".join("\n".join(one) + "\n\n" for one in lines), encoding="utf-8")
    return path


def test_a_solver_that_did_not_converge_is_told_of_its_model_in_the_report_and_of_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["most_frequent", "crf?max_steps=3"]
    found = compare(names, sentences(tmp_path / "t.conll"), out=tmp_path / "c", board=LineBoard(None))
    assert of_fits(found.row("most_frequent")) == []
    (told,) = of_fits(found.row("crf?max_steps=3"))
    assert told.startswith(f"crf?max_steps=3: {UNSOLVED}: in the last of 3 steps")
    assert told in json.loads((tmp_path / "c" / "report.json").read_text())["notes"]
    assert all(UNSOLVED in (tmp_path / "c" / f"report.{ending}").read_text() for ending in ("html", "md"))
    for folder in (tmp_path / "c", Path(found.row("crf?max_steps=3").runs[0]["path"])):
        assert main(["show", str(folder)]) == 0
        assert UNSOLVED in capsys.readouterr().out


def test_a_note_is_told_once_with_the_trainings_that_it_is_of() -> None:
    runs = [{"notes": ["all", "some"]}, {"notes": ["all"]}, {}]
    assert of_fits(Row("a", "linear", 0, runs=runs[:2])) == ["a: all.", "a: some (in 1 of 2 trainings)."]
    assert of_fits(Row("a", "linear", 0, runs=runs[2:])) == []


def test_what_was_noted_before_the_first_step_is_kept_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve = LinearHalf.solve

    def noted(*given: object) -> None:
        solve(*given)  # pyright: ignore[reportArgumentType]
        given[-1].note("the linear half did not converge")  # pyright: ignore[reportAttributeAccessIssue]

    monkeypatch.setattr(LinearHalf, "solve", noted)
    out = tmp_path / "run"
    regard.train("classifier", "world:reviews?train=20&valid=8", budget="2steps", size="tiny", out=out, quiet=True)
    assert regard.load(out).config["begun"] == {"notes": ["the linear half did not converge"]}


def test_what_to_do_next_with_a_series_is_told_once_and_can_be_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, run = "world:electricity?train=60&valid=20", str(tmp_path / "naive")
    assert main(["train", data, "--model", "naive", "--out", run]) == 0
    following = [line.strip() for line in capsys.readouterr().out.partition("Next:")[2].split("\n") if line.strip()]
    assert following.count(f"regard explain {run}") == 1
    assert len(set(following)) == len(following) == 3
    found = compare(["naive"], data, out=tmp_path / "c", board=LineBoard(None))
    told = next(line.strip() for line in commands(found) if "explain" in line or "generate" in line)
    assert main(told.split()[1:]) == 0
