"""docs/sklearn.md: its Python runs from top to bottom, and what it says of checks is what the test counts."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "sklearn.md").read_text(encoding="utf-8")


def test_the_blocks_of_the_page_work_in_their_order(here: Path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/sklearn.md", "exec"), names)
    assert len(blocks) == 6
    assert names["model"].predict(["a fine day"]) == [1]  # pyright: ignore[reportAttributeAccessIssue]
    assert (here / "runs" / "fine" / "model.safetensors").exists()
