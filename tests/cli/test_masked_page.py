"""The commands and the lines of Python of docs/masked.md do what it says, on smaller models and for fewer steps."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from calling import TEXT, TINY, call_here

import regard

PAGE = Path(__file__).parents[2] / "docs" / "masked.md"
REVIEWS = "text\tlabel\n" + "".join(
    f"the {thing} is {word}\t{label}\n"
    for thing in ("cat", "dog", "bird", "fox", "hen", "mat", "log")
    for word, label in (("new", "good"), ("old", "bad"), ("sad", "bad"))
)
SENTENCES = "".join(
    f"the DET\n{animal} NOUN\n{verb} VERB\n\n" for animal in ("cat", "dog", "fox", "hen") for verb in ("sat", "sang")
)


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for kind, block in found if kind == language]


def test_every_command_of_the_page_works_in_its_order(here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    (here / "reviews.tsv").write_text(REVIEWS, encoding="utf-8")
    (here / "words.conll").write_text(SENTENCES, encoding="utf-8")
    commands = [shlex.split(line)[1:] for block in blocks("") for line in block.splitlines()]
    assert len(commands) == 10
    outcomes = {}
    for argv in commands:
        short = []
        if argv[0] == "train":
            short = ["--budget", "2steps", "--device", "cpu"] if "--from" in argv else [*TINY, "--budget", "2steps"]
        outcome = call_here(*argv, *short)
        assert outcome.code == 0, (argv, outcome.err)
        outcomes[" ".join(argv)] = outcome.out
    one, two = (next(out for line, out in outcomes.items() if mark in line) for mark in ("the mat", "--json"))
    assert re.fullmatch(r"the.* sat on the mat\n", one, re.DOTALL)  # the end of a line is a character too
    found = json.loads(two)["answers"][0]
    assert [len(mask["top"]) for mask in found["masks"]] == [5, 5]
    assert outcomes["generate runs/reviews the cat is new"].strip() in ("good", "bad")
    tags = outcomes["generate runs/tags the cat sat"].split()
    assert [pair.partition("/")[0] for pair in tags] == ["the", "cat", "sat"]
    names = {"regard": regard}
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["vectors"].shape[1] == 16  # pyright: ignore[reportAttributeAccessIssue]


def test_the_flag_says_which_run_cannot_be_started_from(here: Path, trained: Path):
    (here / "reviews.tsv").write_text(REVIEWS, encoding="utf-8")
    assert call_here("train", "reviews.tsv", "--from", str(trained), "--budget", "1steps", "--out", "first").code == 0
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    outcome = call_here("train", "my.txt", "--from", "first", "--budget", "1steps", "--out", "second")
    assert outcome.code == 2
    told = "is a run of the task labelled, and the data is of the task text; start from one of text"
    assert outcome.err == f"regard: error: first: {told}\n"
    assert not (here / "second").exists()
    outcome = call_here("train", "reviews.tsv", "--from", "nowhere", "--budget", "1steps", "--out", "second")
    assert outcome.code in (2, 4)
    assert outcome.err.count("\n") == 1
