"""The maps of all heads at once, and a picture under the weights of its words, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from picture_book import Book
from playwright.sync_api import expect

from browsing import page_width, wait_until
from open_lab import answering
from regard.explain.overlay import Overlay
from regard.explain.thumbnails import Thumbnails
from regard.explain.view import Heat, View
from regard.serving.lab import Lab

Saved = Callable[[str], str]
READS = ("willReadFrequently",)  # a test may read pixels again and again
PIXEL = """([name, number, x, y]) => {
  const canvas = document.querySelectorAll(name)[number];
  const [left, top] = [Math.floor(x * canvas.width), Math.floor(y * canvas.height)];
  return [...canvas.getContext("2d").getImageData(left, top, 1, 1).data].slice(0, 3);
}"""
LAYERS, HEADS = 3, 4
WORDS = ("a", "small", "red", "circle")
LONG = "a small red circle in the middle of the picture and a green one beside it"


def maps_of(size: int) -> np.ndarray:
    score = np.random.default_rng(0).normal(size=(LAYERS * HEADS, size, size)) * 2
    score[:, *np.triu_indices(size, 1)] = -np.inf
    power = np.exp(score - score.max(-1, keepdims=True))
    return (power / power.sum(-1, keepdims=True)).astype(np.float32)


def grid(size: int = 10) -> View:
    """Twelve heads whose entropy falls as their numbers rise; the first two look back, the third at itself."""
    places = [(layer + 1, head + 1) for layer in range(LAYERS) for head in range(HEADS)]
    words = [f"w{place}" for place in range(size)]
    panel = Thumbnails(
        title="The text at itself",
        key="heads",
        maps=maps_of(size),
        places=places,
        labels=[f"{layer}.{head}" for layer, head in places],
        names=["previous token", "previous token", "itself", *[""] * 9],
        figures={"entropy": [12.0 - number for number in range(12)], "first": [number / 12 for number in range(12)]},
        highs=[0.5] * 12,
        rows=words,
        columns=words,
        alone=("attention", "text"),
    )
    return View("Every head at once", [panel], {"heads": 12}, name="grid")


def overlay() -> View:
    """Four words, each at a square of its own of a picture whose left half is red."""
    picture = np.zeros((8, 8, 3), np.uint8)
    picture[:, :4, 0] = 255
    weights = np.full((4, 2, 2), 0.1)
    for word in range(4):
        weights[word, word // 2, word % 2] = 0.7
    return View("Where it looks", [Overlay(title="Picture", picture=picture, weights=weights, words=WORDS)])


class Shown(Book):
    """A run whose heads are seen at once, and one by one."""

    def view(self, run: str, name: str | None, text: str, options: Mapping[str, Any]) -> View:
        if name == "attention":
            self.asked.append((text, dict(options)))
            return View("Alone", [Heat(weights=np.eye(2))], name="attention")
        return grid(80)

    def offer(self, run: str) -> dict[str, Any]:
        views = {"grid": "all heads", "attention": "one head"}
        return {"views": views, "limits": dict.fromkeys(views, 1000), "example": "a b"}


@pytest.fixture
def shown() -> Iterator[tuple[Lab, Shown]]:
    book = Shown()
    with answering(book) as server:
        yield server, book


def labels(page: Any) -> list[str]:
    return [text.split()[0] for text in page.locator(".thumb small").all_inner_texts()]


def is_painted(page: Any) -> None:
    wait_until(page, "[...document.querySelectorAll('.thumb canvas')].every((one) => one.width === 10)")


def shown_row(page: Any) -> list[float]:
    return [float(text) for text in page.locator(".opened .row .number").all_inner_texts()]


def test_every_head_is_there_in_its_layer_and_its_weights_are_shades(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(grid().to_html()), expects=READS)
    is_painted(page)
    assert labels(page) == [f"{layer}.{head}" for layer in range(1, 4) for head in range(1, 5)]
    tops = [round(box.bounding_box()["y"]) for box in page.locator(".thumb").all()]
    assert len(set(tops)) == LAYERS
    # A cell above the diagonal is masked: it has the shade of no weight; the heaviest is the darkest.
    weights = maps_of(10)
    for number in (0, 7, 11):
        row, column = np.unravel_index(int(weights[number].argmax()), (10, 10))
        assert sum(page.evaluate(PIXEL, [".thumb canvas", number, 0.95, 0.05])) > 700
        place = [(column + 0.5) / 10, (row + 0.5) / 10]
        assert sum(page.evaluate(PIXEL, [".thumb canvas", number, *place])) < 250


def test_heads_are_sorted_and_those_of_a_name_shown_alone(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(grid().to_html()))
    is_painted(page)
    page.get_by_label("sorted by").select_option("entropy")
    assert labels(page)[:3] == ["3.4", "3.3", "3.2"]  # the sharpest first
    page.get_by_label("sorted by").select_option("first")
    assert labels(page)[0] == "3.4"  # the most
    page.get_by_label("sorted by").select_option("name")
    assert labels(page)[:4] == ["1.1", "1.2", "1.3", "1.4"]
    page.get_by_role("button", name="previous token 2").click()
    assert labels(page) == ["1.1", "1.2"]
    page.get_by_role("button", name="previous token 2").click()
    assert len(labels(page)) == 12


def test_pointing_names_a_head_with_its_figures_and_a_click_opens_it_large(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(grid().to_html()))
    is_painted(page)
    page.locator(".thumb").nth(1).hover()
    expect(page.locator(".thumbnails .told")).to_have_text("Layer 1, head 2: previous token. entropy 11, first 0.0833")
    page.locator(".thumb").nth(5).click()
    page.locator(".opened h4", has_text="Layer 2, head 2").wait_for()
    page.locator(".opened .plane").focus()
    page.keyboard.press("End")
    np.testing.assert_allclose(shown_row(page), maps_of(10)[5, 9], atol=1 / 255)  # a file holds eight bits of each
    expect(page.locator(".opened .row .unit").last).to_have_text("to within 0.003922")
    page.locator(".opened").get_by_role("button", name="Close").click()
    expect(page.locator(".opened")).to_be_hidden()
    expect(page.locator(".thumb").nth(5)).to_be_focused()


def test_heads_are_walked_by_arrow_keys(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(grid().to_html()))
    is_painted(page)
    page.locator(".thumb").first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    expect(page.locator(".thumb").nth(10)).to_be_focused()  # the last line's last, and one to the left
    page.keyboard.press("Enter")
    page.locator(".opened h4", has_text="Layer 3, head 3").wait_for()
    assert page.locator(".thumb[tabindex='0']").count() == 1


def test_a_head_of_a_long_text_is_opened_in_blocks_in_a_file_and_in_full_in_the_lab(
    open_page: Any, saved: Saved, shown: tuple[Lab, Shown]
) -> None:
    server, book = shown
    page = open_page(saved(grid(80).to_html()))
    wait_until(page, "document.querySelector('.thumb canvas').width === 40")
    page.locator(".thumb").nth(5).click()
    assert "largest weight of 2 x 2" in page.locator(".opened .legend").inner_text()
    page.locator(".opened .plane").focus()
    page.keyboard.press("End")
    assert page.locator(".opened .row h4").inner_text().startswith("w78 … w79")
    page = open_page(server.url)
    wait_until(page, "() => document.querySelector('.thumb canvas')?.width === 40")
    page.locator(".thumb").nth(5).click()
    page.locator(".opened .plane").focus()
    page.keyboard.press("End")
    page.locator(".opened .row h4", has_text="w79").wait_for()
    weights = sorted(maps_of(80)[5, 79], reverse=True)
    np.testing.assert_allclose(sorted(shown_row(page), reverse=True)[:12], weights[:12], rtol=5e-4)
    page.get_by_role("button", name="Its own view").click()
    page.get_by_role("heading", name="Alone").wait_for()
    assert book.asked[-1] == ("a b", {"layer": 2, "head": 2, "side": "text"})


class Fewer(Shown):
    """Of a second text two heads alone are seen, and none has a name."""

    def view(self, run: str, name: str | None, text: str, options: Mapping[str, Any]) -> View:
        view = grid(10)
        if text == "a b":
            return view
        (panel,) = view.panels
        assert isinstance(panel, Thumbnails)
        told = {name: list(getattr(panel, name))[:2] for name in ("places", "labels", "highs")}
        figures = {name: list(values)[:2] for name, values in panel.figures.items()}
        return replace(view, panels=[replace(panel, maps=panel.maps[:2], names=["", ""], figures=figures, **told)])


def test_a_name_and_a_head_that_another_text_has_not_are_let_go(open_page: Any) -> None:
    with answering(Fewer()) as server:
        page = open_page(server.url)
        is_painted(page)
        page.locator(".thumb").nth(11).click()
        page.get_by_role("button", name="previous token 2").click()
        assert labels(page) == ["1.1", "1.2"]
        page.get_by_role("textbox", name="Text").fill("c d")
        page.get_by_role("textbox", name="Text").press("Enter")
        expect(page.locator(".chips button")).to_have_count(0)
        is_painted(page)
        assert labels(page) == ["1.1", "1.2"]
        expect(page.locator(".opened")).to_be_hidden()


def colour(page: Any, x: float, y: float) -> list[int]:
    return page.evaluate(PIXEL, [".under canvas", 0, x, y])


def test_a_picture_is_bright_where_a_word_looks_and_dim_elsewhere(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(overlay().to_html()), expects=READS)
    wait_until(page, "document.querySelector('.under canvas').width > 300")
    bright, dim = colour(page, 0.1, 0.1), colour(page, 0.1, 0.9)
    assert bright[0] > 220 > 180 > dim[0]  # red under the warm veil, and under the dark one
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".scene .now")).to_have_text("small")
    assert colour(page, 0.1, 0.1)[0] < 180
    page.keyboard.press("ArrowRight")
    expect(page.locator(".scene .told")).to_have_text("red3 of 4: most of its weight at row 2, column 1, 0.7")
    page.locator(".film .frame").nth(3).click()
    expect(page.locator(".film [aria-current=step]")).to_have_text("circle")
    assert page.get_by_role("button", name="Next").is_disabled()
    box = page.locator(".under canvas").bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.8 * box["height"])
    expect(page.locator(".scene .told")).to_have_text("circlerow 2, column 1: 0.1")


def test_words_are_played_one_after_the_other_to_the_last(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(overlay().to_html()))
    page.clock.install()
    page.reload()
    wait_until(page, "document.querySelector('.under canvas').width > 300")
    page.get_by_role("button", name="Play").click()
    for word in WORDS[1:]:
        page.clock.run_for(900)
        expect(page.locator(".scene .now")).to_have_text(word)
    page.clock.run_for(900)
    page.get_by_role("button", name="Play").click()  # it has ended, and begins again
    expect(page.locator(".scene .now")).to_have_text("a")
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    expect(page.locator(".scene .now")).to_have_text("a")


def test_squares_are_drawn_as_they_are_where_that_is_wanted(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(overlay().to_html()), expects=READS)
    wait_until(page, "document.querySelector('.under canvas').width > 300")
    soft = [colour(page, x, 0.1) for x in (0.3, 0.4)]
    assert soft[0] != soft[1]
    page.get_by_label("the 2 x 2 squares as they are").check()
    sharp = [colour(page, x, 0.1) for x in (0.3, 0.4)]
    assert sharp[0] == sharp[1]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1200, 400])
def test_nothing_sticks_out(open_page: Any, saved: Saved, width: int, dark: bool) -> None:
    (picture,) = overlay().panels
    view = View("Both", [*grid().panels, replace(picture, words=[LONG, *WORDS[1:]])], name="view")
    page = open_page(saved(view.to_html()), width=width, dark=dark)
    is_painted(page)
    # Not even before the map that is opened knows how much room it has.
    opens = "document.querySelectorAll('.thumb')[6].click(), document.documentElement.scrollWidth"
    assert page.evaluate(opens) <= width
    page.locator(".opened .plane").wait_for()
    assert page_width(page) <= width
