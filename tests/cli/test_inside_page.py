"""What docs/inside.md says can be seen, can: its commands in their order, and the view of every family."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calling import TEXT, TINY, call_here

from look_run import class_run, masked_run, pair_run, tag_run, text_run
from regard.run.run import load

PAGE = (Path(__file__).parents[2] / "docs" / "inside.md").read_text(encoding="utf-8")
SHORT = (*TINY, "--budget", "2steps", "--quiet")
ROWS = re.findall(r"^\| ([^|]+) \| `(\w+)` \| [^|]+ \| \[!\[\]", PAGE, re.MULTILINE)


def trained(*argv: str) -> Any:
    outcome = call_here("train", *argv, "--out", "run", *SHORT)
    assert outcome.code == 0, outcome.err
    return load("run")


FAMILIES: dict[str, Callable[[], Any]] = {
    "n-gram": lambda: trained("my.txt", "--model", "ngram"),
    **{name: lambda name=name: text_run(name.lower()) for name in ("DAN", "FNN", "RNN", "LSTM", "GRU", "GPT")},
    **{name: lambda name=name: text_run(name.lower()) for name in ("Backpack", "S4D", "Mamba")},
    "Mamba-2": lambda: text_run("mamba2"),
    "seq2seq, one vector": lambda: pair_run("seq2seq"),
    "seq2seq with attention": lambda: pair_run("bahdanau"),
    "GNMT": lambda: pair_run("gnmt"),
    "Transformer": lambda: pair_run("transformer"),
    "BERT": masked_run,
    "classifier": class_run,
    "tagger": tag_run,
    "captioner": lambda: trained("world:shapes?train=12&valid=8"),
    "forecaster": lambda: trained("world:electricity?train=21&valid=3"),
}


def test_every_family_of_the_page_is_known_here():
    assert [family for family, _ in ROWS] == list(dict.fromkeys(family for family, _ in ROWS))
    assert {family for family, _ in ROWS} == FAMILIES.keys()


@pytest.mark.parametrize(("family", "view"), ROWS)
def test_a_run_of_the_family_has_the_view_that_the_page_shows(here: Path, family: str, view: str):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    assert view in FAMILIES[family]().views


def test_the_commands_and_the_python_of_the_page_work_in_their_order(here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("regard ")]
    assert len(lines) > 5
    for line in lines:
        words = shlex.split(line)[1:]
        if words == ["lab"]:
            continue
        outcome = call_here(*words, *(SHORT if words[0] == "train" else ()))
        assert outcome.code == 0, (line, outcome.err)
    (python,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(python, {})
