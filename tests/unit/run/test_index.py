"""The index of built-in parts says what they say themselves, and lets lists and `show` do without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.index import index
from regard.core import plugin
from regard.run import index as kept
from regard.run.train import train

SOURCE = Path(kept.__file__).parents[2]


def test_the_index_says_what_the_parts_say(monkeypatch: pytest.MonkeyPatch):
    found, now = json.loads(kept.FILE.read_text(encoding="utf-8")), index()
    for section, parts in found.items():
        for name, told in parts.items():
            listed = {one["name"] for one in told} if section == "listed" else set()
            outside = [one for one in now[section][name] if one["name"] not in listed] if listed else []
            ours = [one for one in now[section][name] if one not in outside] if listed else now[section][name]
            assert told == ours, f"{section}, {name}: write it anew with python -m regard.cli.index"
    assert [*found["models"]] == [*now["models"]], "write it anew with python -m regard.cli.index"


def test_parts_from_outside_are_asked_for_themselves(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plugin, "entry_points", lambda group: [])
    monkeypatch.setattr(plugin, "_imported", set())
    assert kept.listed()
    monkeypatch.setattr(plugin, "_imported", {"mine"})
    assert kept.listed() is None
    assert kept.model_facts("mine") is None


def test_list_and_show_do_without_torch(tmp_path: Path):
    train("rnn", "world:ab", size="tiny", budget="2steps", out=tmp_path / "run", quiet=True)
    code = (
        "import sys\nfrom regard.cli.main import main\n"
        f"codes = [main(words) for words in (['list'], ['show', 'gpt'], ['show', {str(tmp_path / 'run')!r}])]\n"
        "assert codes == [0, 0, 0] and 'torch' not in sys.modules, codes"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "parameters" in done.stdout
