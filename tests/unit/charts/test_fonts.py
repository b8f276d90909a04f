"""Fonts of the machine: every letter is drawn in one that has it, a script without one is named, rights are kept."""

from __future__ import annotations

import io
import re
import sys
from base64 import b64decode
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from fontTools.ttLib.tables.DefaultTable import DefaultTable
from made_font import made_font, only_fonts  # noqa: F401

from regard.charts import embed, fonts
from regard.charts.drawing import MONO, Drawing, Look, Words
from regard.charts.embed import WITHOUT, embedded
from regard.charts.face import faces
from regard.charts.fonts import missing, pieces
from regard.charts.raster import image
from regard.charts.svg import svg

PLAIN = Look()
DATA = re.compile(r"font-weight:(\d+);unicode-range:[^;]+;src:url\(data:font/woff;base64,([^)]+)\)")


def written(*texts: str, look: Look = PLAIN) -> Drawing:
    shapes = [Words(48, 40 + 40 * number, text, look) for number, text in enumerate(texts)]
    return Drawing(title="t", shapes=list(shapes), y=40 * len(texts))


def parts(style: str) -> dict[int, TTFont]:
    """The fonts that lie in a style sheet, by their weight."""
    return {int(weight): TTFont(io.BytesIO(b64decode(data))) for weight, data in DATA.findall(style)}


@pytest.mark.parametrize("path", list(fonts.files().values())[:6], ids=lambda path: path.name)
def test_the_letters_of_a_font_are_those_that_fonttools_finds(path: Path):
    (face,) = faces(path)
    found = TTFont(path)
    letters = set(found.getBestCmap())
    assert {
        code for first, last in zip(face.starts, face.ends, strict=True) for code in range(first, last + 1)
    } == letters
    assert face.family == found["name"].getDebugName(1)
    assert face.embedding == found["OS/2"].fsType
    assert (face.bold, face.italic) == (bool(found["OS/2"].fsSelection & 32), bool(found["OS/2"].fsSelection & 1))


def test_a_file_that_is_no_font_has_none(tmp_path: Path):
    for number, data in enumerate((b"", b"\0\1\0\0", b"ttcf\0\1\0\0\xff\xff\xff\xff", b"\0\1\0\0\0\7" + b"\xff" * 200)):
        place = tmp_path / f"{number}.ttf"
        place.write_bytes(data)
        assert faces(place) == []
    assert faces(tmp_path / "nowhere.ttf") == []


def test_every_letter_is_in_a_font_that_has_it(only_fonts: Path):  # noqa: F811
    made_font(only_fonts / "DejaVuSans.ttf", "abc e\u0301", "First")
    made_font(only_fonts / "Other.ttf", "कख ", "Second")
    found = [(text, face and face.family) for text, face in pieces("ab कख e\u0301c語", PLAIN)]
    assert found == [("ab ", "First"), ("कख ", "Second"), ("e\u0301c", "First"), ("語", None)]


def test_a_script_without_a_font_is_named_with_what_brings_it(only_fonts: Path, monkeypatch: pytest.MonkeyPatch):  # noqa: F811
    made_font(only_fonts / "DejaVuSans.ttf", "abc …", "First")
    monkeypatch.setattr(sys, "platform", "linux")
    assert missing([written("abc…", "a\u200d\ufe0f")]) == []
    assert missing([written("aकब", "ゆ語", "☃")]) == [
        "no font here has CJK: install fonts-noto-cjk",
        "no font here has Devanagari: install fonts-noto-core",
        "no font here has Hiragana: install fonts-noto-cjk",
        "no font here has symbols: install fonts-symbola",
    ]


def test_without_any_font_a_letter_beyond_ascii_is_told(only_fonts: Path):  # noqa: F811
    assert missing([written("é")]) == ["no font was found on this machine: install fonts-dejavu"]
    assert image(written("abc"), 1).convert("L").getextrema()[0] < 128


