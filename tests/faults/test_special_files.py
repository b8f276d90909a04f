"""Named pipes, devices and sockets in the place of any file that is read: refused in one line, without waiting."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest
from calling import TEXT, call_here, call_process

from regard.storage.regular import open_regular, read_regular

RUN = ("config.json", "manifest.json", "tokenizer.json", "model.safetensors", "metrics.jsonl", "samples.txt")
# Writing asks for neither log nor samples, and a resume puts the tokenizer and the best weights back.
GOES_ON = {"generate": ("metrics.jsonl", "samples.txt"), "train": ("tokenizer.json", "model.safetensors")}
POINT = ("state.json", "manifest.json", "model.safetensors", "optimiser.safetensors")
DATA = {
    "text": "a.txt",
    "labelled": "a.jsonl",
    "tagged": "a.conll",
    "series": "a.csv",
    "pairs": "a.tsv",
    "captions": "a.npz",
}
TINY = ("--size", "tiny", "--device", "cpu", "--quiet", "--set", "train.batch_size=4", "--set", "train.length=16")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("special")
    (home / "my.txt").write_text(TEXT)
    outcome = call_here(
        "train", str(home / "my.txt"), "--model", "lstm", "--budget", "4steps", "--out", str(home / "run"), *TINY
    )
    assert outcome.code == 0, outcome.err
    return home


def special(path: Path, kind: str) -> None:
    """Put something that is no file at a path."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # the names of sockets are short
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.bind(path.name)
        finally:
            os.chdir(here)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(f"/dev/{kind}")


KINDS = ("pipe", "socket", "zero", "folder")


def require_one_line(outcome, code: tuple[int, ...], name: str) -> None:
    assert outcome.code in code, outcome
    assert outcome.err.count("\n") == 1
    assert "bug of regard" not in outcome.err
    assert name in outcome.err


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", DATA)
def test_data_of_every_kind_must_be_a_regular_file(tmp_path: Path, task: str, kind: str):
    if kind == "folder":
        pytest.skip("a folder of data is data")
    file = tmp_path / DATA[task]
    special(file, kind)
    (tmp_path / "a.tsv.captions").write_text("")
    (tmp_path / "a.captions.tsv").write_text("a dog\n")
    outcome = call_here("train", str(file), "--task", task, "--out", str(tmp_path / "x"), *TINY)
    require_one_line(outcome, (3,), file.name)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_recipe_and_its_parent_must_be_regular_files(tmp_path: Path, kind: str):
    special(tmp_path / "r.toml", kind)
    require_one_line(call_here("train", "--recipe", str(tmp_path / "r.toml")), (2,), "r.toml")
    (tmp_path / "child.toml").write_text('extends = "r.toml"\n')
    require_one_line(call_here("train", "--recipe", str(tmp_path / "child.toml")), (2,), "r.toml")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RUN)
def test_every_file_of_a_run_must_be_a_regular_file(made: Path, tmp_path: Path, name: str, kind: str):
    run = tmp_path / "run"
    shutil.copytree(made / "run", run)
    special(run / name, kind)
    for words in (("show", "--verify"), ("generate", "the"), ("train", "--resume", "--out")):
        command = (*words, str(run)) if words[0] == "train" else (words[0], str(run), *words[1:])
        outcome = call_here(*command, "--quiet")
        if outcome.code:
            require_one_line(outcome, (4,), name)
        assert outcome.code == 4 or name in GOES_ON.get(words[0], ()), outcome


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", POINT)
def test_every_file_of_a_checkpoint_must_be_a_regular_file(made: Path, tmp_path: Path, name: str):
    run = tmp_path / "run"
    shutil.copytree(made / "run", run)
    for kind in KINDS:
        shutil.rmtree(run)
        shutil.copytree(made / "run", run)
        special(next((run / "checkpoints").iterdir()) / name, kind)
        outcome = call_here("train", "--resume", "--out", str(run), "--budget", "6steps", "--quiet")
        require_one_line(outcome, (4,), name)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", KINDS)
def test_arpa_files_and_pictures_must_be_regular_files(made: Path, tmp_path: Path, kind: str):
    from regard.data.picture import pictures_in, read_picture
    from regard.errors import DataError

    special(tmp_path / "m.arpa", kind)
    if kind != "folder":
        require_one_line(call_here("score", str(tmp_path / "m.arpa"), "the"), (3,), "m.arpa")
    for name in ("p.png", "p.npz"):
        special(tmp_path / name, kind)
    with pytest.raises(DataError, match=r"p\.png"):
        read_picture(str(tmp_path / "p.png"), 8)
    if kind != "folder":
        with pytest.raises(DataError, match=r"p\.npz"):
            pictures_in(str(tmp_path / "p.npz"))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["comparison.json", "state.json"])
def test_what_a_comparison_keeps_must_be_regular_files(made: Path, tmp_path: Path, name: str, kind: str):
    command = ("compare", str(made / "my.txt"), "--models", "ngram", "--budget", "2steps", "--quiet")
    command += ("--out", str(tmp_path / "c"), "--set", "data.documents=line")
    assert call_here(*command).code == 0
    special(tmp_path / "c" / name, kind)
    require_one_line(call_here(*command), (4,), name)


def test_links_to_regular_files_are_data_and_the_standard_input_stays(made: Path, tmp_path: Path):
    (tmp_path / "link.txt").symlink_to(made / "my.txt")
    assert call_here("evaluate", str(made / "run"), str(tmp_path / "link.txt")).code == 0
    assert call_here("evaluate", str(made / "run"), "-", stdin=TEXT).code == 0


def test_the_standard_input_by_its_path_is_refused_with_the_name_that_works():
    outcome = call_process("train", "/dev/stdin", "--out", "x", stdin=TEXT)
    require_one_line(outcome, (3,), "pipe it in as -")


def test_large_files_of_settings_are_refused_before_they_are_read(tmp_path: Path, made: Path):
    with open(tmp_path / "r.toml", "wb") as file:
        file.truncate(1 << 34)
    outcome = call_here("train", "--recipe", str(tmp_path / "r.toml"))
    require_one_line(outcome, (2,), "too many")
    shutil.copytree(made / "run", tmp_path / "run")
    with open(tmp_path / "run" / "manifest.json", "wb") as file:
        file.truncate(1 << 34)
    require_one_line(call_here("show", str(tmp_path / "run")), (4,), "too many")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "x = " + "9" * 5000, "[a" + ".a" * 100_000 + "]"])
def test_a_recipe_that_would_exhaust_its_reader_is_one_line(tmp_path: Path, text: str):
    (tmp_path / "r.toml").write_text(text)
    require_one_line(call_here("train", "--recipe", str(tmp_path / "r.toml")), (2,), "r.toml")


def test_an_open_file_is_read_as_ever(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"some bytes")
    assert read_regular(tmp_path / "a", 10) == b"some bytes"
    with open_regular(tmp_path / "a") as file:
        assert os.get_blocking(file.fileno())
