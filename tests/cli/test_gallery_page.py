"""docs/gallery.md and the first picture: every family has its picture, each made by the command below it, and small."""

from __future__ import annotations

import re
import shlex
import sys
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from block_reading import short
from calling import call_here

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import gallery  # noqa: E402

CARDS = (*gallery.FAMILIES, *gallery.INSTRUMENTS)
PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")
MOST = 1_500_000
SVG = "{http://www.w3.org/2000/svg}"


def made_at(svg: str) -> str:
    """The commit that a picture says it was made of."""
    found = ElementTree.fromstring(svg).findtext(f"{SVG}metadata") or ""
    return re.match(r"commit ([0-9a-f]{12}); ", found)[1]  # type: ignore[index]


def test_the_page_is_what_the_script_writes():
    assert gallery.page() == PAGE


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_every_picture_says_how_it_was_made(card: gallery.Card):
    text = (DOCS / "gallery" / f"{card.name}.svg").read_text(encoding="utf-8")
    assert made_at(text)
    assert f"; {escape(card.command)}</metadata>" in text
    assert not re.search(r"(?:src|href)=\"(?!#|data:image/png)", text), "nothing is loaded from elsewhere"


def test_all_pictures_together_are_small_and_none_is_left_over():
    files = list((DOCS / "gallery").iterdir())
    assert {path.stem for path in files} == {card.name for card in CARDS}
    assert sum(path.stat().st_size for path in files) < MOST
    assert all(card.run in ("", *gallery.RUNS) for card in CARDS)


def test_the_first_picture_has_a_shape_and_colours_for_every_page():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    files = sorted((DOCS / "first").iterdir())
    assert [path.name for path in files] == ["narrow-dark.svg", "narrow-light.svg", "wide-dark.svg", "wide-light.svg"]
    assert all(f"docs/first/{path.name}" in readme for path in files)
    texts = [path.read_text(encoding="utf-8") for path in files]
    assert len({made_at(text) for text in texts}) == 1
    assert sum(map(len, texts)) < 100_000


def test_a_command_of_the_gallery_that_needs_no_run_makes_its_picture(here: Path):
    (card,) = (card for card in CARDS if card.name == "positions")
    outcome = call_here(*shlex.split(card.command)[1:])
    assert (outcome.code, outcome.err) == (0, "saved positions.svg\n")
    made = [(DOCS / "gallery" / "positions.svg").read_text(encoding="utf-8"), (here / "positions.svg").read_text()]
    words = [[text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")] for svg in made]
    assert words[0] == words[1]


@pytest.mark.sweep(6)
@pytest.mark.parametrize("card", [card for card in CARDS if card.run], ids=lambda card: card.name)
def test_a_command_of_the_gallery_makes_its_picture_of_a_run(card: gallery.Card, here: Path):
    argv = short(["train", *shlex.split(gallery.RUNS[card.run]), "--out", f"runs/{card.run}"])
    assert call_here(*argv).code == 0
    outcome = call_here(*shlex.split(card.command)[1:])
    assert (outcome.code, [path.name for path in here.glob("*.svg")]) == (0, [f"{card.name}.svg"]), outcome.err
