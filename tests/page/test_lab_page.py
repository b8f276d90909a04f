"""The page of `regard lab` in a real browser."""

from __future__ import annotations

import re
import threading
from typing import Any
from urllib.parse import quote_plus

import numpy as np
from picture_book import HOSTILE, LIMIT, Book, large, weights_of
from playwright.sync_api import expect

from regard.explain.view import View
from regard.serving.lab import Lab, web_files

MOST_BYTES = 300_000
NAMESPACES = {b"http://www.w3.org/2000/svg", b"http://www.w3.org/1998/Math/MathML"}


def bars(page: Any) -> list[float]:
    return [float(text) for text in page.locator(".row .barlist .number").all_inner_texts()]


def look_at_row(page: Any, downs: int) -> None:
    page.locator(".plane").focus()
    page.keyboard.press("Home")
    for _ in range(downs):
        page.keyboard.press("ArrowDown")


def test_the_page_opens_the_first_run_with_a_text_to_begin_with(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    assert page.get_by_label("Text").input_value() == "the small dog sees the cat"
    assert page.title() == "Attention of head 1 · regard lab"
    assert page.locator(".list a[aria-current=page] .name").inner_text() == "gpt"
    assert "which word looks at which" in page.locator(".question").inner_text()


def test_another_head_shows_its_own_weights_and_goes_into_the_address(open_page: Any, lab: Lab, book: Book) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    page.get_by_label("head", exact=True).select_option("3")
    page.get_by_role("heading", name="Attention of head 3").wait_for()
    look_at_row(page, 5)
    np.testing.assert_allclose(bars(page), weights_of(3)[5], rtol=5e-4, atol=1e-9)
    assert book.asked[-1] == ("the small dog sees the cat", {"head": 3})
    again = open_page(page.url)
    again.get_by_role("heading", name="Attention of head 3").wait_for()
    assert again.get_by_label("head", exact=True).input_value() == "2"  # the third choice


def test_a_map_can_be_walked_through_before_it_knows_how_much_room_it_has(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    page.evaluate("() => { window.ResizeObserver = class { observe() {} unobserve() {} disconnect() {} } }")
    page.get_by_label("head", exact=True).select_option("3")
    page.get_by_role("heading", name="Attention of head 3").wait_for()
    look_at_row(page, 5)
    np.testing.assert_allclose(bars(page), weights_of(3)[5], rtol=5e-4, atol=1e-9)
    page.keyboard.press("PageUp")
    page.keyboard.press("+")
    page.locator(".plane").hover()
    np.testing.assert_allclose(bars(page), weights_of(3)[0], rtol=5e-4, atol=1e-9)


def test_a_map_that_was_drawn_again_is_let_go(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    page.evaluate("window.first = new WeakRef(document.querySelector('.heat'))")
    for head in ("2", "3"):
        page.get_by_label("head", exact=True).select_option(label=head)
        page.get_by_role("heading", name=f"Attention of head {head}").wait_for()
    page.context.new_cdp_session(page).send("HeapProfiler.collectGarbage")
    assert page.evaluate("window.first.deref() === undefined")


def test_a_map_turns_dark_with_the_system(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    weightless = "document.querySelector('.strip').getContext('2d').getImageData(0, 0, 1, 1).data[0]"
    assert page.evaluate(weightless) > 200
    page.emulate_media(color_scheme="dark")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate(weightless) < 70


def test_a_text_is_asked_for_by_enter_and_back_leads_to_the_one_before(open_page: Any, lab: Lab, book: Book) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention").wait_for()
    page.get_by_label("Text").fill("one two three")
    page.get_by_label("Text").press("Enter")
    page.locator(".about", has_text="one two three").wait_for()
    assert book.asked[-1][0] == "one two three"
    page.go_back()
    page.locator(".about", has_text="the small dog").wait_for()


def test_a_new_text_keeps_what_was_chosen_but_not_a_position_in_the_text_before(
    open_page: Any, lab: Lab, book: Book
) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    position = page.get_by_label("position", exact=True)
    assert position.input_value() == "5"  # the last of six words

    def ask(text: str) -> None:
        page.get_by_label("Text").fill(text)
        page.get_by_label("Text").press("Enter")
        page.locator(".about", has_text=text).wait_for()

    page.get_by_label("head", exact=True).select_option(label="3")
    page.get_by_role("heading", name="Attention of head 3").wait_for()
    ask("one two three")
    assert book.asked[-1] == ("one two three", {"head": 3})
    assert position.input_value() == "2"
    position.select_option(label="2")
    page.wait_for_url("**position**")
    page.locator("main[aria-busy=false]").wait_for()  # two questions on the way may come in any order
    page.get_by_label("head", exact=True).select_option(label="2")
    page.get_by_role("heading", name="Attention of head 2").wait_for()
    assert book.asked[-1] == ("one two three", {"head": 2, "position": 2})
    page.get_by_role("button", name="Look inside").click()
    page.locator("main[aria-busy=false]").wait_for()
    assert "position" in page.url  # the same text
    ask("four")
    assert book.asked[-1] == ("four", {"head": 2})


def test_views_and_worked_examples_are_chosen(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention").wait_for()
    page.get_by_label("View", exact=True).select_option("steps")
    page.get_by_text("step 1 of 5").wait_for()
    page.locator(".list a", has_text="attention over A A B A").click()
    page.get_by_role("heading", name="Attention over A A B A").wait_for()
    assert page.get_by_label("Text").count() == 0 or not page.get_by_label("Text").is_visible()
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Next").click()
    page.get_by_text("step 2 of 5").wait_for()


def test_what_cannot_be_shown_is_said_and_the_last_view_stays(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url, expects=("400",))
    page.get_by_role("heading", name="Attention").wait_for()
    page.get_by_label("Text").fill("refuse this")
    page.get_by_role("button", name="Look inside").click()
    page.get_by_role("alert").filter(has_text="the model's window 8").wait_for()
    assert page.get_by_role("heading", name="Attention of head 1").is_visible()
    page.get_by_label("Text").fill("good again")
    page.get_by_label("Text").press("Enter")
    page.locator(".about", has_text="good again").wait_for()
    assert not page.get_by_role("alert").is_visible()


def test_the_answer_to_an_outdated_question_is_thrown_away(open_page: Any, lab: Lab, book: Book) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention").wait_for()
    held, answered = threading.Event(), book.view

    def slow(run: str, name: str | None, text: str, options: Any) -> View:
        if text == "slow":
            assert held.wait(10)
        return answered(run, name, text, options)

    book.view = slow  # pyright: ignore[reportAttributeAccessIssue]
    page.get_by_label("Text").fill("slow")
    page.get_by_label("Text").press("Enter")
    page.get_by_label("Text").fill("fast")
    page.get_by_label("Text").press("Enter")
    page.locator(".about", has_text="fast").wait_for()
    held.set()
    page.wait_for_timeout(300)
    assert page.locator(".about").inner_text().split()[1] == "fast"


def test_the_learning_curves_of_chosen_runs_are_on_the_same_axes(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url)
    page.get_by_role("link", name="Learning curves").click()
    page.get_by_role("heading", name="held-out loss").wait_for()
    expect(page.locator(".chart polyline")).to_have_count(3)
    page.locator(".boxes input:checked").last.uncheck()
    page.locator(".chart polyline").nth(2).wait_for(state="detached")
    expect(page.locator(".chart polyline")).to_have_count(2)
    assert page.url.count("curves=") == 2
    for left in (1, 0):
        page.locator(".boxes input:checked").last.uncheck()
        page.locator(".chart polyline").nth(left).wait_for(state="detached")
    page.get_by_text("No run is chosen.").wait_for()
    expect(page.locator(".boxes input:checked")).to_have_count(0)
    page.locator(".boxes input").first.check()
    page.locator(".chart polyline").wait_for()
    page.get_by_role("link", name="Learning curves").click()
    page.locator(".chart polyline").nth(2).wait_for()
    page.get_by_role("link", name="Look inside").click()
    page.get_by_role("heading", name="Attention").wait_for()


def test_a_server_that_has_gone_is_told_and_asked_again(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url, expects=("ERR_INTERNET_DISCONNECTED",))
    page.get_by_role("heading", name="Attention").wait_for()
    page.context.set_offline(True)
    page.get_by_label("head", exact=True).select_option("2")
    page.get_by_role("alert").filter(has_text="Start regard lab again").wait_for()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("heading", name="Attention of head 2").wait_for()
    assert not page.get_by_role("alert").is_visible()


def test_a_row_of_a_large_map_is_fetched_in_full(open_page: Any, lab: Lab) -> None:
    page = open_page(f"{lab.url}#run=runs/big&view=large")
    page.get_by_role("heading", name="Large").wait_for()
    assert page.locator(".overview").is_visible()
    look_at_row(page, 12)
    page.locator(".row .unit", has_text="to within").wait_for(state="detached")
    row = large(600)["map"].weights[12]
    np.testing.assert_allclose(sorted(bars(page)[:13], reverse=True), sorted(row[:13], reverse=True), rtol=5e-4)


def test_rows_of_a_map_that_came_smaller_are_fetched_in_full_as_they_are_seen(open_page: Any, lab: Lab) -> None:
    page = open_page(f"{lab.url}#run=runs/gpt&view=large")
    with page.expect_response("**/api/row") as rows:
        page.get_by_role("heading", name="Large").wait_for()
    assert len(rows.value.json()["weights"]["data"]) > 1500 * 4  # those that are seen, together
    weights = large(1500)["map"].weights
    look_at_row(page, 30)
    for number in (31, 1500):
        page.locator(".row h4", has_text=f"row {number}").wait_for()
        row = sorted(weights[number - 1], reverse=True)[:12]
        np.testing.assert_allclose(sorted(bars(page), reverse=True)[:12], row, rtol=5e-4)
        page.keyboard.press("End")


def test_the_box_says_how_many_tokens_the_text_has_and_how_many_the_view_takes(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url)
    size = page.locator(".size")
    expect(size).to_have_text("6 tokens; this view takes at most 2,000")
    page.get_by_label("Text").fill("word")
    expect(size).to_have_text("1 token; this view takes at most 2,000")
    page.get_by_label("View", exact=True).select_option("steps")
    expect(size).to_have_text(f"1 token; this view takes at most {LIMIT}")
    page.get_by_label("Text").fill(" ".join(["word"] * 2222))
    expect(size).to_have_text(f"2,222 tokens; this view takes at most {LIMIT}")
    expect(size).to_have_class("unit size over")


def test_a_text_that_is_too_long_is_refused_in_words_and_its_beginning_is_offered(
    open_page: Any, lab: Lab, book: Book
) -> None:
    page = open_page(f"{lab.url}#run=runs/gpt&view=steps&text=A", expects=("413",))
    page.get_by_text("step 1 of 5").wait_for()
    page.get_by_label("Text").fill(" ".join(["\N{GRINNING FACE}"] * 60))
    page.get_by_role("button", name="Look inside").click()
    page.get_by_role("alert").filter(has_text=f"has 60 tokens, and the view steps takes at most {LIMIT}").wait_for()
    page.get_by_role("button", name=f"Look at the first {LIMIT} tokens").click()
    page.locator("main[aria-busy=false]").wait_for()
    expect(page.get_by_role("alert")).to_be_hidden()
    assert page.get_by_label("Text").input_value() == " ".join(["\N{GRINNING FACE}"] * LIMIT)
    assert book.asked[-1][0] == " ".join(["\N{GRINNING FACE}"] * LIMIT)


def test_runs_that_appeared_are_listed_when_the_page_is_looked_at_again_or_asked(
    open_page: Any, lab: Lab, book: Book
) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    names = page.locator(".list a .name")
    before = names.count()
    book.new = ["my new #1 run"]
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(names.first).to_have_text("my new #1 run")
    assert page.locator(".list a[aria-current=page] .name").inner_text() == "gpt"
    book.new = ["newer & 100% +", *book.new]
    page.get_by_role("button", name="Look for new runs").click()
    expect(names).to_have_count(before + 2)
    names.first.click()
    page.wait_for_url("**run=runs%2Fnewer+%26+100%25+%2B**")
    expect(page.locator(".list a[aria-current=page] .name")).to_have_text("newer & 100% +")


def test_a_hostile_sentence_is_text_on_the_page_and_in_its_address(open_page: Any, lab: Lab) -> None:
    page = open_page(f"{lab.url}#run={quote_plus('runs/' + HOSTILE)}&text={quote_plus(HOSTILE)}&view=steps")
    page.get_by_text("step 1 of 5").wait_for()
    page.get_by_role("button", name="All", exact=True).click()
    assert "<img src=x onerror=" in page.locator("#main").inner_text()
    expect(page.locator("img")).to_have_count(0)
    assert "owned" not in page.title().split("<")[0]
    assert page.evaluate("document.scripts.length") == 1


def test_an_address_of_nonsense_still_opens_the_page(open_page: Any, lab: Lab) -> None:
    page = open_page(f"{lab.url}#options={{&nothing=%ff&view=attention")
    page.get_by_role("heading", name="Attention of head 1").wait_for()


def test_everything_is_reached_by_keyboard(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention").wait_for()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(({ activeElement: at }) => `${at.getAttribute('class')} ${at.tagName}`)(document)"))
    wanted = {"skip A", "tab A", "null TEXTAREA", "null SELECT", "ask BUTTON", "plane DIV", "chart svg"}
    assert wanted <= reached


def test_the_page_weighs_little_and_holds_no_address_of_elsewhere(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention").wait_for()
    got = page.evaluate("performance.getEntriesByType('resource').map(one => one.decodedBodySize)")
    assert len(got) > 10
    assert sum(got) + len(web_files()["/"]) < MOST_BYTES
    for name, content in web_files().items():
        assert set(re.findall(rb"https?://[^\"\s]*", content)) <= NAMESPACES, name
