"""The diagram of a model on a page: what a reader sees, opens, chooses and turns, by mouse and by keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from browsing import page_width
from look_run import pair_run, seen, text_run
from regard.explain.looks.flow import flow
from regard.explain.view import View

OpenPage = Callable[..., Any]
SEEN = """() => {
  const canvas = document.querySelector("canvas.diagram");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let at = 0; at < pixels.length; at += 404) colours.add(pixels.slice(at, at + 3).join());
  return colours.size;
}"""
GROUND = """() => Array.from(
  document.querySelector("canvas.diagram").getContext("2d").getImageData(2, 2, 1, 1).data)"""
RATE = """async () => {
  const canvas = document.querySelector("canvas.diagram");
  canvas.focus();
  const times = [];
  for (let frame = 0; frame < 40; frame += 1) {
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: frame % 2 ? "ArrowRight" : "ArrowLeft", bubbles: true }));
    times.push(await new Promise(requestAnimationFrame));
  }
  return (1000 * (times.length - 1)) / (times.at(-1) - times[0]);
}"""
TIPS = """() => {
  const canvas = document.querySelector("canvas.diagram");
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const found = [];
  for (let y = 1; y < height; y += 2) for (let x = 1; x < width; x += 4) {
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: left + x, clientY: top + y }));
    const tip = document.querySelector(".tip");
    if (!tip.hidden) found.push([x, ...tip.textContent.split("\\n")]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def gpt() -> View:
    return seen(text_run("gpt", n_layers=4), flow)


def opened(open_page: OpenPage, saved: Callable[[str], str], view: View, **given: Any) -> Any:
    # To read a canvas often, as these tests do, a browser would have it elsewhere.
    page = open_page(saved(view.to_html()), expects=("willReadFrequently",), **given)
    page.wait_for_selector("canvas.diagram")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate(SEEN) > 12
    return page


def test_the_diagram_is_drawn_and_moves_smoothly(open_page: OpenPage, saved: Callable[[str], str], gpt: View):
    page = opened(open_page, saved, gpt)
    assert "ribbon" in page.locator(".flow .caption").inner_text()
    rate = page.evaluate(RATE)
    print(f"a diagram of 4 layers is moved at {rate:.0f} frames/s")
    assert rate > 10


@pytest.mark.parametrize(("width", "dark"), [(400, False), (400, True), (1200, True)])
def test_it_fits_its_page(open_page: OpenPage, saved: Callable[[str], str], gpt: View, width: int, dark: bool):
    page = opened(open_page, saved, gpt, width=width, dark=dark)
    assert page_width(page) <= page.evaluate("window.innerWidth")
    ground = page.evaluate(GROUND)
    assert (sum(ground[:3]) < 200) == dark


def test_every_part_is_reached_by_the_keyboard(open_page: OpenPage, saved: Callable[[str], str], gpt: View):
    page = opened(open_page, saved, gpt)
    page.locator("summary", has_text="as an outline").click()
    tree = page.get_by_role("tree")
    layer = tree.locator("[data-name='stack.layers.2']")
    assert layer.get_attribute("aria-expanded") == "false"
    layer.focus()
    page.keyboard.press("ArrowRight")
    assert layer.get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator(".inspector h4").first.inner_text() == "mixer norm"
    values = gpt.panels[0].node("stack.layers.2.mixer_norm").values
    page.locator(".inspector .as-table summary").click()
    told = page.locator(".inspector .as-table td.number").nth(1).inner_text()
    assert float(told) == pytest.approx(values[0][0][1], rel=1e-3)
    page.get_by_role("button", name="queries").click()
    assert "head 2" in page.locator(".inspector select").first.inner_text()


def test_a_temperature_turns_the_chances_at_once(open_page: OpenPage, saved: Callable[[str], str], gpt: View):
    page = opened(open_page, saved, gpt)
    answers = gpt.panels[0].answers
    place = gpt.panels[0].place
    slider = page.get_by_label("temperature")
    for temperature in (1.0, 0.5):
        slider.fill(str(temperature))
        told = float(page.locator(".answers .barlist .number").first.get_attribute("title"))
        assert told == pytest.approx(answers.chances(place, temperature)[0], rel=1e-4)
    page.get_by_label("top k").fill("1")
    assert page.locator(".answers .barlist .number").first.inner_text() == "1"
    page.get_by_label("position").select_option("1")
    page.get_by_label("top k").fill("0")
    slider.fill("1")
    told = float(page.locator(".answers .barlist .number").first.get_attribute("title"))
    assert told == pytest.approx(answers.chances(1)[0], rel=1e-4)


def test_the_numbers_are_followed_step_by_step(open_page: OpenPage, saved: Callable[[str], str], gpt: View):
    page = opened(open_page, saved, gpt)
    page.get_by_label("A step on").click()
    assert "text" in page.locator(".flow .caption").inner_text()
    page.get_by_label("A step on").click()
    assert "embedding" in page.locator(".flow .caption").inner_text()
    page.get_by_label("All at once").click()
    assert "ribbon" in page.locator(".flow .caption").inner_text()
    page.get_by_label("Play the way of the numbers").click()
    page.locator(".flow .caption", has_text="2 of").wait_for()


def test_encoder_and_decoder_stand_in_one_diagram(open_page: OpenPage, saved: Callable[[str], str]):
    page = opened(open_page, saved, seen(pair_run("transformer"), flow, target="the cat"), width=1200)
    page.locator("canvas.diagram").press("0")
    assert page.evaluate(SEEN) > 12
    page.locator("summary", has_text="as an outline").click()
    for side in ("encoder", "decoder"):
        page.locator(f"[data-name='{side}']").wait_for()


def test_heads_stand_side_by_side_in_a_small_map_each_with_its_rows(open_page: OpenPage, saved: Callable[[str], str]):
    view = seen(text_run("gpt"), flow)
    page = opened(open_page, saved, view)
    page.locator("canvas.diagram").press("0")
    node = view.panels[0].node("stack.layers.0.mixer.weights")
    labels = view.panels[0].sides["text"]
    found = [(x, told[0]) for x, name, *told in page.evaluate(TIPS) if name.startswith("weights") and told]
    places = {}
    for x, told in found:
        where, number = told.rsplit(": ", 1)
        head, word, column = where.split(", ")
        places.setdefault(head, []).append(x)
        rows = [row for row, label in enumerate(labels) if label == word.replace("␣", " ")]
        numbers = node.values[int(head[-1]) - 1, rows, int(column) - 1]
        assert np.isclose(numbers, float(number), atol=1e-3).any(), (where, number)
    assert set(places) == {"head 1", "head 2"}
    assert max(places["head 1"]) < min(places["head 2"])
