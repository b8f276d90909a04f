"""Lectures on the page of `regard lab` and in a file, and show mode, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from picture_book import HOSTILE, Book, sitting
from playwright.sync_api import expect

from browsing import page_width, wait_until
from regard.charts import markup
from regard.errors import DataError
from regard.explain.render.lecture import lecture_html
from regard.serving.lab import Lab, web_files


def titles(page: Any) -> str:
    return page.locator(".show .slide > h1").inner_text()


def slide(page: Any) -> Any:
    return page.locator(".show .slide")


def count(page: Any) -> Any:
    return page.locator(".show .count")


def shown(open_page: Any, lab: Lab, screen: int = 1, **given: Any) -> Any:
    page = open_page(f"{lab.url}#show=counting&screen={screen}", **given)
    page.locator(".show .slide").wait_for()
    return page


def test_lectures_are_listed_and_one_is_read_as_a_page(open_page: Any, lab: Lab) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention").wait_for()
    page.get_by_role("link", name="Lectures", exact=True).click()
    page.get_by_role("article", name="Lectures").wait_for()
    assert "How far does counting get?" in page.get_by_role("main").inner_text()
    page.get_by_role("main").get_by_role("link", name="Counting").click()
    page.locator("article.lecture").wait_for()
    assert page.title() == "Counting · regard lab"
    assert page.locator(".contents li").count() == 4
    page.get_by_role("link", name="Yours").click()
    expect(page.get_by_role("heading", name="Yours")).to_be_in_viewport()
    assert page.url.endswith("#lecture=counting")


def test_a_broken_notebook_is_told_where_lectures_are_and_keeps_nobody_from_runs(
    open_page: Any, lab: Lab, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> list[dict[str, Any]]:
        raise DataError("04-gates.ipynb: no notebook")

    monkeypatch.setattr(book, "lectures", broken)
    page = open_page(lab.url, expects=("400",))
    page.get_by_role("heading", name="Attention").wait_for()
    page.get_by_role("link", name="Lectures", exact=True).click()
    page.get_by_role("alert").filter(has_text="04-gates.ipynb: no notebook").wait_for()


def test_formulas_are_set_and_words_of_a_lecture_stay_words(open_page: Any, lab: Lab) -> None:
    page = open_page(f"{lab.url}#lecture=counting")
    page.locator("article.lecture").wait_for()
    assert page.evaluate("document.querySelector('math').namespaceURI") == "http://www.w3.org/1998/Math/MathML"
    limits = page.locator("math munderover > *")
    below, above = limits.nth(1).bounding_box(), limits.nth(2).bounding_box()
    assert below["y"] > above["y"]
    assert page.title() == "Counting · regard lab"  # and not "owned"
    assert page.locator(".lecture :is(script, [onerror], iframe, object, embed, style)").count() == 0
    assert page.locator(".prose", has_text="</script>").count() == 1
    assert HOSTILE.partition(" ")[0] in page.locator(".printed").inner_text()


def test_a_solution_is_behind_a_click_and_code_can_be_copied(open_page: Any, lab: Lab) -> None:
    page = open_page(f"{lab.url}#lecture=counting")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_text("Solution").wait_for()
    assert not page.get_by_text("It is 2.").is_visible()
    page.get_by_text("Solution").click()
    expect(page.get_by_text("It is 2.")).to_be_visible()
    assert page.locator(".kind", has_text="exercise").is_visible()
    page.locator(".solution .copy").click()
    expect(page.locator(".solution .copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "mine = 2"


def test_a_picture_of_a_lecture_is_played_with_where_its_run_is_alive(open_page: Any, lab: Lab, book: Book) -> None:
    page = open_page(f"{lab.url}#lecture=counting")
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    page.get_by_label("head", exact=True).select_option("2")
    page.get_by_role("heading", name="Attention of head 2").wait_for()
    assert book.asked[-1] == ([1, 0, 0], {"head": 2})
    book.sat[0] |= {"is_live": False}
    page.reload()
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    assert page.get_by_label("head", exact=True).count() == 0
    page.get_by_role("button", name="Run it again").click()
    page.locator("main[aria-busy=false]").wait_for()
    assert book.asked[-1] == ("counting", True)


def test_a_lecture_that_is_being_run_says_how_far_it_is_and_one_that_failed_why(
    open_page: Any, lab: Lab, book: Book
) -> None:
    waits, runs = {"screen": 0, "of": 0, "waits_for": "Windows"}, {"screen": 3, "of": 4}
    book.sat[:0] = [*[waits] * 3, *[runs] * 3]
    page = open_page(f"{lab.url}#lecture=counting", expects=("400",))
    page.get_by_text("It waits until Windows has run.").wait_for()
    page.get_by_text("screen 3 of 4 has run").wait_for()
    page.locator("article.lecture").wait_for()
    page.get_by_role("link", name="2 </script>").click()
    page.get_by_role("alert").filter(has_text="cell 1: NameError: no").wait_for()


def test_keys_go_through_the_screens_and_the_address_follows(open_page: Any, lab: Lab) -> None:
    page = shown(open_page, lab)
    expect(count(page)).to_contain_text("1 / 4")
    assert titles(page) == "Counting"
    for key, title, number in (
        ("ArrowRight", "A picture", 2),
        ("ArrowLeft", "Counting", 1),
        ("End", "Yours", 4),
        ("Backspace", "Steps", 3),
        ("Home", "Counting", 1),
        ("ArrowLeft", "Counting", 1),
    ):
        page.keyboard.press(key)
        assert titles(page) == title
        assert page.url.endswith(f"#show=counting&screen={number}")
    page.keyboard.press("4")
    expect(count(page)).to_have_text("→ 4")
    page.keyboard.press("Enter")
    assert titles(page) == "Yours"
    page.keyboard.press("Escape")
    page.locator("article.lecture").wait_for()
    assert page.url.endswith("#lecture=counting")
    assert page.locator(".show").count() == 0


def test_steps_of_a_calculation_come_before_the_next_screen(open_page: Any, lab: Lab) -> None:
    page = shown(open_page, lab, 3)
    for step in range(2, 6):
        page.keyboard.press("ArrowRight")
        page.get_by_text(f"step {step} of 5").wait_for()
    page.keyboard.press("ArrowRight")
    assert titles(page) == "Yours"
    page.keyboard.press("ArrowLeft")
    page.get_by_text("step 5 of 5").wait_for()


def test_space_goes_down_a_long_screen_before_it_goes_on(open_page: Any, lab: Lab) -> None:
    page = shown(open_page, lab, 2, width=400)
    slide(page).locator(".plane canvas").wait_for()
    page.wait_for_timeout(300)
    page.keyboard.press("Space")
    assert titles(page) == "A picture"
    wait_until(page, "document.querySelector('.hall').scrollTop > 100")
    for _ in range(20):
        page.keyboard.press("Space")
    assert titles(page) != "A picture"


def test_a_map_and_a_field_keep_their_keys_and_escape_leads_out_of_them(open_page: Any, lab: Lab) -> None:
    page = shown(open_page, lab, 2)
    page.locator(".show .plane").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    assert titles(page) == "A picture"
    page.locator(".row h4", has_text="cat").wait_for()
    page.keyboard.press("Escape")
    assert page.locator(".show").is_visible()
    page.keyboard.press("Home")
    assert titles(page) == "Counting"


def test_the_keys_are_told_and_buttons_and_swipes_do_the_same(open_page: Any, lab: Lab) -> None:
    page = shown(open_page, lab)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    assert titles(page) == "Counting"
    page.get_by_role("button", name="On (→)").click()
    assert titles(page) == "A picture"
    swipe = """([from, to]) => {
      const stage = document.querySelector(".hall");
      const at = (x) => new Touch({ identifier: 1, target: stage, clientX: x, clientY: 300 });
      stage.dispatchEvent(new TouchEvent("touchstart", { touches: [at(from)] }));
      stage.dispatchEvent(new TouchEvent("touchend", { changedTouches: [at(to)] }));
    }"""
    page.evaluate(swipe, [100, 300])
    assert titles(page) == "Counting"
    page.evaluate(swipe, [300, 290])
    assert titles(page) == "Counting"
    page.evaluate(swipe, [300, 100])
    assert titles(page) == "A picture"


@pytest.fixture
def both(open_page: Any, lab: Lab) -> tuple[Any, Any]:
    """The audience's window and the speaker's."""
    page = shown(open_page, lab)
    with page.context.expect_page() as opened:
        page.keyboard.press("s")
    speaker = opened.value
    speaker.locator(".show.speaks").wait_for()
    return page, speaker


def test_the_speaker_sees_the_notes_the_next_screen_and_a_clock(both: tuple[Any, Any]) -> None:
    page, speaker = both
    assert speaker.locator(".notes").inner_text() == "Begin slowly."
    assert speaker.locator(".preview > h3").inner_text() == "A picture"
    assert re.fullmatch(r"\d+:\d\d", speaker.locator(".passed").inner_text())
    assert not page.locator(".speaker").is_visible()
    assert titles(speaker) == "Counting"


def test_both_windows_go_in_step_whoever_leads(both: tuple[Any, Any]) -> None:
    page, speaker = both
    speaker.keyboard.press("ArrowRight")
    expect(page.locator(".show .slide > h1")).to_have_text("A picture")
    page.keyboard.press("End")
    expect(speaker.locator(".show .slide > h1")).to_have_text("Yours")
    expect(speaker.locator(".notes")).to_have_text("Wait.")
    assert "speaker=" in speaker.url
    assert "speaker=" not in page.url
    slide(speaker).get_by_text("Solution").click()
    expect(slide(page).get_by_text("It is 2.")).to_be_visible()
    slide(page).get_by_text("Solution").click()
    expect(slide(speaker).get_by_text("It is 2.")).to_be_hidden()


def test_what_is_changed_in_a_picture_is_changed_in_both_windows(both: tuple[Any, Any]) -> None:
    page, speaker = both
    speaker.keyboard.press("ArrowRight")
    slide(page).locator(".plane").wait_for()
    slide(speaker).locator(".plane").focus()
    for _ in range(3):
        speaker.keyboard.press("ArrowDown")
    expect(slide(page).locator(".row h4")).to_contain_text("row 4")
    slide(speaker).get_by_label("head", exact=True).select_option("3")
    slide(page).get_by_role("heading", name="Attention of head 3").wait_for()
    page.keyboard.press("ArrowRight")
    slide(speaker).get_by_text("step 1 of 5").wait_for()
    page.keyboard.press("ArrowRight")
    slide(speaker).get_by_text("step 2 of 5").wait_for()


def opened_again(page: Any) -> Any:
    """The speaker's window: it takes a moment until a page knows that the one before is closed."""
    for _ in range(100):
        page.keyboard.press("s")
        page.wait_for_timeout(100)
        others = [one for one in page.context.pages if one != page]
        if others:
            return others[0]
    raise AssertionError("no window was opened")


