"""What somebody meets who tries the command for the first time: wrong files, small texts, Ctrl-C."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from calling import TEXT, call_here

from regard.core.progress import Progress
from regard.training.display import Lines

LATIN = "caf\xe9 cr\xe8me na\xefve ".encode("latin-1") * 50


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("my.bin", bytes(range(256)) * 40, "my.bin looks binary"),
        ("my.jpg.txt", b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(random.Random(0).randbytes(5000)), "is a picture"),
        ("controls.txt", b"\x01\x02\x03abc" * 500, "looks binary"),
        ("my.txt", LATIN, "it looks like latin-1; say data.encoding=latin-1"),
        ("wide.txt", b"\xff\xfe\x00\xd8" * 99, "wide.txt is not utf-16"),
    ],
)
def test_a_file_that_is_no_utf8_is_told_for_what_it_is(name: str, content: bytes, words: str, here: Path):
    (here / name).write_bytes(content)
    outcome = call_here("train", name, "--task", "text", "--budget", "1steps", "--out", "run")
    assert (outcome.code, outcome.err.count("\n")) == (3, 1), outcome.err
    assert words in outcome.err


def test_a_text_with_an_odd_control_character_is_still_a_text(here: Path):
    (here / "my.txt").write_text(TEXT + "\x00\x01", encoding="utf-8")
    assert call_here("train", "my.txt", "--model", "ngram", "--out", "run").code == 0


def test_a_run_that_is_none_is_told_with_what_is_meant(here: Path, trained: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    (here / "runs").symlink_to(trained.parent)
    told = {
        ("generate", "my.txt"): "my.txt: is a file, not a run folder; regard train my.txt makes a run of a text",
        ("evaluate", "runs/gtp"): "runs/gtp: no such run folder, did you mean runs/gpt?",
        ("score", "gpt", "a"): "gpt: no such run folder, did you mean runs/gpt?",
        ("generate", "runs"): "runs: not a run folder, it has no manifest.json; name a run in it, such as runs/gpt",
        ("lab", "runs/gtp"): "runs/gtp: no such run folder, did you mean runs/gpt?",
        ("generate", "nothing"): "nothing: no such run folder",
    }
    for argv, words in told.items():
        outcome = call_here(*argv)
        assert (outcome.code, outcome.err) == (4, f"regard: error: {words}\n"), argv


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["lab", "--port", "abc"], "regard: error: --port: expected a whole number"),
        (["compare", "--seeds", "x"], "--seeds: expected a whole number"),
        (["generate", "run", "--temperature", "hot"], "--temperature: expected a number"),
        (["generate", "run", "--n", "0"], "--n: expected 1 or more"),
    ],
)
def test_a_value_that_is_none_is_told_as_others_are(argv: list[str], words: str):
    outcome = call_here(*argv)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert words in outcome.err


@pytest.mark.parametrize("model", ["lstm", "gpt"])
def test_a_small_text_is_trained_in_small_batches_that_are_told(model: str, here: Path):
    (here / "my.txt").write_text(TEXT[:600], encoding="utf-8")
    flags = ("--model", model, "--size", "tiny", "--budget", "2steps")
    outcome = call_here("train", "my.txt", *flags, "--out", "run", "--json")
    assert outcome.code == 0, outcome.err
    config = json.loads((here / "run" / "config.json").read_text())
    if model == "lstm":
        assert "the text is small: batches of" in outcome.err
        assert config["origins"]["train.batch_size"] == "a small text"
        assert config["train"]["batch_size"] < 32
    assert call_here("train", "--resume", "--out", "run", "--budget", "4steps").code == 0
    assert call_here("evaluate", "run").code == 0


def test_what_was_set_is_never_made_smaller(here: Path):
    (here / "my.txt").write_text(TEXT[:600], encoding="utf-8")
    flags = ("--model", "lstm", "--size", "tiny", "--budget", "2steps", "--set", "train.batch_size=32")
    both = call_here("train", "my.txt", *flags, "--set", "train.length=128", "--out", "run")
    assert both.code == 3
    assert "a smaller train.batch_size or train.length" in both.err
    assert call_here("train", "my.txt", *flags, "--out", "run").code == 0
    train = json.loads((here / "run" / "config.json").read_text())["train"]
    assert train["batch_size"] == 32
    assert train["length"] < 128


def test_a_small_text_is_compared_in_the_same_small_batches_for_all(here: Path):
    (here / "my.txt").write_text(TEXT[:1500], encoding="utf-8")
    argv = ("compare", "my.txt", "--models", "lstm,gpt", "--size", "tiny", "--budget", "12steps", "--seeds", "1")
    outcome = call_here(*argv, "--out", "c")
    assert outcome.code == 0, outcome.err
    assert "the text is small: batches of" in outcome.out
    found = [json.loads((here / "c" / name / "config.json").read_text())["train"] for name in ("lstm", "gpt")]
    assert len({(one["batch_size"], one["length"]) for one in found}) == 1
    assert call_here(*argv, "--out", "c").code == 0


@pytest.mark.parametrize(
    ("argv", "where", "words"),
    [
        (["train", "my.txt", "--out", "new"], "regard.run.train.load_dataset", "nothing was written"),
        (["evaluate", "RUN"], "regard.run.run.Run.evaluate", "nothing was written"),
        (["train", "my.txt", "--model", "ngram", "--out", "new"], "regard.cli.train.show_card", "the run is whole"),
    ],
)
def test_ctrl_c_is_one_line_that_says_what_is_left(
    argv: list[str], where: str, words: str, here: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")

    def pressed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, pressed)
    outcome = call_here(*[str(trained) if word == "RUN" else word for word in argv], "--quiet")
    assert outcome.code == 130
    assert outcome.err.startswith(f"regard: stopped; {words}")
    assert outcome.err.count("\n") == 1
    assert (here / "new").exists() == ("whole" in words)


def test_a_stage_that_is_whole_is_said_once(capsys: pytest.CaptureFixture[str]):
    lines = Lines()
    for done in (0, 50, 100, 100, 0, 100):
        lines.progress(Progress("evaluating", done, 100, "tokens", 1.0))
    told = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in told] == ["0%", "100%", "0%", "100%"]
