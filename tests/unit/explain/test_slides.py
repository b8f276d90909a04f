"""A view on slides and in motion: all of it is there, within its sides, in letters that are read from afar."""

from __future__ import annotations

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from every_panel import WIDE, every_panel, with_labels
from PIL import Image

from look_run import seen, text_run
from regard.charts.drawing import Picture, Words
from regard.charts.size import Size, size_of
from regard.errors import UsageError
from regard.explain.folding import Fold, size_at
from regard.explain.looks.flow import flow
from regard.explain.overlay import Overlay
from regard.explain.render.file import save
from regard.explain.render.frames import animate, frames
from regard.explain.render.number import four
from regard.explain.render.slides import slides
from regard.explain.view import Bars, Curves, Heat, Links, Listing, Note, Numbers, View
from regard.explain.worked import example, examples
from regard.terminal.label import label, prose

SVG = "{http://www.w3.org/2000/svg}"
SLIDE = Size(1920, 1080)
SMALLEST = 8.0  # points of the letters on a slide of 13.3 inches; labels of a large map are the smallest
TALL = View(
    "Tall",
    [
        Numbers(title="Numbers", values=np.arange(120.0).reshape(30, 4), rows=[f"row {n}" for n in range(30)]),
        Listing(title="Table", columns=("a", "b#"), rows=[[f"cell {n}", float(1000 + n)] for n in range(40)]),
        Bars(title="Bars", names=[f"bar {n}" for n in range(30)], values=list(range(30))),
        Note(title="Text", text=" ".join(f"word{n}" for n in range(400))),
    ],
    name="tall",
)


def texts(view: View, size: Size = SLIDE) -> list[str]:
    return [shape.text for slide in slides(view, size) for shape in slide.shapes if isinstance(shape, Words)]


@pytest.mark.parametrize(
    ("size", "sides"),
    [("slide", (1920, 1080)), ("wide", (2560, 1080)), ("1080x1080", (1080, 1080)), ("801x603", (801, 603))],
)
def test_every_picture_has_the_sides_that_were_asked_for(size: str, sides: tuple[int, int], tmp_path: Path):
    for kind in ("svg", "png"):
        written = save(every_panel(), tmp_path / f"a.{kind}", size, tell=lambda line: None)
        assert [path.name for path in written] == [f"a-{n}.{kind}" for n in range(1, len(written) + 1)]
        assert len(written) > 1
        for path in written:
            if kind == "png":
                with Image.open(path) as picture:
                    assert picture.size == sides
            else:
                root = ElementTree.parse(path).getroot()
                assert (float(root.attrib["width"]), float(root.attrib["height"])) == sides


@pytest.mark.parametrize("name", examples())
def test_no_number_of_an_example_is_missing_on_its_slides(name: str):
    view = example(name)
    said = texts(view)
    for panel in view.panels:
        if isinstance(panel, Numbers) and np.size(panel.values) <= 64:
            assert {four(float(value)) for value in np.ravel(panel.values)} <= set(said), panel.title
    assert not any(re.search(r"^\d+ x \d+ of \d+ x \d+ numbers", text) for text in said)


@pytest.mark.parametrize("view", [every_panel(), with_labels(WIDE), TALL], ids=["every", "wide", "tall"])
@pytest.mark.parametrize("size", [SLIDE, Size(1080, 1920)], ids=["slide", "phone"])
def test_words_are_within_the_slide_and_large(view: View, size: Size):
    for slide in slides(view, size):
        for shape in slide.shapes:
            if isinstance(shape, Words):
                assert 0 <= shape.x <= slide.width
                assert 0 <= shape.y <= slide.height
                assert shape.look.size >= SMALLEST


def test_what_is_taller_than_a_slide_goes_on_on_the_next_one():
    said = texts(TALL)
    assert {f"row {n}" for n in range(30)} | {f"cell {n}" for n in range(40)} | {f"bar {n}" for n in range(30)} <= set(
        said
    )
    assert " ".join(said).count("word399") == 1
    assert "Numbers (continued)" in said


def test_small_panels_stand_side_by_side():
    one, two = (Numbers(title=title, values=np.eye(3)) for title in ("One", "Two"))
    (slide,) = slides(View("Title", [one, two], name="pair"), SLIDE)
    first, second = (shape for shape in slide.shapes if isinstance(shape, Words) and shape.text in ("One", "Two"))
    assert first.y == second.y
    assert second.x > slide.width / 2 > first.x


@pytest.mark.parametrize("size", ["slid", "10x10", "99999x99999", "1920x", ""])
def test_a_size_that_is_none_is_refused_in_one_line(size: str, tmp_path: Path):
    with pytest.raises(UsageError, match=r"^--size"):
        save(every_panel(), tmp_path / "a.png", size)
    assert not list(tmp_path.iterdir())


def test_a_picture_that_nothing_could_open_is_refused(tmp_path: Path):
    view = View("Long", [Note(text="word " * 20) for _ in range(3000)], name="long")
    with pytest.raises(UsageError, match=r"more than programs open"):
        save(view, tmp_path / "a.png")
    long = View("Long", [Curves(lines={"a": [(0, 0), (1, 1)]}) for _ in range(250)], name="long")
    with pytest.raises(UsageError, match=r"more than 200 slides"):
        save(long, tmp_path / "a.png", "slide")
    assert not list(tmp_path.iterdir())


def test_a_size_is_of_pictures_alone(tmp_path: Path):
    with pytest.raises(UsageError, match=r"a size is that of a picture"):
        save(every_panel(), tmp_path / "a.json", "slide")


