"""Small things that a reader of the page of `regard lab` expects, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from picture_book import LIMIT, Book
from playwright.sync_api import expect

from browsing import page_width, wait_until
from open_lab import answering
from regard.errors import TooLong
from regard.explain.view import Heat, Listing, Numbers, View
from regard.serving.api import LONGEST
from regard.serving.lab import Lab

TOKENS = [" ", "a ", "\n", "b"]


class Odd(Book):
    """Tokens that are blanks, facts of every kind, and very many runs."""

    def runs(self) -> list[dict[str, Any]]:
        names = [f"a-comparison-of-long-names/model-{number}" for number in range(60)]
        about = {"model": "ngram", "task": "text"}
        return [{"name": f"runs/{name}", "label": name, "path": f"runs/{name}"} | about for name in names]

    def view(self, run: str, name: str | None, text: str, options: Mapping[str, Any]) -> View:
        if len(text.split(" ")) > LIMIT:
            raise TooLong(f"the text has {len(text.split(' '))} tokens", LIMIT, len(" ".join(text.split(" ")[:LIMIT])))
        if name == "steps":
            return View("Steps", [Numbers(values=np.eye(4), rows=TOKENS, columns=TOKENS)], {}, name="steps")
        facts = {"log_prob": -17.705966584608223, "tokens": [{"text": "a"}], "rules": {"a": 1}, "pharaoh": "0-0 1-2"}
        shown = View("Blanks", [Heat(weights=np.eye(4), rows=TOKENS, columns=TOKENS)], facts, name="attention")
        return super().view(run, name, text, options) if text == "refuse" else shown


@pytest.fixture
def odd() -> Iterator[Lab]:
    with answering(Odd()) as server:
        yield server


def test_facts_are_short_and_those_for_programs_stay_away(open_page: Any, odd: Lab) -> None:
    page = open_page(odd.url)
    page.get_by_role("heading", name="Blanks").wait_for()
    chips = page.locator(".about div")
    assert [" ".join(text.split()) for text in chips.all_inner_texts()] == ["log prob -17.71", "pharaoh 0-0 1-2"]
    assert "counted from 0" in chips.nth(1).get_attribute("title")


@pytest.mark.parametrize("view", ["attention", "steps"])
def test_blanks_can_be_seen(view: str, open_page: Any, odd: Lab) -> None:
    page = open_page(f"{odd.url}#run=runs/a-comparison-of-long-names/model-0&view={view}&text=x")
    page.locator(".view").wait_for()
    if view == "attention":
        page.locator(".plane").focus()
        page.keyboard.press("Home")
        page.get_by_text("As a table").click()
    names = page.locator(".token").all_inner_texts()
    assert {"␣", "a␣", "\\n", "b"} <= set(names)
    assert not [name for name in names if not name.strip()]


def test_a_view_that_answers_another_question_is_greyed(open_page: Any, odd: Lab) -> None:
    page = open_page(odd.url, expects=("400",))
    page.get_by_role("heading", name="Blanks").wait_for()
    opacity = "one => getComputedStyle(one).opacity"
    assert page.locator(".shown").evaluate(opacity) == "1"
    page.get_by_label("Text").fill("refuse")
    page.get_by_role("button", name="Look inside").click()
    page.get_by_role("alert").filter(has_text="the model's window").wait_for()
    assert float(page.locator(".shown").evaluate(opacity)) < 0.5
    expect(page.get_by_text("Below, in grey, is the view before.")).to_be_visible()
    page.get_by_label("Text").fill("good")
    page.get_by_role("button", name="Look inside").click()
    expect(page.get_by_role("alert")).to_be_hidden()
    page.locator("main[aria-busy=false]").wait_for()
    wait_until(page, "getComputedStyle(document.querySelector('.shown')).opacity === '1'")


def test_the_beginning_of_a_text_of_any_length_is_offered(open_page: Any, odd: Lab) -> None:
    page = open_page(odd.url, expects=("413",))
    page.get_by_role("heading", name="Blanks").wait_for()
    for size, told, name in (
        (2 * LONGEST, f"400,000 characters, and the view takes at most {LIMIT} tokens", f"first {LIMIT} tokens"),
        (1_200_000, "bytes, and 1,048,576 are the most: give a shorter text", "first 10,000 char"),
    ):
        page.get_by_label("Text").fill("a " * (size // 2))
        page.get_by_role("button", name="Look inside").click()
        page.get_by_role("alert").filter(has_text=told).wait_for()
        page.get_by_role("button", name=f"Look at the {name}").wait_for()
    page.get_by_role("button", name="Look at the first 10,000 char").click()
    page.get_by_role("button", name=f"Look at the first {LIMIT} tokens").click()
    page.locator("main[aria-busy=false]").wait_for()
    expect(page.get_by_role("alert")).to_be_hidden()


def test_worked_examples_are_in_sight_below_many_runs_and_boxes_stand_before_their_names(
    open_page: Any, odd: Lab
) -> None:
    page = open_page(odd.url)
    page.get_by_role("heading", name="Blanks").wait_for()
    heading = page.get_by_role("heading", name="Worked examples").bounding_box()
    assert heading["y"] < 700
    page.get_by_role("link", name="Learning curves").click()
    page.locator(".boxes").wait_for()
    box = page.locator(".boxes input").first.bounding_box()
    words = page.locator(".boxes label span").first.bounding_box()
    assert box["x"] + box["width"] < words["x"]
    assert abs(box["y"] - words["y"]) < 8
    assert words["height"] > 1.5 * box["height"]  # it wraps, and the second line begins below the first


@pytest.mark.parametrize("width", [400, 1280])
def test_a_word_in_a_table_is_broken_only_where_it_is_wider_than_a_page(
    width: int, open_page: Any, saved: Callable[[str], str]
) -> None:
    rows = [["runs/stories", 12, 4.05, 4.05, 5.48], ["x" * 300, 1, 1.0, 1.0, 1.0]]
    columns = ["run", "evaluations#", "last loss#", "lowest loss#", "highest loss#"]
    page = open_page(saved(View("Curves", [Listing(columns=columns, rows=rows)], {}).to_html()), width=width)
    short, long = (page.locator("td .token").nth(place).bounding_box() for place in (0, 1))
    assert short["height"] < 30
    assert long["width"] < 400
    assert page_width(page) <= width
