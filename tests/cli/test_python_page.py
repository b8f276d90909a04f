"""docs/python.md from its first line of Python to its last, on smaller models and for fewer steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
SHORT = {'budget="20s"': 'budget="2steps"', 'budget="30s"': 'budget="3steps"'}
SMALLER = {'"lstm", [': '"lstm", size="tiny", data=['}


def test_every_line_of_the_page_runs_and_says_what_it_says(here: Path, capsys: pytest.CaptureFixture[str]):
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    for before, after in (SHORT | SMALLER).items():
        assert before in code
        code = code.replace(before, after)
    space = dict[str, object]()
    exec(compile(code, "python.md", "exec"), space)
    shown = capsys.readouterr().out
    for comment in ("['good', 'bad']", "['bad', 'good'] (40, 2)"):
        assert f"# {comment}" in code
        assert comment in shown
    assert "Report(accuracy=" in shown
    assert "Comparison('memory:data', by accuracy: " in shown
    assert "predict, input 2: expected a text, found the number 5" in shown
    assert (here / "curve.svg").exists()
    assert (here / "runs" / "copy" / "manifest.json").exists()
