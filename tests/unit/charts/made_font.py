"""Small fonts with a box for every letter, made by fontTools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from regard.charts import fonts

MakeFont = Callable[..., Path]
UNIT = 1000


def made_font(path: Path, letters: str, family: str, fs_type: int = 0, bold: bool = False) -> Path:
    """A file whose every letter is a box as wide as half its height."""
    names = [".notdef", *(f"u{ord(letter):04X}" for letter in letters)]
    pen = TTGlyphPen(None)
    for number, point in enumerate([(50, 0), (50, 700), (450, 700), (450, 0)]):
        (pen.lineTo if number else pen.moveTo)(point)
    pen.closePath()
    box = pen.glyph()
    builder = FontBuilder(UNIT, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(letter): f"u{ord(letter):04X}" for letter in letters})
    builder.setupGlyf(dict.fromkeys(names, box))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (500, 50)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Bold" if bold else "Regular"})
    builder.setupOS2(fsType=fs_type, fsSelection=0x20 if bold else 0x40)
    builder.setupPost()
    builder.save(path)
    return path


def forget() -> None:
    """Drop what was found out of the fonts of this machine."""
    for cached in (fonts.files, fonts._read, fonts.face_of):
        cached.cache_clear()


@pytest.fixture
def only_fonts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose fonts are all that there are."""
    folder = tmp_path / "fonts"
    folder.mkdir()
    monkeypatch.setattr(fonts, "folders", lambda: [folder])
    forget()
    yield folder
    forget()