def test_a_window_that_comes_later_or_again_is_where_the_other_is(both: tuple[Any, Any]) -> None:
    page, speaker = both
    page.keyboard.press("End")
    slide(page).get_by_text("Solution").click()
    expect(slide(speaker).get_by_text("It is 2.")).to_be_visible()
    speaker.close()
    page.keyboard.press("Home")
    page.keyboard.press("End")
    again = opened_again(page)
    expect(again.locator(".show .slide > h1")).to_have_text("Yours")
    expect(slide(again).get_by_text("It is 2.")).to_be_visible()
    page.reload()
    again.keyboard.press("Home")
    expect(page.locator(".show .slide > h1")).to_have_text("Counting")


def test_both_windows_go_in_step_in_a_browser_that_keeps_nothing(open_page: Any, lab: Lab) -> None:
    page = shown(open_page, lab)
    refusing = "{ get() { throw new Error('kept') } }"
    page.context.add_init_script(f"Object.defineProperty(window, 'sessionStorage', {refusing})")
    page.reload()
    page.locator(".show .slide").wait_for()
    with page.context.expect_page() as opened:
        page.keyboard.press("s")
    opened.value.locator(".show.speaks").wait_for()
    page.keyboard.press("End")
    expect(opened.value.locator(".show .slide > h1")).to_have_text("Yours")


