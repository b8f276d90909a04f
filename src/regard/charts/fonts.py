"""Fonts of this machine: which one has a letter, and which scripts none of them has.

DejaVu comes first where it is installed, then other fonts without serifs that many machines have, then every other
font file, read only where those before it lack a letter. Folders that REGARD_FONTS names are looked through before
those of the system.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

from regard.charts.drawing import Drawing, Look, Words
from regard.charts.face import Face, faces

SUFFIXES = (".ttf", ".otf", ".ttc", ".otc")
SANS = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "LiberationSans-Regular.ttf", "segoeui.ttf", "Arial.ttf", "arial.ttf")
BOLD = ("DejaVuSans-Bold.ttf", "NotoSans-Bold.ttf", "LiberationSans-Bold.ttf", "segoeuib.ttf", "Arial Bold.ttf")
MONO = ("DejaVuSansMono.ttf", "NotoSansMono-Regular.ttf", "LiberationMono-Regular.ttf", "consola.ttf", "Menlo.ttc")
BOLD_MONO = ("DejaVuSansMono-Bold.ttf", "NotoSansMono-Bold.ttf", "LiberationMono-Bold.ttf", "consolab.ttf")
# The package of Debian and its like that has a script; those of all others are in the first.
CORE, CJK = "fonts-noto-core", "fonts-noto-cjk"
EAST_ASIAN = ("CJK", "Hiragana", "Katakana", "Hangul", "Bopomofo", "Ideographic", "Fullwidth")
PACKAGES = {**dict.fromkeys(EAST_ASIAN, CJK), "symbols": "fonts-symbola"}
MARKS = ("Mn", "Me", "Cf", "Zs", "Cc", "Cn")  # what takes the font of the letter before it


def folders() -> list[Path]:
    """Where fonts lie on a machine of this kind."""
    home = Path.home()
    named = [Path(part) for part in os.environ.get("REGARD_FONTS", "").split(os.pathsep) if part]
    if sys.platform == "win32":
        windows, local = os.environ.get("WINDIR", "C:/Windows"), os.environ.get("LOCALAPPDATA", str(home))
        return [*named, Path(windows, "Fonts"), Path(local, "Microsoft/Windows/Fonts")]
    if sys.platform == "darwin":
        return [*named, Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"]
    shared = os.environ.get("XDG_DATA_DIRS", "/usr/local/share:/usr/share").split(":")
    return [*named, home / ".local/share/fonts", home / ".fonts", *(Path(part, "fonts") for part in shared if part)]


@cache
def files() -> dict[str, Path]:
    """Font files by their name, the first of each."""
    found: dict[str, Path] = {}
    for folder in folders():
        for place, inside, names in os.walk(folder):
            inside.sort()
            for name in sorted(names):
                if name.lower().endswith(SUFFIXES):
                    found.setdefault(name, Path(place, name))
    return found


@cache
def _read(path: Path) -> list[Face]:
    return faces(path)


def in_order(bold: bool, mono: bool) -> Iterator[Face]:
    """Every font, the one that suits best first, and of others first those that are as bold."""
    names = (BOLD_MONO if bold else MONO) if mono else BOLD if bold else SANS
    known = files()
    # A letter that no bold or no monospaced font has is taken from a plain one.
    first = [known[name] for name in (*names, *SANS) if name in known]
    for path in dict.fromkeys(first):
        yield from _read(path)[:1]
    others = [face for path in known.values() if path not in first for face in _read(path) if not face.italic]
    yield from sorted(others, key=lambda face: face.bold != bold)


@lru_cache(maxsize=8192)
def face_of(letter: str, bold: bool, mono: bool, embedded: bool = False) -> Face | None:
    """The first font that has a letter. embedded: of those that may be, if there is one."""
    held: Face | None = None
    for face in in_order(bold, mono):
        if face.has(letter):
            if face.may_be_embedded or not embedded:
                return face
            held = held or face
    return held


def pieces(text: str, look: Look, embedded: bool = False) -> list[tuple[str, Face | None]]:
    """A text in parts, each of one font; none for letters that no font has."""
    parts: list[tuple[str, Face | None]] = []
    for letter in text:
        last = parts[-1][1] if parts else None
        follows = bool(parts) and unicodedata.category(letter) in MARKS
        keeps = follows and (last is None or last.has(letter) or not is_seen(letter))
        face = last if keeps else face_of(letter, look.bold, look.mono, embedded)
        if parts and parts[-1][1] == face:
            parts[-1] = (parts[-1][0] + letter, face)
        else:
            parts.append((letter, face))
    return parts


def is_seen(letter: str) -> bool:
    """Whether a letter has a shape: blanks and marks of direction have none."""
    return letter.isprintable() and not letter.isspace() and not "\ufe00" <= letter <= "\ufe0f"


def script(letter: str) -> str:
    """The writing that a letter belongs to, by its name in Unicode.

    >>> script("क"), script("語"), script("😀"), script("ß")
    ('Devanagari', 'CJK', 'symbols', 'Latin')
    """
    name = unicodedata.name(letter, "")
    if not name or not unicodedata.category(letter).startswith(("L", "M", "N")):
        return "symbols"
    first = name.split(" ")[0].removesuffix("-")
    return first if first == "CJK" else first.capitalize()


def missing(drawings: Iterable[Drawing]) -> list[str]:
    """What to say of letters that no font here has: a line for each script."""
    letters = {
        (letter, shape.look.bold, shape.look.mono)
        for drawing in drawings
        for shape in drawing.shapes
        if isinstance(shape, Words) and not shape.text.isascii()
        for letter in shape.text
    }
    lacking = {letter for letter, bold, mono in letters if is_seen(letter) and face_of(letter, bold, mono) is None}
    if not files():
        return ["no font was found on this machine: install fonts-dejavu"]
    return [f"no font here has {name}: install {_package(name)}" for name in sorted(set(map(script, lacking)))]


def _package(name: str) -> str:
    """What brings a script: a package of Debian and its like, elsewhere a font of the Noto family."""
    return PACKAGES.get(name, CORE) if sys.platform.startswith("linux") else f"a Noto font with {name}"
