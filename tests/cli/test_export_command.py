"""`regard export`: what cannot be written is told in a line, and what is there is never lost."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from calling import TEXT, call_here
from safetensors import safe_open

from regard.storage import disk, manifest


@pytest.fixture
def counted(here: Path) -> str:
    (here / "my.txt").write_text(TEXT, encoding="utf-8")
    assert call_here("train", "my.txt", "--model", "ngram", "--out", "counted", "--quiet").code == 0
    return "counted"


def refused(code: int, *argv: str) -> str:
    outcome = call_here("export", *argv)
    assert (outcome.code, outcome.err.count("\n")) == (code, 1), outcome.err
    return outcome.err


def test_what_a_format_cannot_hold_is_refused_before_anything_is_written(counted: str, trained: Path, here: Path):
    run = str(trained)
    assert "onnx is for neural models" in refused(2, counted, "out", "--to", "onnx")
    assert "hf is for neural models" in refused(2, counted, "out", "--to", "hf")
    assert "ARPA files hold n-gram models" in refused(2, run, "x.arpa")
    assert "unknown format, did you mean 'onnx'?" in refused(2, run, "out", "--to", "onxx")
    assert "its name tells no format" in refused(2, run, "out")
    assert "no architecture of transformers" in refused(2, run, "out", "--to", "hf")
    assert "only GGUF files" in refused(2, run, "x.safetensors", "--half")
    assert "only ONNX graphs" in refused(2, run, "x.safetensors", "--length", "9")
    assert "no such run folder" in refused(4, "nowhere", "out", "--to", "hf")
    assert not (here / "out").exists()


def test_what_is_there_is_replaced_only_if_that_is_said_and_a_folder_only_if_it_was_exported(trained: Path, here: Path):
    run, file = str(trained), here / "w.safetensors"
    assert call_here("export", run, "w.safetensors").code == 0
    before = file.read_bytes()
    assert "is there already" in refused(2, run, "w.safetensors")
    assert call_here("export", run, "w.safetensors", "--force", "--licence", "MIT").code == 0
    assert file.read_bytes() != before
    (here / "mine").mkdir()
    (here / "mine" / "diary.txt").write_text("dear")
    for to in ("hf", "onnx"):
        assert "is no folder that was exported" in refused(2, run, "mine", "--to", to, "--force")
    assert (here / "mine" / "diary.txt").read_text() == "dear"


def test_weights_have_readable_names_and_their_config_beside_them(trained: Path, here: Path):
    found = json.loads(call_here("export", str(trained), "w.safetensors", "--json").out)
    assert (found["to"], found["bytes"]) == ("safetensors", (here / "w.safetensors").stat().st_size)
    with safe_open(here / "w.safetensors", "pt") as file:
        assert "embedding.token_to_vector.weight" in file.keys()  # noqa: SIM118
        told = json.loads(file.metadata()["regard"])
    assert told["config"]["kind"] == "language_model"


def test_a_full_disk_leaves_nothing_and_loses_nothing(trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch):
    from regard.interop import export_folder

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk, "write", full)
    assert "No space left on device; free some space" in refused(6, str(trained), "w.safetensors")
    with (
        pytest.raises(Exception, match="cannot write: No space left"),
        export_folder.new_folder(here / "out", False) as at,
    ):
        manifest.write_file(at / "file", [b"content"])
    assert sorted(os.listdir(here)) == sorted(
        name for name in os.listdir(here) if not name.startswith((".", "w", "out"))
    )