def test_shows_of_two_people_do_not_meet(open_page: Any, lab: Lab) -> None:
    one = shown(open_page, lab)
    other = one.context.new_page()
    other.goto(f"{lab.url}#show=counting&screen=1")
    other.locator(".show .slide").wait_for()
    one.keyboard.press("End")
    other.wait_for_timeout(200)
    assert titles(other) == "Counting"


def test_a_view_of_a_run_is_shown_large_and_played_with(open_page: Any, lab: Lab, book: Book) -> None:
    page = open_page(lab.url)
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    page.keyboard.press("p")
    page.locator(".show .plane").wait_for()
    expect(count(page)).to_contain_text("1 / 5")
    page.get_by_label("head", exact=True).focus()
    page.get_by_label("head", exact=True).select_option("3")
    expect(page.locator(".show .slide > h1")).to_have_text("Attention of head 3")
    assert book.asked[-1] == ("the small dog sees the cat", {"head": 3})
    page.keyboard.press("Escape")  # out of the choice
    page.keyboard.press("End")
    assert page.locator(".show .listing").is_visible()
    assert page.locator(".show .caveat").is_visible()
    with page.context.expect_page() as opened:
        page.keyboard.press("s")
    speaker = opened.value
    speaker.locator(".show .listing").wait_for()
    speaker.get_by_label("head", exact=True).select_option("2")
    expect(page.locator(".show .slide > h1")).to_have_text("Attention of head 2")
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Attention of head 2").wait_for()
    assert page.locator("#main .controls").is_visible()


