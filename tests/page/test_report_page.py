"""The report of a comparison in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.charts.page import html_table, page

COLUMNS = ["rank", "model", "bits_per_byte", "+-", "over best", "parameters", "rate", "steps", "time", "use", "state"]
ROW = ["1", "lstm?n_layers=3", "2.135", "0.0094", "0.321", "12.1k", "0.009*", "12,345", "1m 05s", "2.12k tokens/s"]


@pytest.mark.parametrize("width", [400, 1280])
def test_a_ranking_needs_no_scrolling_on_a_usual_screen(width: int, open_page: Any, tmp_path: Path) -> None:
    columns, row = [*COLUMNS, "memory"], [*ROW, "32.8kB+", "454MB"]
    file = tmp_path / "report.html"
    file.write_text(page("Comparison", html_table(columns, [row] * 3, set(range(2, 12)))), encoding="utf-8")
    shown = open_page(file.as_uri(), width=width)
    table = shown.locator(".wide").first
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    if width > 1000:
        assert table.evaluate("one => one.scrollWidth <= one.clientWidth")
