"""`regard compare` and `regard reproduce` as a person calls them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from calling import TEXT, call_here

from regard.errors import CheckpointError, LockedError, NumericError, UsageError
from regard.storage.lock import only_writer

SMALL = ("--size", "tiny", "--budget", "12steps", "--seeds", "1")
SHORTEST = ("--size", "tiny", "--budget", "8steps", "--seeds", "1")  # too short for a search of rates
USAGE = UsageError.exit_code


def test_a_text_of_ones_own_is_compared_and_the_winner_can_be_used(here: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    outcome = call_here("compare", "my.txt", "--models", "ngram,fnn", *SMALL)
    assert outcome.code == 0, outcome.err
    assert "rank" in outcome.out
    command = next(line.strip() for line in outcome.out.splitlines() if line.strip().startswith("regard generate"))
    used = call_here(*command.split()[1:], "--max-tokens", "5")
    assert used.code == 0, used.err
    again = call_here("compare", "my.txt", "--models", "ngram,fnn", *SMALL, "--json")
    told = json.loads(again.out)
    assert {one["model"] for one in told["ranking"]} == {"ngram", "fnn"}
    assert told["data"]["name"] == "my.txt"


def test_a_comparison_is_shown_from_its_folder_wherever_that_is(here: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    made = call_here("compare", "my.txt", "--models", "ngram,fnn?lr=0.01", *SMALL, "--out", "c", "--quiet")
    assert made.code == 0, made.err
    told = call_here("show", "c", "--quiet")
    assert told.code == 0, told.err
    assert told.out == made.out
    assert "Next:" not in made.out
    assert "Held equal" not in made.out
    assert call_here("show", "c").out.startswith(made.out)
    (here / "c").rename(here / "moved")
    assert "  regard show moved/" in call_here("show", "moved").out
    as_json = json.loads(call_here("show", "moved", "--json").out)
    assert as_json == json.loads((here / "moved" / "report.json").read_text())
    assert call_here("show", "moved", "--verify").code == USAGE


@pytest.mark.parametrize("report", ["[]", "{}", '{"rows": 5}', "{", "[" * 10_000, None, '{"protocol": {"folds": 1}}'])
def test_a_report_that_is_none_is_one_line(report: str | None, here: Path) -> None:
    (here / "c").mkdir()
    (here / "c" / "comparison.json").write_text("{}")
    if report is not None:
        (here / "c" / "report.json").write_text(report)
    outcome = call_here("show", "c")
    assert outcome.code == CheckpointError.exit_code, outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert any(words in outcome.err for words in ("compare again", "goes on", "report.json: damaged"))


def test_the_winner_goes_on_with_the_command_that_is_named(here: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    made = call_here("compare", "my.txt", "--models", "fnn?lr=0.01", *SMALL, "--out", "runs/my cmp")
    command, larger = (line.strip() for line in made.out.splitlines()[-2:])
    assert larger == "regard train --like 'runs/my cmp/fnn_lr-0.01' --size base --budget 48steps"
    assert command == "regard train --resume --out 'runs/my cmp/fnn_lr-0.01' --budget 48steps"
    outcome = call_here(*shlex.split(command)[1:], "--quiet", "--json")
    assert outcome.code == 0, outcome.err
    assert "48 steps" in call_here("show", "runs/my cmp/fnn_lr-0.01").out
    # What the comparison found is not what the run has become since.
    again = json.loads(
        call_here("compare", "my.txt", "--models", "fnn?lr=0.01", *SMALL, "--out", "runs/my cmp", "--json").out
    )
    assert again["rows"][0]["runs"][0]["step"] == 12


def test_one_training_each_claims_no_difference_anywhere(here: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    made = call_here("compare", "my.txt", "--models", "ngram,fnn?lr=0.01", *SMALL, "--out", "c")
    assert "is ahead on this text, one training each, at 12steps a model" in made.out
    told = json.loads((here / "c" / "report.json").read_text())
    assert told["verdict"] == {"winner": None, "ties": [], "p": {}, "examples": told["verdict"]["examples"]}
    for text in (made.out, *((here / "c" / f"report.{end}").read_text() for end in ("md", "html", "json"))):
        assert "one training each" in text
        for claim in ("beyond noise", "is best", "No winner", "within noise", "Beaten"):
            assert claim not in text, claim


def test_a_failed_model_is_the_exit_code_and_the_last_line_and_the_report_stands(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.studies import training as race

    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    real = race.train_run

    def fails(job: Any, *rest: Any) -> Any:
        if job.out.name != "ngram":
            raise NumericError("step 3: the loss is nan")
        return real(job, *rest)

    monkeypatch.setattr(race, "train_run", fails)
    outcome = call_here("compare", "my.txt", "--models", "ngram,fnn?lr=0.01", *SMALL, "--out", "c")
    assert outcome.code == NumericError.exit_code
    assert outcome.err.splitlines()[-1] == (
        "regard: error: 1 of 2 models failed (fnn?lr=0.01: step 3: the loss is nan); the others are in c/report.html"
    )
    assert "ngram" in (here / "c" / "report.md").read_text()
    told = json.loads((here / "c" / "report.json").read_text())
    assert told["failed"] == {"fnn?lr=0.01": "step 3: the loss is nan"}


def test_two_on_one_folder_the_second_is_told_with_its_code(here: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    for argv in (["compare", "my.txt", *SMALL], ["reproduce", "query", "--quick"], ["reproduce", "--report"]):
        with only_writer(here / "c"):
            outcome = call_here(*argv, "--out", "c")
            assert outcome.code == LockedError.exit_code, (argv, outcome.err)
            assert len(outcome.err.splitlines()) == 1
            assert [path.name for path in (here / "c").iterdir()] == [".lock"]


def test_the_table_for_a_readme(here: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    outcome = call_here("compare", "my.txt", "--models", "ngram", *SMALL, "--markdown", "--quiet")
    assert outcome.out.startswith("| rank | model |")


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["compare", "none.txt"], 3, "none.txt"),
        (["compare", "world:storeys"], USAGE, "did you mean 'stories'"),
        (["compare", "--models", "gtp"], USAGE, "did you mean 'gpt'"),
        (["compare", "--models", "bahdanau"], USAGE, "is for pairs"),
        (["compare", "--budget", "soon"], USAGE, "is not a budget"),
        (["compare", "--budget", "5 minutes"], USAGE, "did you mean 5m?"),
        (["compare", "--budget", "500"], USAGE, "did you mean 500s or 500steps?"),
        (["compare", "nothing"], 3, "the folder nothing holds no text files"),
        (["compare", "tables"], 3, "name the file itself: tables/my.tsv"),
        (["compare", "--parameters", "0"], USAGE, "--parameters"),
        (["compare", "my.txt", "--out", "my.txt"], USAGE, "is a file"),
        (["reproduce", "maks"], USAGE, "did you mean 'mask'"),
        (["reproduce", "p13"], USAGE, "the papers are p0 to p12"),
        (["reproduce", "--quick", "--device", "cuda"], USAGE, "--quick"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(argv: list[str], code: int, words: str, here: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    for folder in ("nothing", "tables"):
        (here / folder).mkdir()
    (here / "tables" / "my.tsv").write_text("text\tlabel\n", encoding="utf-8")
    outcome = call_here(*argv)
    assert outcome.code == code, outcome.err
    assert words in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert not (here / "runs").exists()


def test_a_folder_of_other_things_is_refused_and_left_as_it_was(here: Path, trained: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    (here / "mine").mkdir()
    (here / "mine" / "letter.txt").write_text("dear", encoding="utf-8")
    (here / "empty").mkdir()
    for folder in ("mine", str(trained)):
        before = sorted(path.name for path in Path(folder).iterdir())
        for more in ([], ["--force"]):
            outcome = call_here("compare", "my.txt", "--models", "ngram", *SMALL, "--out", folder, *more)
            assert outcome.code == USAGE, outcome.err
            assert "choose another --out" in outcome.err
        study = call_here("reproduce", "query", "--quick", "--out", str(trained))
        assert (study.code, "already holds a run" in study.err) == (USAGE, True)
        assert sorted(path.name for path in Path(folder).iterdir()) == before
    assert call_here("compare", "my.txt", "--models", "ngram", *SMALL, "--out", "empty").code == 0
    assert call_here("compare", "my.txt", "--models", "ngram", *SMALL, "--out", "empty").code == 0
    assert call_here("reproduce", "query", "--quick", "--out", "empty").code == USAGE
    assert "removes" in call_here("compare", "--help").out


def test_too_little_text_is_told(here: Path) -> None:
    (here / "my.txt").write_text("a b c", encoding="utf-8")
    outcome = call_here("compare", "my.txt", *SMALL)
    assert outcome.code == 3
    assert "too few" in outcome.err


def test_the_claims_are_listed_and_their_page_is_written(here: Path) -> None:
    listed = call_here("reproduce", "--list")
    assert "mask" in listed.out
    told = json.loads(call_here("reproduce", "--list", "--json").out)
    assert {"study", "claim", "source", "rule"} <= told["studies"][0].keys()
    outcome = call_here("reproduce", "--report")
    assert outcome.code == 0, outcome.err
    assert "Nothing has been run yet" in (here / "runs" / "reproduce" / "report.html").read_text()


@pytest.mark.parametrize("page", ["compare.md", "reproduce.md"])
def test_the_commands_of_the_page_work(page: str, here: Path, trained: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    lines = [f"it is {word} {n}\t{word}\n" for n in range(40) for word in ("good", "bad")]
    (here / "my.tsv").write_text("".join(["text\tlabel\n", *lines]), encoding="utf-8")
    shutil.copytree(trained, here / "runs" / "minilm")
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("regard ")]
    assert lines
    for line in lines:
        argv = shlex.split(line)[1:]
        if argv[0] == "compare":
            smaller = {"world:reviews": "world:reviews?train=30&valid=20", "lstm,gpt": "fnn", "my.csv": "my.tsv"}
            smaller |= {"linear,lstm,runs/minilm,runs/gpt2?lora=8": "linear,runs/minilm?lora=8"}
            argv = [smaller.get(word, word) for word in argv]
            models = [] if "--models" in argv else ["--models", "fnn?lr=0.01,lstm?lr=0.01"]
            argv = [*argv, *models, *SHORTEST, "--force"]
        elif argv[0] == "train":
            argv = [{"30m": "14steps", "base": "tiny"}.get(word, word) for word in argv]
        elif "--list" not in argv and "--report" not in argv:
            argv = [*argv, "--list"]
        outcome = call_here(*argv)
        assert outcome.code == 0, (argv, outcome.err)


@pytest.mark.parametrize("verb", ["compare", "reproduce"])
def test_no_workers_at_all_is_one_line(verb: str, here: Path) -> None:
    outcome = call_here(verb, "--workers", "0")
    assert outcome.code == USAGE
    assert outcome.err.splitlines() == ["regard: error: --workers: expected a whole number from 1 to 1,024, found 0"]