def test_a_worked_example_is_shown_step_by_step(open_page: Any, lab: Lab) -> None:
    page = open_page(f"{lab.url}#example=ab")
    page.get_by_role("button", name="Show large").click()
    page.locator(".show", has_text="Who looks at A?").wait_for()
    page.keyboard.press("ArrowRight")
    page.locator(".show h3", has_text="Inputs").wait_for()
    assert page.url.endswith("#example=ab&screen=2")
    page.keyboard.press("Escape")
    page.get_by_text("step 1 of 5").wait_for()


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("dark", [False, True])
def test_screens_fit_a_phone_and_a_hall_by_day_and_night(width: int, dark: bool, open_page: Any, lab: Lab) -> None:
    page = shown(open_page, lab, width=width, dark=dark)
    sizes = []
    for _ in range(4):
        assert page_width(page) <= width
        assert page.evaluate("document.querySelector('.hall').scrollWidth") <= width
        sizes.append(page.evaluate("parseFloat(getComputedStyle(document.querySelector('.slide > h1')).fontSize)"))
        page.keyboard.press("PageDown")
        page.keyboard.press("End")
    assert min(sizes) > (20 if width == 400 else 26)
    look = "one => ((look) => [look.backgroundColor, look.color])(getComputedStyle(one))"
    ground, ink = page.locator(".show").evaluate(look)
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) / 3 for colour in (ground, ink)]
    assert (light[0] < 60 and light[1] > 200) if dark else (light[0] > 200 and light[1] < 60)
    page.keyboard.press("Escape")
    page.locator("article.lecture").wait_for()
    assert page_width(page) <= width


def test_a_lecture_in_a_file_is_read_and_shown_without_a_server(open_page: Any, saved: Callable[[str], str]) -> None:
    page = open_page(saved(lecture_html(sitting())))
    page.locator("article.lecture").wait_for()
    assert page.get_by_role("heading", name="Attention of head 1").is_visible()
    assert page.get_by_label("head", exact=True).count() == 0  # nobody is there to answer
    assert page.title() == "Counting"
    page.keyboard.press("p")
    page.keyboard.press("End")
    assert titles(page) == "Yours"
    page.reload()
    assert titles(page) == "Yours"
    page.keyboard.press("Escape")
    page.locator("article.lecture").wait_for()


def test_the_page_knows_the_same_markup_as_the_package() -> None:
    script = web_files()["/web/markup.js"].decode()

    def listed(name: str) -> set[str]:
        found = re.search(rf'const {name} = listed\(\s*"([^"]*)"', script)
        assert found is not None
        return set(found[1].split())

    assert listed("HTML_TAGS") == markup.HTML
    assert listed("MATH_TAGS") == markup.MATHML
    assert listed("ATTRIBUTES") == markup.ATTRIBUTES


@pytest.mark.parametrize(
    "node",
    [
        ["script", {}, "document.title = 'owned'"],
        ["img", {"src": "x", "onerror": "document.title = 'owned'"}],
        ["a", {"href": "javascript:document.title='owned'"}, "a"],
        ["a", {"href": "java\tscript:document.title='owned'"}, "a"],
        ["p", {"style": "position: fixed", "id": "lab"}, "a"],
        ["math", {}, ["annotation-xml", {"encoding": "text/html"}, ["script", {}, "document.title = 'owned'"]]],
        ["iframe", {"srcdoc": "<script>parent.document.title='owned'</script>"}],
    ],
)
def test_markup_that_is_not_on_the_list_is_not_made(node: list[Any], open_page: Any, lab: Lab, book: Book) -> None:
    told = sitting()
    told["screens"][0]["cells"] = [{"prose": [node]}]
    book.sat = [{"sitting": told, "is_live": True}]
    page = open_page(f"{lab.url}#lecture=counting", expects=("404",))
    page.locator("article.lecture").wait_for()
    inside = page.locator(".lecture .screen").first.inner_html()
    assert not re.search(r"<script|onerror|javascript:|style=|id=\"lab\"|iframe|annotation", inside)
    page.wait_for_timeout(50)
    assert page.title() == "Counting · regard lab"


def test_a_drawing_holds_shapes_alone(open_page: Any, lab: Lab, book: Book) -> None:
    told = sitting()
    hostile = (
        '<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=\'owned\'" viewBox="0 0 9 9"><script>x</script>'
        '<a href="javascript:x"><rect width="5" height="5" fill="red" onclick="x" style="x"/></a><circle r="2" '
        'fill="url(https://elsewhere.org)"/><image href="https://elsewhere.org/x.png"/><foreignObject/></svg>'
    )
    told["screens"][0]["cells"] = [
        {"code": "x", "outputs": [{"kind": "svg", "svg": hostile}, {"kind": "svg", "svg": "<b>no</b>"}]}
    ]
    book.sat = [{"sitting": told, "is_live": True}]
    page = open_page(f"{lab.url}#lecture=counting", expects=("inline event handler", "inline style"))
    page.locator(".drawing").first.wait_for()
    assert page.locator(".drawing").first.inner_html() == ('<svg viewBox="0 0 9 9"><circle r="2"></circle></svg>')
    assert page.locator(".drawing").nth(1).inner_text() == "This is no picture."
    assert page.title() == "Counting · regard lab"
