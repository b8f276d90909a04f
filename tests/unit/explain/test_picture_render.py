"""A view as a picture: every label and number is in it as text, and two pictures of one view are the same bytes."""

from __future__ import annotations

import errno
import io
import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from every_panel import HOSTILE, SCORES, WIDE, every_panel, with_labels
from PIL import Image

from regard.errors import ResourceError, UsageError
from regard.explain.render.file import save
from regard.explain.render.number import four
from regard.explain.render.picture import to_png, to_svg
from regard.explain.render.shade import BLUE, MASKED, ORANGE, colours
from regard.explain.view import Bars, Curves, Heat, Links, Listing, Note, Numbers, View
from regard.storage import disk
from regard.terminal.label import label

SVG = "{http://www.w3.org/2000/svg}"
EMPTY = (
    Heat(weights=np.zeros((0, 0))),
    Numbers(values=np.zeros((0, 3))),
    Links(weights=np.zeros((0, 0)), upper=(), lower=()),
    Bars(names=(), values=()),
    Bars(names=("a", "b"), values=(0.0, float("nan"))),
    Curves(lines={"a": [(0.0, float("nan"))]}),
    Curves(lines={"a": [(1.0, 1.0)]}, x_log=True, y_log=True),
    Listing(columns=(), rows=()),
    Note(text=""),
)


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def pixels(view: View, scale: float = 1) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(to_png(view, scale))).convert("RGB"))


