"""The letters of drawings as parts of fonts that lie in an SVG, so that it looks the same on every machine.

Each font of this machine that the words need is cut down to the letters used, by fontTools, and stands in the file as
WOFF. A font whose maker forbids that (OS/2, fsType) stays out. Families are named by what is in them: several pictures
stand in one page without taking each other's letters.
"""

from __future__ import annotations

import importlib
import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from regard.charts.drawing import Drawing, Words
from regard.charts.face import Face
from regard.charts.fonts import pieces

WITHOUT = "words are set in the fonts of whoever looks: embedding some takes fontTools; pip install 'regard[pictures]'"
NAMES = [0, 1, 2, 13, 14]  # of a font: its rights, its name, its licence
FOREIGN = ["FFTM"]  # what an editor of fonts leaves behind


@dataclass(frozen=True)
class Embedded:
    """Fonts of a picture. style: the sheet that holds them. sans, mono: their families, before those of the viewer."""

    style: str = ""
    sans: str = ""
    mono: str = ""


def embedded(drawings: Sequence[Drawing]) -> tuple[Embedded, list[str]]:
    """The fonts that all words of drawings need, and what is to be said of those that stay out."""
    if _subset() is None:
        return Embedded(), [WITHOUT]
    needed: dict[tuple[Face, bool, bool], set[str]] = {}
    for words in (shape for drawing in drawings for shape in drawing.shapes if isinstance(shape, Words)):
        for text, face in pieces(words.text, words.look, embedded=True):
            if face is not None:
                needed.setdefault((face, words.look.bold, words.look.mono), set()).update(text)
    held = [(mono, bold, "".join(sorted(letters)), face) for (face, bold, mono), letters in needed.items()]
    held = [one for one in held if one[3].may_be_embedded]
    sans, mono = ([one[1:] for one in held if one[0] is kind] for kind in (False, True))
    sheets = [_family(parts) for parts in (sans, mono)]
    found = Embedded("".join(rules for _, rules in sheets), *(name for name, _ in sheets))
    return found, _forbidden(face for face, _, _ in needed)


def _family(parts: Sequence[tuple[bool, str, Face]]) -> tuple[str, str]:
    """One family of all fonts, each for its own weight and letters, and its rules."""
    made = [(bold, letters, part_of(face, letters)) for bold, letters, face in parts]
    if not made:
        return "", ""
    name = f"regard-{sha256(b''.join(data for _, _, data in made)).hexdigest()[:10]}"
    rules = (
        f"@font-face{{font-family:{name};font-weight:{700 if bold else 400};unicode-range:{_ranges(letters)};"
        f"src:url(data:font/woff;base64,{b64encode(data).decode()})}}"
        for bold, letters, data in made
    )
    return name, "".join(rules)


def _ranges(letters: str) -> str:
    """Letters as CSS names them, those that follow each other together.

    >>> _ranges("abcz")
    'U+61-63,U+7A'
    """
    runs: list[list[int]] = []
    for code in map(ord, letters):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return ",".join(f"U+{first:X}-{last:X}" if last > first else f"U+{first:X}" for first, last in runs)


def _forbidden(faces: Any) -> list[str]:
    kept_out = {face.family: face.embedding for face in faces if not face.may_be_embedded}
    return [
        f"{family} forbids embedding (fsType {bits}): its words are set in the fonts of whoever looks"
        for family, bits in sorted(kept_out.items())
    ]


@lru_cache(maxsize=64)
def part_of(face: Face, letters: str) -> bytes:
    """A font with these letters alone, as WOFF."""
    subset = _subset()
    options = subset.Options(flavor="woff", font_number=face.number, name_IDs=NAMES, hinting=False)
    options.drop_tables += FOREIGN
    font = subset.load_font(str(face.path), options)
    chosen = subset.Subsetter(options)
    chosen.populate(text=letters)
    chosen.subset(font)
    held = io.BytesIO()
    subset.save_font(font, held, options)
    return held.getvalue()


def _subset() -> Any:
    try:
        return importlib.import_module("fontTools.subset")
    except ImportError:
        return None
