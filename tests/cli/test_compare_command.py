"""`regard compare` and `regard reproduce` as a person calls them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from calling import TEXT, call_here

from regard.errors import UsageError

SMALL = ("--size", "tiny", "--budget", "12steps", "--seeds", "1")
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
        (["compare", "--parameters", "0"], USAGE, "--parameters"),
        (["compare", "my.txt", "--out", "my.txt"], USAGE, "is a file"),
        (["reproduce", "maks"], USAGE, "did you mean 'mask'"),
        (["reproduce", "--quick", "--device", "cuda"], USAGE, "--quick"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(argv: list[str], code: int, words: str, here: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    outcome = call_here(*argv)
    assert outcome.code == code, outcome.err
    assert words in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert not (here / "runs").exists()


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
def test_the_commands_of_the_page_work(page: str, here: Path) -> None:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("regard ")]
    assert lines
    for line in lines:
        argv = shlex.split(line)[1:]
        if argv[0] == "compare":
            argv = ["world:reviews?train=30&valid=20" if word == "world:reviews" else word for word in argv]
            models = [] if "--models" in argv else ["--models", "fnn,lstm"]
            argv = [*argv, *models, *SMALL, "--force"]
        elif "--list" not in argv and "--report" not in argv:
            argv = [*argv, "--list"]
        outcome = call_here(*argv)
        assert outcome.code == 0, (argv, outcome.err)
