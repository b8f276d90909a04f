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
    rules, families = [], {False: list[str](), True: list[str]()}
    for (face, bold, mono), letters in needed.items():
        if not face.may_be_embedded:
            continue
        data = part_of(face, "".join(sorted(letters)))
        name = f"regard-{sha256(data).hexdigest()[:10]}"
        rules.append(
            f"@font-face{{font-family:{name};font-weight:{700 if bold else 400};"
            f"src:url(data:font/woff;base64,{b64encode(data).decode()})}}"
        )
        families[mono].append(name)
    sans, mono = (", ".join(dict.fromkeys(families[kind])) for kind in (False, True))
    return Embedded("".join(dict.fromkeys(rules)), sans, mono), _forbidden(face for face, _, _ in needed)


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
