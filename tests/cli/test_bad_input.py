"""Bad input: one line on stderr, the right exit code, nothing on stdout, nothing written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from calling import TEXT, TINY, call_here

USAGE, DATA, CHECKPOINT, RESOURCE, LOCKED = 2, 3, 4, 6, 7


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["trian"], USAGE, "train"),
        (["train", "--modle", "gpt"], USAGE, "--model"),
        (["train", "my.txt", "--model", "gtp"], USAGE, "did you mean 'gpt'"),
        (["train", "my.txt", "--size", "hugee"], USAGE, "no size"),
        (["train", "my.txt", "--budget", "soon"], USAGE, "90s"),
        (["train", "my.txt", "--budget", "-3s"], USAGE, "budget"),
        (["train", "my.txt", "--device", "gpu"], USAGE, "--device"),
        (["train", "my.txt", "--seed", "-1"], USAGE, "--seed"),
        (["train", "my.txt", "--seed", "x"], USAGE, "--seed"),
        (["train", "my.txt", "--set", "train.lrr=1"], USAGE, "did you mean 'lr'"),
        (["train", "my.txt", "--set", "train.lr=nan"], USAGE, "train.lr"),
        (["train", "my.txt", "--set", "train.lr=-1.0"], USAGE, "train.lr"),
        (["train", "my.txt", "--set", "train.batch_size=-1"], USAGE, "train.batch_size"),
        (["train", "my.txt", "--set", "model.n_heads=3"], USAGE, "n_heads"),
        (["train", "my.txt", "--set", "model.n_layers=1000000000"], USAGE, "above 1,024"),
        (["train", "my.txt", "--set", "model.d_model=1099511627776"], USAGE, "model.d_model"),
        (["train", "my.txt", "--set", "model.d_model=262144", "--set", "model.n_layers=64"], RESOURCE, "--yes-really"),
        (
            ["train", "my.txt", "--set", "train.batch_size=1048576", "--set", "train.length=65536"],
            RESOURCE,
            "batch_size",
        ),
        (["train", "my.txt", "--set", "data.tokens=wrods"], USAGE, "did you mean 'words'"),
        (["train", "my.txt", "--out", "x" * 65], USAGE, "name"),
        (["train", "my.txt", "--out", "."], USAGE, "name"),
        (["train", "my.txt", "--recipe", "none.toml"], USAGE, "regard new"),
        (["train", "my.txt", "--resume"], CHECKPOINT, "runs/gpt"),
        (["train", "my.txt", "--import", "no_such_module"], USAGE, "no_such_module"),
        (["train", "mt.txt"], DATA, "my.txt"),
        (["train", "empty.txt"], DATA, "empty.txt"),
        (["train", "latin.txt"], DATA, "line 2"),
        (["train", "short.txt"], DATA, ""),
        (["train", "world:storys"], USAGE, "did you mean 'stories'"),
        (["generate", "runs/none"], CHECKPOINT, "runs/none"),
        (["generate", "folder"], CHECKPOINT, "folder"),
        (["generate", "x" * 5000], USAGE, "name too long"),
        (["score", "runs/none", "text"], CHECKPOINT, "runs/none"),
        (["evaluate", "runs/none"], CHECKPOINT, "runs/none"),
        (["show", "gtp"], USAGE, "did you mean 'gpt'"),
        (["show", "runs/none"], CHECKPOINT, "runs/none"),
        (["show", "gpt", "--verify"], USAGE, "--verify"),
        (["check"], USAGE, "--all"),
        (["list", "--device", "cpu"], USAGE, "--device"),
        (["score", "runs/none", "text", "--seed", "1"], USAGE, "--seed"),
        (["check", "atention"], USAGE, "did you mean 'attention'"),
        (["new", "no/such/folder.toml"], USAGE, "no/such"),
        (["new", "my.txt/x"], USAGE, "my.txt/x"),
        (["train", "my.txt", "--out", "my.txt/x"], USAGE, "my.txt: is a file"),
        (["train", "my.txt", "--out", "my.txt"], USAGE, "my.txt: is a file"),
        (["train", "my.txt/x"], DATA, "my.txt/x"),
        (["train", "--recipe", "my.txt/x"], USAGE, "my.txt/x"),
        (["show", "my.txt/x"], CHECKPOINT, "my.txt/x"),
        (["bench", "--repeats", "0"], USAGE, "repeats"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(here: Path, argv: list[str], code: int, words: str):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    (here / "empty.txt").write_bytes(b"")
    (here / "short.txt").write_bytes(b"ab")
    (here / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    (here / "folder").mkdir()
    before = files_below(here)
    outcome = call_here(*argv)
    assert (outcome.code, outcome.out) == (code, ""), outcome.err
    assert outcome.err.startswith("regard: error: ")
    assert outcome.err.count("\n") == 1
    assert words in outcome.err
    assert "Traceback" not in outcome.err
    assert files_below(here) == before


@pytest.mark.parametrize(
    "argv",
    [
        ["--temperature", "-1"],
        ["--top-p", "0"],
        ["--top-k", "0"],
        ["--min-p", "2"],
        ["--max-tokens", "0"],
        ["--n", "0"],
        ["--stop", ""],
        ["--beam", "0"],
        ["--beam", "2", "--stop", "x"],
        ["--beam", "2", "--temperature", "0.5"],
        ["--beam", "2", "--top-k", "3"],
        ["--beam", "2", "--top-p", "0.9"],
        ["--beam", "2", "--min-p", "0.1"],
        ["--beam", "2", "--length-penalty", "gmnt"],
        ["--beam", "2", "--n", "3"],
    ],
    ids=" ".join,
)
def test_bad_options_of_generate_are_usage_errors(trained: Path, argv: list[str]):
    outcome = call_here("generate", str(trained), "a", *argv)
    assert outcome.code == USAGE, outcome.err
    assert outcome.err.count("\n") == 1


def test_nothing_to_score_is_a_usage_error(trained: Path):
    assert call_here("score", str(trained), "").code == USAGE
    assert call_here("score", str(trained), stdin="").code == USAGE


def test_stdin_that_is_no_text_is_named_by_byte_and_line(trained: Path, monkeypatch: pytest.MonkeyPatch):
    import io

    import calling

    monkeypatch.setattr(calling, "Input", lambda _: io.TextIOWrapper(io.BytesIO(b"ab\n\xff"), encoding="utf-8"))
    outcome = call_here("score", str(trained))
    assert outcome.code == DATA
    assert "byte 3, line 2" in outcome.err


def test_a_taken_folder_is_refused_and_left_as_it_was(trained: Path, here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    copy = here / "run"
    shutil.copytree(trained, copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    outcome = call_here("train", "my.txt", "--out", "run", "--budget", "1steps", *TINY)
    assert outcome.code == USAGE
    assert "--resume" in outcome.err
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_a_folder_in_use_is_refused(trained: Path, here: Path):
    from regard.training.run_folder import claim

    copy = here / "run"
    shutil.copytree(trained, copy)
    with claim(copy):
        outcome = call_here("train", "--resume", "--out", "run", "--budget", "99steps")
    assert outcome.code == LOCKED, outcome.err
    assert "in use by process" in outcome.err


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_run_is_refused(trained: Path, here: Path, name: str, damage: str):
    copy = here / "run"
    shutil.copytree(trained, copy)
    data = bytearray((copy / name).read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
        (copy / name).write_bytes(data)
    elif damage == "cut":
        (copy / name).write_bytes(data[: len(data) // 2])
    else:
        (copy / name).unlink()
    for command in (["generate", "run", "a"], ["show", "run", "--verify"]):
        outcome = call_here(*command)
        assert outcome.code == CHECKPOINT, (command, outcome.err)
        assert outcome.err.count("\n") == 1
        assert name in outcome.err or "manifest" in outcome.err


def test_data_that_changed_since_training_is_not_evaluated_silently(here: Path):
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    assert call_here("train", "my.txt", "--budget", "1steps", "--quiet", *TINY).code == 0
    (here / "my.txt").write_text(TEXT + "something else", encoding="utf-8")
    outcome = call_here("evaluate", "runs/gpt")
    assert outcome.code == DATA
    assert "my.txt" in outcome.err


def test_a_failure_leaves_json_mode_without_output(here: Path):
    outcome = call_here("train", "none.txt", "--json")
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1


def test_debug_adds_the_traceback(here: Path):
    assert "Traceback" in call_here("train", "none.txt", "--debug").err


def test_a_failure_of_ours_is_shown_as_one(trained: Path, monkeypatch: pytest.MonkeyPatch):
    from regard.run import run

    monkeypatch.setattr(run, "load", lambda *_, **__: 1 / 0)
    outcome = call_here("score", str(trained), "text")
    assert outcome.code == 1
    assert "ZeroDivisionError" in outcome.err
    assert json.dumps(outcome.out) == '""'
