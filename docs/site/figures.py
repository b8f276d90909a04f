"""Figures of a page: loaded when they are near, with their size and the commit that they were drawn at."""

from __future__ import annotations

import posixpath
import re
from html import escape, unescape
from pathlib import Path
from urllib.parse import unquote

IMAGE = re.compile(r'<img alt="([^"]*)" src="([^"]+)"([^>]*)>')
ALONE = re.compile(r"<p>(<img [^>]*>)</p>")
SVG_SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)"[^>]*? height="([\d.]+)"')
IN_SVG = re.compile(rb"<metadata>(commit [0-9a-f]{7,40}; [^<]*)</metadata>")
KEYWORD = b"Source\0"


def placed(html: str, docs: Path, page: str) -> str:
    """The page with what a browser should know of its figures before it has them."""

    def told(match: re.Match[str]) -> str:
        alt, source, rest = match.groups()
        file = docs / posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(source)))
        if not file.is_file():
            return match[0]
        width, height = size(file)
        alt = alt or f"{file.stem}: the picture"
        return (
            f'<img alt="{alt}" src="{source}" width="{width}" height="{height}" loading="lazy" decoding="async"{rest}>'
        )

    def framed(match: re.Match[str]) -> str:
        source = re.search(r'src="([^"]+)"', match[1])
        assert source is not None
        file = docs / posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(source[1])))
        made = origin(file) if file.is_file() else ""
        note = f"<figcaption>Drawn at {escape(made)}</figcaption>" if made else ""
        return f'<figure><a href="{source[1]}" aria-label="{_label(match[1])}">{match[1]}</a>{note}</figure>'

    return ALONE.sub(framed, IMAGE.sub(told, html))


def _label(image: str) -> str:
    found = re.search(r'alt="([^"]*)"', image)
    return escape(unescape(found[1]) if found else "") + ", the picture alone"


def size(file: Path) -> tuple[int, int]:
    """Width and height of a picture in pixels."""
    if file.suffix == ".svg":
        found = SVG_SIZE.search(file.read_text(encoding="utf-8")[:2000])
        return (round(float(found[1])), round(float(found[2]))) if found else (0, 0)
    head = file.read_bytes()[:24]
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def origin(file: Path) -> str:
    """At which commit and with what a picture was made, as it says itself; empty where it does not."""
    data = file.read_bytes()
    if file.suffix == ".svg":
        found = IN_SVG.search(data)
        return unescape(found[1].decode("utf-8")) if found else ""
    at = data.find(b"tEXt" + KEYWORD)
    length = int.from_bytes(data[at - 4 : at], "big") if at > 0 else 0
    return data[at + 4 + len(KEYWORD) : at + 4 + length].decode("latin-1")