def channels(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


@pytest.mark.parametrize("labels", [HOSTILE, WIDE], ids=["hostile", "wide"])
def test_every_label_is_in_the_file_as_text(labels: tuple[str, ...]):
    svg = to_svg(with_labels(labels))
    found = words(svg)
    for text in labels:
        assert found.count(label(text)) >= 5  # rows and columns of the map, both rows of links, bars
    assert "<script" not in svg
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", svg)


def test_the_file_asks_for_nothing_from_elsewhere():
    svg = to_svg(every_panel())
    assert set(re.findall(r"https?://[^\"' ]+", svg)) == {"http://www.w3.org/2000/svg"}
    assert "href" not in svg


def test_every_number_of_a_matrix_is_written():
    found = words(to_svg(View("Title", [Numbers(values=SCORES)], name="one")))
    for value in SCORES.ravel():
        assert four(value) in found
    assert found.count(".") == int(np.isnan(SCORES).sum())


def test_a_wide_matrix_is_cut_and_says_so():
    found = words(to_svg(View("Title", [Numbers(values=np.arange(900.0).reshape(3, 300))], name="one")))
    assert {"0", "299", "899"} <= set(found)
    assert "…" in found
    assert any(text.endswith("of 3 x 300 numbers") for text in found)


@pytest.mark.parametrize("view", [every_panel(), with_labels(WIDE)], ids=["every", "wide"])
def test_words_begin_and_end_within_the_picture(view: View):
    root = ElementTree.fromstring(to_svg(view))
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for element in root.iter(f"{SVG}text"):
        assert 0 <= float(element.attrib["x"]) <= width
        assert 0 <= float(element.attrib["y"]) <= height
    drawn = pixels(view)
    edges = np.concatenate([drawn[:, :8].ravel(), drawn[:, -8:].ravel(), drawn[-8:].ravel(), drawn[:8].ravel()])
    assert (edges == 255).all()


@pytest.mark.parametrize("scale", [1, 2, 1.5])
def test_a_png_has_the_size_of_the_drawing(scale: float):
    root = ElementTree.fromstring(to_svg(every_panel()))
    with Image.open(io.BytesIO(to_png(every_panel(), scale))) as picture:
        assert picture.format == "PNG"
        assert picture.size == (round(1280 * scale), round(float(root.attrib["height"]) * scale))


def test_the_same_view_gives_the_same_bytes():
    assert to_svg(every_panel()) == to_svg(every_panel())
    assert to_png(every_panel()) == to_png(every_panel())


def test_colours_are_even_in_lightness_and_both_signs_agree():
    def light(colour: str) -> float:
        linear = [(c / 255 / 12.92) if c < 11 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels(colour)]
        y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        return 116 * y ** (1 / 3) - 16 if y > (6 / 29) ** 3 else y * (29 / 3) ** 3

    for ramp in (BLUE, ORANGE):
        steps = [light(a) - light(b) for a, b in pairwise(ramp)]
        assert max(steps) - min(steps) < 1.5
    assert all(abs(light(a) - light(b)) < 1.5 for a, b in zip(BLUE, ORANGE, strict=True))


def test_a_share_has_the_colour_of_its_place():
    found = colours(np.array([0.0, 0.5, 1.0, -1.0, np.nan]))
    assert found.tolist() == [channels(colour) for colour in (BLUE[0], BLUE[4], BLUE[-1], ORANGE[-1], MASKED)]


def test_a_large_map_keeps_its_peak_and_says_what_a_cell_is():
    weights = np.zeros((2000, 1700))
    weights[1234, 567] = 1.0
    view = View("Title", [Heat(weights=weights)], name="large")
    svg = to_svg(view)
    assert any("2000 x 1700 weights; each cell is the largest of 5 x 5" in text for text in words(svg))
    assert re.search(rf'fill="{BLUE[-1]}" d="M{567 // 5} {1234 // 5}h1v1h-1z"', svg)
    assert len(svg) < 300_000
    root = ElementTree.fromstring(svg)
    place, size = re.findall(r"\(([^)]*)\)", next(root.iter(f"{SVG}g")).attrib["transform"])
    (x, y), (wide, tall) = (map(float, pair.split()) for pair in (place, size))
    centre = pixels(view, 2)[round(2 * (y + tall * 246.5)), round(2 * (x + wide * 113.5))]
    assert centre.tolist() == channels(BLUE[-1])


def test_a_longer_bar_is_a_larger_value_and_negative_ones_go_left():
    root = ElementTree.fromstring(to_svg(View("Title", [Bars(names="abc", values=(1.0, 0.5, -0.5))], name="one")))
    _, *boxes = root.iter(f"{SVG}rect")
    (x1, w1), (x2, w2), (x3, w3) = ((float(box.attrib["x"]), float(box.attrib["width"])) for box in boxes)
    assert w1 == pytest.approx(2 * w2, abs=0.2)
    assert w2 == pytest.approx(w3, abs=0.2)
    assert x1 == x2 == pytest.approx(x3 + w3, abs=0.2)


def test_a_stronger_link_is_wider():
    panel = Links(weights=np.array([[0.9, 0.1]]), upper=("ja", "nein"), lower=("yes",))
    root = ElementTree.fromstring(to_svg(View("Title", [panel], name="one")))
    wide = [float(line.attrib["stroke-width"]) for line in root.iter(f"{SVG}polyline")]
    assert len(wide) == 2
    assert wide[0] < wide[1]


@pytest.mark.parametrize("panel", EMPTY, ids=str)
def test_nothing_to_draw_is_no_failure(panel):
    view = View("Title", [panel], name="empty")
    ElementTree.fromstring(to_svg(view))
    assert pixels(view).shape[1] == 1280


def test_without_pillow_a_png_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UsageError, match=r"pip install 'regard\[tasks\]'"):
        to_png(every_panel())
    assert to_svg(every_panel())


def test_a_file_is_what_its_name_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(View, "to_html", lambda self: "<!doctype html>")
    view = every_panel()
    for name in ("a.svg", "a.PNG", "a.html", "a.json"):
        save(view, tmp_path / name)
    assert words((tmp_path / "a.svg").read_text(encoding="utf-8")) == words(to_svg(view))
    assert (tmp_path / "a.PNG").read_bytes() == to_png(view)
    assert (tmp_path / "a.html").read_text() == "<!doctype html>"
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == json.loads(json.dumps(view.to_dict()))


@pytest.mark.parametrize("name", ["a.gif", "a", ".png"])
def test_a_file_of_another_kind_is_refused(name: str, tmp_path: Path):
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.html, \.json"):
        save(every_panel(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(descriptor: int, chunk: memoryview) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a.svg").write_text("before")
    monkeypatch.setattr(disk, "write", full)
    with pytest.raises(ResourceError, match="No space left"):
        save(every_panel(), tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]
    assert (tmp_path / "a.svg").read_text() == "before"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no folder"):
        save(every_panel(), tmp_path / "nowhere" / "a.svg")
