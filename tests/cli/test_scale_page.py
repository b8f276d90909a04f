"""docs/scale.md, data and counting: its commands on files as people have them, and Ctrl-C in the middle."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from calling import TEXT, call_here

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
SECTIONS = ("Data larger than memory", "Counting at scale")


def commands(section: str) -> list[str]:
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_the_commands_of_the_page_run_and_workers_change_nothing(here: Path):
    (here / "big").mkdir()
    lines = TEXT.splitlines(keepends=True)
    for number in range(3):
        (here / "big" / f"part-{number}.txt").write_text("".join(lines[number::3]), encoding="utf-8")
    found = [command for section in SECTIONS for command in commands(section)]
    assert len(found) == 2
    for command in found:
        outcome = call_here(*shlex.split(command)[1:])
        assert outcome.code == 0, outcome.err
    one = shlex.split(found[-1].replace("--workers 2", "--workers 1").replace("runs/counted", "runs/one"))
    assert call_here(*one[1:]).code == 0
    both = [(here / "runs" / name / "model.safetensors").read_bytes() for name in ("counted", "one")]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (("big/*.txt",), 3, "no file matches big/*.txt"),
        (("my.txt", "--workers", "0"), 2, "data.workers: expected a whole number from 1"),
        (("my.txt", "--ray", "nowhere"), 2, "ray"),
        (("my.tsv", "--workers", "2"), 2, "data.workers means nothing to the task labelled"),
    ],
)
def test_what_cannot_be_is_one_line(argv: tuple[str, ...], code: int, told: str, here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    (here / "my.tsv").write_text("text\tlabel\n" + "good one\tyes\nbad one\tno\n" * 20, encoding="utf-8")
    outcome = call_here("train", *argv, "--model", "ngram" if "my.tsv" not in argv else "naive_bayes", "--out", "run")
    assert outcome.code == code, outcome.err
    assert told in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1 or outcome.err.strip().splitlines()[-1].startswith(
        "regard: error"
    )
    assert not (here / "run").exists()