@pytest.mark.parametrize("table", ["CBDT", "sbix"])
def test_a_font_whose_letters_are_pixels_has_none_that_can_be_drawn(table: str, only_fonts: Path):  # noqa: F811
    made_font(only_fonts / "DejaVuSans.ttf", "ab", "First")
    place = made_font(only_fonts / "Emoji.ttf", "☃", "Pixels")
    font = TTFont(place)
    for name in ("glyf", "loca") if table == "CBDT" else ():
        del font[name]
    font[table] = DefaultTable(table)
    font[table].data = b"\0" * 8
    font.save(place)
    drawing = written("a☃")
    assert missing([drawing]) == [f"no font here has symbols: install {fonts._package('symbols')}"]
    assert image(drawing, 1).size[0] == drawing.width
    assert embedded([drawing])[1] == []


def test_a_letter_of_a_second_font_is_drawn_as_that_font_has_it(only_fonts: Path):  # noqa: F811
    made_font(only_fonts / "DejaVuSans.ttf", "a", "First")
    made_font(only_fonts / "Other.ttf", "क", "Second")
    drawn = image(Drawing(width=200, y=60, below=0, shapes=[Words(10, 50, "aक", Look(40))]), 1).convert("L")
    # Both letters are boxes of 16 x 28 pixels, 20 apart.
    assert [drawn.getpixel((x, 35)) < 128 for x in (9, 20, 30, 40, 50)] == [False, True, False, True, False]


def test_only_the_letters_used_lie_in_the_file(only_fonts: Path):  # noqa: F811
    for name, bold in (("DejaVuSans", False), ("DejaVuSans-Bold", True), ("DejaVuSansMono", False)):
        made_font(only_fonts / f"{name}.ttf", "abcdefgh ", name, bold=bold)
    drawing = written("ab ba")
    drawing.add(Words(0, 0, "cd", Look(bold=True)), Words(0, 0, "e", MONO))
    held, notes = embedded([drawing])
    assert notes == []
    found = DATA.findall(held.style)
    letters = ["".join(map(chr, sorted(TTFont(io.BytesIO(b64decode(data))).getBestCmap()))) for _, data in found]
    assert list(zip((weight for weight, _ in found), letters, strict=True)) == [
        ("400", " ab"),
        ("700", "cd"),
        ("400", "e"),
    ]
    text = svg(drawing, fonts=held)
    families = re.findall(r"font-family:(\S+?);", held.style)
    assert families == [families[0]] * 2 + [families[2]]
    assert f'font-family="{families[0]}, system-ui' in text
    assert f'font-family="{families[2]}, ui-monospace' in text


def test_the_same_words_give_the_same_fonts_and_other_words_other_families():
    first, second, other = (embedded([written(text)])[0] for text in ("abc", "cab", "abd"))
    assert first == second
    assert first.sans != other.sans


@pytest.mark.parametrize("fs_type", [0x0002, 0x0100, 0x0200])
def test_a_font_that_forbids_it_is_not_embedded_and_named(fs_type: int, only_fonts: Path):  # noqa: F811
    made_font(only_fonts / "DejaVuSans.ttf", "ab", "Strict", fs_type=fs_type)
    held, notes = embedded([written("ab")])
    assert held.style == ""
    assert notes == [f"Strict forbids embedding (fsType {fs_type}): its words are set in the fonts of whoever looks"]


@pytest.mark.parametrize("fs_type", [0x0000, 0x0004, 0x0008, 0x000A])
def test_a_font_that_allows_it_is_embedded(fs_type: int, only_fonts: Path):  # noqa: F811
    made_font(only_fonts / "DejaVuSans.ttf", "ab", "Free", fs_type=fs_type)
    assert parts(embedded([written("ab")])[0].style)[400].getBestCmap().keys() == {97, 98}


def test_another_font_that_may_be_embedded_takes_the_place_of_one_that_may_not(only_fonts: Path):  # noqa: F811
    made_font(only_fonts / "DejaVuSans.ttf", "ab", "Strict", fs_type=2)
    made_font(only_fonts / "Other.ttf", "ab", "Free")
    held, notes = embedded([written("ab")])
    assert notes == []
    assert held.style


def test_without_fonttools_the_words_are_there_and_it_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(embed, "_subset", lambda: None)
    assert embedded([written("ab")]) == (embed.Embedded(), [WITHOUT])
