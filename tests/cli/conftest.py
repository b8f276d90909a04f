"""One trained run for all tests of the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from calling import TEXT, TINY, call_here


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny gpt trained for thirty steps on a few sentences."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "my.txt").write_text(TEXT, encoding="utf-8")
    outcome = call_here(
        "train", str(folder / "my.txt"), "--budget", "30steps", "--out", str(folder / "gpt"), "--quiet", *TINY
    )
    assert outcome.code == 0, outcome.err
    return folder / "gpt"