def test_a_view_gives_one_slide_as_text_and_bytes_and_refuses_to_drop_others():
    view = View("Title", [Numbers(values=np.eye(3))], name="one")
    assert ElementTree.fromstring(view.to_svg("slide")).attrib["width"] == "1920"
    assert Image.open(io.BytesIO(view.to_png("wide"))).size == (2560, 1080)
    with pytest.raises(UsageError, match=r"view\.save"):
        every_panel().to_svg("slide")


def alignment(words: int = 3) -> View:
    weights = np.eye(words)
    names = [f"w{n}" for n in range(words)]
    panels = [Links(weights=weights, upper=names, lower=names), Heat(weights=weights, rows=names, columns=names)]
    return View("Where it looks", panels, name="alignment")


def test_steps_are_shown_one_after_the_other(tmp_path: Path):
    view = example("training")
    animate(view, tmp_path / "a.png", seconds=0.5, size="480x270")
    with Image.open(tmp_path / "a.png") as picture:
        assert (picture.size, picture.info["duration"]) == ((480, 270), 500)
        assert picture.n_frames >= len(view.panels)
    said = [shape.text for frame in frames(view, SLIDE) for shape in frame.shapes if isinstance(shape, Words)]
    assert all(f"step {n} of {len(view.panels)}" in said for n in range(1, len(view.panels) + 1))
    titles = {prose(panel.title) for panel in view.panels if panel.title and len(panel.title) < 30}
    assert titles <= set(said)


def test_an_alignment_is_written_a_word_at_a_time_and_ends_whole():
    made = frames(alignment(), SLIDE)
    links = [sum(type(shape).__name__ == "Path" for shape in frame.shapes) for frame in made]
    assert links == [1, 2, 3, 3]
    words = [[shape for shape in frame.shapes if isinstance(shape, Words) and shape.text == "w0"] for frame in made]
    assert words == [words[0]] * 4, "nothing else moves"


def over_picture(words: int) -> Overlay:
    picture = np.full((8, 8, 3), 200, np.uint8)
    weights = np.eye(4)[np.arange(words) % 4].reshape(words, 2, 2)
    return Overlay(title="Picture", picture=picture, weights=weights, words=[f"w{n}" for n in range(words)])


def test_a_caption_is_written_over_its_picture_a_word_at_a_time():
    view = View("Where it looks", [over_picture(3), Heat(title="all", weights=np.eye(3))], name="alignment")
    made = frames(view, SLIDE)
    said = [{shape.text for shape in frame.shapes if isinstance(shape, Words)} for frame in made]
    assert [[f"w{n}  up to 1" in words for n in range(3)] for words in said] == np.eye(3, dtype=bool).tolist()
    assert all(f"word {n} of 3" in words for n, words in enumerate(said, 1))
    pictures = [[shape for shape in frame.shapes if isinstance(shape, Picture)] for frame in made]
    assert all(len(shown) == 2 and shown[0].width > SLIDE.sides[0] / 4 for shown in pictures)


def test_a_diagram_goes_on_on_the_next_slide_in_letters_that_are_read():
    view = seen(text_run("gpt", n_layers=4), flow)
    made = slides(view, SLIDE)
    said = [shape for slide in made for shape in slide.shapes if isinstance(shape, Words)]
    boxes = {box.label for box in Fold.of(view.panels[0]).boxes}
    assert {"queries", "weights", "layers 2 to 4", "head", "answer"} <= boxes
    written = {shape.text.rstrip("…") for shape in said if shape.text}
    assert all(any(box.startswith(text) for text in written) for box in boxes)
    assert all(shape.look.size >= SMALLEST for shape in said)
    assert all(0 <= shape.y <= slide.height for slide in made for shape in slide.shapes if isinstance(shape, Words))
    weights = view.panels[0].node("stack.layers.0.mixer.weights")
    assert f"max {four(float(f'{size_at(view.panels[0], weights):.3g}'))}" in written
    best = view.panels[0].answers.names[view.panels[0].place][0]
    assert label(best) in {shape.text for shape in made[-1].shapes if isinstance(shape, Words)}


def test_a_picture_of_many_words_goes_on_on_the_next_slide():
    view = View("Where it looks", [over_picture(40)], name="alignment")
    said = texts(view)
    assert {f"w{n}  up to 1" for n in range(40)} <= set(said)
    for slide in slides(view, SLIDE):
        assert all(shape.look.size >= SMALLEST for shape in slide.shapes if isinstance(shape, Words))


@pytest.mark.parametrize(
    ("view", "name", "options", "message"),
    [
        (every_panel(), "a.gif", {}, r"one of \.png, \.apng, \.svg"),
        (View("T", [Numbers(values=np.eye(2))], name="gates"), "a.png", {}, "'gates' has no steps"),
        (alignment(), "a.png", {"seconds": 0.0}, "a step of 0 s"),
        (alignment(), "a.png", {"seconds": float("nan")}, "a step of nan s"),
        (alignment(), "a.png", {"size": "page"}, "leave out the size 'page'"),
        (alignment(200), "a.svg", {}, "at most 120"),
        (alignment(), "nowhere/a.svg", {}, "there is no folder"),
    ],
)
def test_what_cannot_move_is_refused_in_one_line(view: View, name: str, options: dict, message: str, tmp_path: Path):
    with pytest.raises(UsageError, match=message):
        view.animate(tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_sizes_are_names_or_pixels():
    assert size_of("slide") == SLIDE
    assert size_of("page") is None
    assert size_of("640x480") == Size(640, 480)
