"""The commands where the system is another one: what Windows lacks is gone (tests/windows.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.storage import held, system

WINDOWS = Path(__file__).parents[1] / "windows.py"
SOURCE = Path(system.__file__).parents[2]
TEXT = "".join(f"Ünïcode wörds of day {day} are réad and wrïtten as {day % 7} they are.\n" for day in range(900))
COMMANDS = [
    "train text.txt --model rnn --size tiny --budget 4steps --set data.cache=cache --out run",
    "train --resume --out run --budget 6steps",
    "show run --verify",
    "generate run Ünïc --max-tokens 4",
    "evaluate run",
    "train text.txt --model ngram --memory 16M --spill spill --out counts",
    "export counts counts.arpa",
    "compare text.txt --models ngram,rnn --size tiny --budget 2steps --seeds 1 --out ladder",
]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc to see which files are open")
def test_every_command_works_with_what_windows_has(tmp_path: Path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "spill").mkdir()
    # Paths are UTF-8 there, what is piped is not.
    there = {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", str(WINDOWS), json.dumps([one.split() for one in COMMANDS])],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env=os.environ | there,
        timeout=300,
    )
    codes = [line for line in done.stdout.splitlines() if line.startswith("exit ")]
    assert codes == ["exit 0"] * len(COMMANDS), done.stdout[-2000:] + done.stderr[-4000:]
    assert "files verified" in done.stdout
    assert (tmp_path / "counts.arpa").read_bytes().startswith(b"\\data\\\n")
    assert not list((tmp_path / "spill").iterdir())
    left = [path for path in tmp_path.rglob("*") if path.name.startswith(".tmp-") or path.name.endswith(held.BESIDE)]
    assert {path.name for path in left} <= {".lock"}
