"""The report of a comparison in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browsing import page_width
from regard.charts.drawing import Drawing, Look, Words
from regard.charts.page import html_table, numbers, page
from regard.charts.svg import inline_svg
from regard.studies import report_page
from regard.studies.comparison import Comparison
from regard.studies.protocol import Protocol
from regard.studies.report_page import as_html
from regard.studies.row import Row
from regard.tasks import task_named

SMALLEST = 15  # letters of pictures, in a drawing of 1280
COLUMNS = ["rank", "model", "bits_per_byte", "+-", "over best", "parameters", "rate", "steps", "time", "use", "state"]
ROW = ["1", "lstm?n_layers=3", "2.135", "0.0094", "0.321", "12.1k", "0.009*", "12,345", "1m 05s", "2.12k tokens/s"]


@pytest.mark.parametrize("width", [400, 1280])
def test_a_ranking_needs_no_scrolling_on_a_usual_screen(width: int, open_page: Any, tmp_path: Path) -> None:
    columns, row = [*COLUMNS, "memory"], [*ROW, "32.8kB+", "454MB"]
    file = tmp_path / "report.html"
    file.write_text(page("Comparison", html_table(columns, [row] * 3, set(range(2, 12)))), encoding="utf-8")
    shown = open_page(file.as_uri(), width=width)
    table = shown.locator(".wide").first
    assert page_width(shown) <= width
    if width > 1000:
        assert table.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_a_click_on_a_heading_sorts_and_a_button_copies_the_numbers(open_page: Any, tmp_path: Path) -> None:
    times, sizes = ["1m 05s", "8s", "", "2h 01m"], ["12.1k", "999", "fitted", "1,234"]
    table = html_table(
        ["model", "time", "params"], [list(row) for row in zip("badc", times, sizes, strict=True)], {1, 2}
    )
    file = tmp_path / "report.html"
    file.write_text(page("Comparison", table + numbers(["model", "loss"], [["a,b", 0.5]])), encoding="utf-8")
    shown = open_page(file.as_uri())

    def names() -> str:
        return "".join(shown.locator("tbody td:first-child").all_inner_texts())

    found = []
    for heading in ("time", "time", "params", "model"):
        shown.get_by_text(heading, exact=True).click()
        found.append(names())
    assert found == ["abcd", "cbad", "acbd", "abcd"]
    shown.get_by_text("CSV", exact=True).click()
    shown.get_by_role("button").click()
    assert shown.evaluate("getSelection().toString()").strip() == 'model,loss\n"a,b",0.5'
    # The clipboard answers when it has been written to.
    # The page forbids to evaluate a string, as a wait for a function would: its button is looked at instead.
    button = shown.locator("button").first
    for _ in range(100):
        if button.text_content() != "Copy":
            break
        shown.wait_for_timeout(50)


def labelled(label: str, number: int) -> Row:
    """A model of texts with labels, and what it says to two long ones."""
    texts = ["the cinema was full , and a critic called the music charming " * 3, "word" * 40]
    said = ["positive 51%", "negative 97%"] if number % 2 else ["negative 53%", "positive 61%"]
    run = {"score": 0.5 + number / 40, "scores": {}, "slices": {}, "curve": [], "seed": 0, "path": "nowhere"}
    run |= {"step": 22, "tokens": 900, "seconds": 1.0, "speed": 100.0 * number + 1, "speed_unit": "answers/s"}
    run |= {"state_bytes": None, "state_grows": False, "peak_memory": 300_000_000, "sample": "a", "samples": None}
    right = [bool(number % 2), not number % 2]
    run |= {"right": right, "answers": texts, "inputs": texts, "truths": ["positive"] * 2, "said": said}
    return Row(label, label, 0 if number < 3 else 8000, runs=[run])


@pytest.mark.parametrize("width", [400, 1200])
def test_a_look_inside_can_be_read_and_scrolls_in_a_box_of_its_own(
    width: int, open_page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = Drawing(title="A look", y=400)
    drawing.add(Words(20, 40, "the smallest words of a look", Look(SMALLEST)), Words(1270, 80, "its end", anchor="end"))
    monkeypatch.setattr(report_page, "pictures", lambda rows: [("lstm", inline_svg(drawing))])
    found = Comparison(Protocol("my.csv", "labelled", "30steps", 1), (labelled("lstm", 4),), tmp_path, {})
    file = tmp_path / "report.html"
    file.write_text(as_html(found), encoding="utf-8")
    shown = open_page(file.as_uri(), width=width)
    shown.locator("summary", has_text="lstm").last.click()
    box = shown.locator(".inside")
    assert page_width(shown) <= width
    assert SMALLEST * box.locator("svg").evaluate("one => one.getBoundingClientRect().width") / drawing.width >= 9
    assert box.evaluate("one => one.scrollWidth > one.clientWidth") == (width == 400)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1200])
def test_the_answers_of_ten_models_need_no_scrolling(width: int, dark: bool, open_page: Any, tmp_path: Path) -> None:
    rows = tuple(labelled(name, number) for number, name in enumerate(task_named("labelled").ladder))
    found = Comparison(Protocol("my.csv", "labelled", "30steps", 1), rows, tmp_path, {"name": "my.csv"})
    file = tmp_path / "report.html"
    file.write_text(as_html(found), encoding="utf-8")
    shown = open_page(file.as_uri(), width=width, dark=dark)
    assert page_width(shown) <= width
    table = shown.locator(".answers")
    assert table.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert table.inner_text().count("a critic called the music") == 3
    assert table.locator(".said").count() == 20
    assert table.locator(".good").first.inner_text().split()[-1] == "="
