"""The HTML file of a view, opened from disk in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from picture_book import HOSTILE, WORDS, attention, large, steps, weights_of
from playwright.sync_api import expect

from browsing import page_width, wait_until
from regard.explain.view import Bars, Curves, Heat, Links, Listing, Numbers, View

RIBBONS = """([least, most]) => {
  const found = document.querySelectorAll(".ribbon").length;
  return least <= found && found <= most;
}"""

Saved = Callable[[str], str]
# Before, it has no cells to point at, and buttons that it may not need.
MAP_HAS_ROOM = "document.querySelector('.plane canvas').style.width !== ''"


def row_shown(page: Any) -> tuple[int, dict[str, float]]:
    """The number of the row in the box beside the map, from 0 on, and what the box says of each column."""
    heading = page.locator(".row h4").inner_text()
    names = page.locator(".row .barlist .token").all_inner_texts()
    numbers = [float(text) for text in page.locator(".row .barlist .number").all_inner_texts()]
    return int(heading.rsplit(" ", 1)[1]) - 1, dict(zip(names, numbers, strict=True))


def test_pointing_at_a_row_of_the_map_shows_its_weights(open_page: Any, saved: Saved) -> None:
    words = [f"{word}{place}" for place, word in enumerate(WORDS)]  # so that every column has a name of its own
    view = attention(" ".join(words), head=2)
    page = open_page(saved(view.to_html()))
    wait_until(page, MAP_HAS_ROOM)
    box = page.locator(".plane canvas").bounding_box()
    for share in (0.35, 0.6, 0.9):
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * share)
        row, shown = row_shown(page)
        assert list(shown) == words
        np.testing.assert_allclose(list(shown.values()), view["map"].weights[row], rtol=5e-4, atol=1e-9)


def test_the_map_is_used_by_keyboard_and_told_to_those_who_listen(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(attention(head=1).to_html()))
    wait_until(page, MAP_HAS_ROOM)
    weights = weights_of(1)
    page.get_by_label("hide sink").focus()
    for key in ("Tab", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    row = 2
    assert row_shown(page)[0] == row
    told = page.locator(".heat [role=status]").inner_text()
    assert told.startswith(f"Row {row + 1}, {WORDS[row]}:")
    assert f"{float(f'{weights[row].max():.4g}')}" in told
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    assert page.locator(".row h4").inner_text() == "sum of 2 rows"
    shown = [float(text) for text in page.locator(".row .barlist .number").all_inner_texts()]
    np.testing.assert_allclose(shown, weights[row] + weights[row + 1], rtol=5e-4, atol=1e-9)
    page.keyboard.press("Escape")
    assert row_shown(page)[0] == row + 1


def test_hiding_the_sink_drops_the_first_column_and_rows_sum_to_one_again(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(attention(head=3).to_html()))
    page.get_by_label("hide sink").check()
    page.locator(".plane").focus()
    page.keyboard.press("End")
    row, _ = row_shown(page)
    shown = [float(text) for text in page.locator(".row .barlist .number").all_inner_texts()]
    kept = weights_of(3)[row, 1:]
    np.testing.assert_allclose(shown, kept / kept.sum(), rtol=5e-4, atol=1e-9)
    assert page.locator(".row .barlist .token").all_inner_texts() == list(WORDS[1:])


def test_a_map_that_sums_to_nothing_has_no_sink_to_hide(open_page: Any, saved: Saved) -> None:
    gates = Heat(title="Gates", weights=np.tanh(np.arange(-6.0, 6.0)).reshape(3, 4), low=-1.0, high=1.0, scale="gate")
    page = open_page(saved(View("Gates", [gates], name="gates").to_html()))
    expect(page.get_by_label("hide sink")).to_have_count(0)
    assert "gate -1" in page.locator(".legend").inner_text()


def test_the_steps_are_walked_by_buttons_and_arrows_and_keep_what_was_chosen(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(steps().to_html()))
    where = page.locator(".where")
    shown = page.locator(".panel:visible")
    assert where.inner_text() == "step 1 of 5"
    assert page.get_by_role("button", name="Previous").is_disabled()
    page.get_by_role("button", name="Next").click()
    assert (where.inner_text(), shown.count()) == ("step 2 of 5", 1)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert where.inner_text() == "step 4 of 5"
    page.get_by_role("button", name="all 16").click()
    assert shown.locator("tbody tr").first.locator("td").count() == 16
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("button", name="Next").is_disabled()
    assert shown.locator("canvas").first.is_visible()
    page.get_by_role("button", name="All", exact=True).click()
    assert (where.inner_text(), shown.count()) == ("all 5 steps", 5)
    page.get_by_role("button", name="Step 4").click()
    assert shown.locator("tbody tr").first.locator("td").count() == 16


def test_numbers_are_shown_in_four_digits_with_the_whole_number_beside(open_page: Any, saved: Saved) -> None:
    view = steps()
    page = open_page(saved(view.to_html()))
    page.get_by_role("button", name="All", exact=True).click()
    for key, title in (("scores", "Scores"), ("wide", "Wide")):
        values = view[key].values
        panel = page.get_by_role("region", name=title, exact=True)
        if values.shape[1] > 8:
            assert panel.locator("tbody tr").first.locator("td.number").count() == 4
            panel.get_by_role("button", name="all 16").click()
        for number, row in enumerate(values):
            cells = panel.locator("tbody tr").nth(number).locator("td")
            for place, value in enumerate(row):
                cell = cells.nth(place)
                text, title_of = cell.inner_text(), cell.get_attribute("title")
                if np.isnan(value):
                    assert (text, title_of) == ("·", "masked")
                else:
                    assert float(title_of) == value
                    assert float(text) == float(f"{value:.4g}")
    expect(page.locator("td.marked")).to_have_count(1)


def test_a_token_shows_its_own_ribbons_and_their_weights(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(attention(head=1).to_html()))
    lower = page.locator(".tokens.lower button")
    wait_until(page, RIBBONS, arg=[5, 1000])
    lower.nth(3).hover()
    wait_until(page, RIBBONS, arg=[1, 4])
    shares = page.locator(".tokens.upper .share").all_inner_texts()
    weights = weights_of(1)[3]
    for text, weight in zip(shares, weights, strict=True):
        assert text == "" if weight < 0.002 else float(text) == pytest.approx(weight, rel=0.06)
    lower.nth(3).click()
    page.mouse.move(0, 0)
    assert page_width(page) > 0  # two frames later
    wait_until(page, RIBBONS, arg=[1, 4])
    assert lower.nth(3).get_attribute("aria-pressed") == "true"


def test_bars_curves_and_tables_show_their_numbers(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(attention().to_html()))
    assert page.locator(".bars .number").all_inner_texts() == ["0.5", "0.25", "-0.125"]
    expect(page.locator(".bars .negative")).to_have_count(1)
    page.locator(".chart").focus()
    page.keyboard.press("End")
    assert page.locator(".series .number").all_inner_texts() == ["0.5", "0.1"]
    page.get_by_role("button", name="entropy").click()
    assert page.locator(".listing td.number").all_inner_texts() == ["0.7", "0.1"]
    page.get_by_role("button", name="entropy").click()
    assert page.locator(".listing td.number").all_inner_texts() == ["0.1", "0.7"]
    assert page.locator(".listing th").nth(1).get_attribute("aria-sort") == "ascending"


def test_panels_without_anything_in_them_are_drawn_beside_the_others(open_page: Any, saved: Saved) -> None:
    nothing = np.zeros((0, 0))
    panels = [
        Bars(title="Bars", names=[], values=[]),
        Curves(title="Curves", lines={}),
        Listing(title="Listing", columns=[], rows=[]),
        Numbers(title="Numbers", values=nothing),
        Heat(title="Heat", weights=nothing),
        Links(title="Links", weights=nothing, upper=[], lower=[]),
    ]
    page = open_page(saved(View("Nothing", panels, name="view").to_html()))
    assert page.locator(".panel h3").all_inner_texts() == [panel.title for panel in panels]
    assert page.get_by_role("region", name="Bars").inner_text().split("\n")[-1] == "no values"


@pytest.mark.parametrize("dark", [False, True])
def test_a_hostile_sentence_is_shown_as_text_everywhere(open_page: Any, saved: Saved, dark: bool) -> None:
    word = HOSTILE.replace(" ", "_")
    hostile = attention(f"{word} two three")
    panels = [replace(panel, title=HOSTILE, note=HOSTILE) for panel in (*hostile.panels, *steps(HOSTILE).panels)]
    view = replace(hostile, name="steps", title=HOSTILE, caveat=HOSTILE, panels=panels)
    page = open_page(saved(view.to_html()), dark=dark)
    page.locator(".plane").first.focus()
    page.keyboard.press("ArrowDown")
    page.locator("details summary").first.click()
    page.get_by_role("button", name="All", exact=True).click()
    assert page.title() != "owned"
    expect(page.locator("img, body script ~ script ~ script, main script")).to_have_count(0)
    text = page.locator("main").inner_text()
    assert text.count("<img src=x onerror=") > 20
    assert page.evaluate("document.querySelectorAll('[onerror]').length") == 0


def test_light_and_dark_follow_the_reader(open_page: Any, saved: Saved) -> None:
    seen = {}
    for dark in (False, True):
        page = open_page(saved(attention().to_html()), dark=dark)
        look = page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
        pixel = "[...document.querySelector('.strip').getContext('2d').getImageData(0, 0, 1, 1).data].slice(0, 3)"
        seen[dark] = [sum(map(int, part[4:-1].split(","))) for part in look] + [sum(page.evaluate(pixel))]
    ground, ink, weightless = zip(seen[False], seen[True], strict=True)
    assert ground[0] > 600 > 200 > ground[1]
    assert ink[0] < 200 < 500 < ink[1]
    assert weightless[0] > 600 > 200 > weightless[1]


def test_without_scripts_the_file_still_says_what_it_is(browser: Any, saved: Saved) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(saved(attention().to_html()))
    assert "Attention of head 1" in page.locator("body").inner_text()
    context.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_sticks_out_of_a_narrow_page(open_page: Any, saved: Saved, width: int) -> None:
    panels = [panel for view in (attention(), steps(), large(60)) for panel in view.panels]
    page = open_page(saved(View("Three", panels, name="view").to_html()), width=width)
    wait_until(page, "document.querySelectorAll('.plane canvas')[0].width > 50")
    assert page_width(page) <= width
