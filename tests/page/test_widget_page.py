"""The module of the notebook's widget, drawn on a bare page as anywidget would, and the frame for exports."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from picture_book import HOSTILE, attention, weights_of
from playwright.sync_api import expect

from browsing import wait_until
from regard.explain.render.file import as_data, style, widget_module
from regard.explain.render.notebook import frame
from regard.explain.view import Control

BARE = """<!doctype html><meta charset="utf-8"><style>%s</style><div id="cell"></div>
<script type="application/json" id="state">%s</script>
<script type="module">
%s
const state = JSON.parse(document.getElementById("state").textContent);
const listeners = {};
window.saved = [];
window.model = {
  get: (name) => state[name],
  set: (name, value) => { state[name] = value; (listeners[`change:${name}`] ?? []).forEach((act) => act()); },
  save_changes: () => window.saved.push(state.asked),
  on: (event, act) => (listeners[event] ??= []).push(act),
  off: (event, act) => { listeners[event] = listeners[event].filter((one) => one !== act); },
};
const el = document.createElement("div");
window.end = exported.render({ model: window.model, el });
document.getElementById("cell").append(el); // a notebook draws first and attaches then
</script>"""
Saved = Callable[[str], str]


def bare(text: str) -> str:
    """A page that does what a notebook does with the widget."""
    module = widget_module().replace("export default", "const exported =")
    return BARE % (style(), as_data({"view": attention(text).to_page(), "failure": ""}), module)


def test_the_widget_asks_the_kernel_and_shows_its_answer_in_place(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(bare("the small dog sees the cat")))
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    page.get_by_label("shades").select_option("largest")
    page.get_by_label("head", exact=True).select_option("2")
    wait_until(page, "saved.length === 1")
    assert page.evaluate("saved[0].values") == {"head": 2}
    page.evaluate(f"model.set('view', {json.dumps(attention(head=2).to_page())})")
    page.get_by_role("heading", name="Attention of head 2").wait_for()
    assert page.get_by_label("shades").input_value() == "largest"  # what the reader chose stays
    page.locator(".plane").focus()
    page.keyboard.press("End")
    shown = [float(text) for text in page.locator(".row .barlist .number").all_inner_texts()]
    np.testing.assert_allclose(shown, weights_of(2)[-1], rtol=5e-4, atol=1e-9)
    page.get_by_label("position", exact=True).select_option(label="4")
    wait_until(page, "saved.length === 2")
    assert page.evaluate("saved[1].values") == {"head": 2, "position": 4}


def test_a_map_offers_to_hide_the_sink_where_no_control_of_the_view_does(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(bare("a b c")))
    page.get_by_label("hide sink").wait_for()
    sink = Control(name="hide_sink", label="Without the first", kind="toggle", value=False)
    view = replace(attention(head=2), controls=[sink])
    page.evaluate(f"model.set('view', {json.dumps(view.to_page())})")
    page.get_by_role("heading", name="Attention of head 2").wait_for()
    assert page.get_by_label("Without the first").is_visible()
    expect(page.get_by_label("hide sink")).to_have_count(0)
    alone = open_page(saved(view.to_html()))  # a file, which has nobody to answer a control
    assert alone.get_by_label("hide sink").is_visible()


def test_the_widget_tells_a_failure_and_lets_go_when_it_is_closed(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(bare("a b")))
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    page.evaluate("model.set('failure', 'no such head')")
    assert page.get_by_role("alert").inner_text() == "no such head"
    page.evaluate("end()")
    page.evaluate("model.set('failure', 'later')")
    assert page.get_by_role("alert").inner_text() == "no such head"


def test_a_hostile_sentence_is_text_in_the_widget(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(bare(HOSTILE)))
    page.get_by_role("heading", name="Attention of head 1").wait_for()
    expect(page.locator("img")).to_have_count(0)
    assert "onerror=" in page.locator(".about").inner_text()


def test_the_frame_for_exports_draws_without_a_kernel(open_page: Any, saved: Saved) -> None:
    page = open_page(saved(f"<!doctype html><meta charset='utf-8'>{frame(attention(HOSTILE))}"))
    inside = page.frame_locator("iframe")
    inside.get_by_role("heading", name="Attention of head 1").wait_for()
    assert inside.locator(".plane canvas").is_visible()
    assert inside.locator("img").count() == 0
