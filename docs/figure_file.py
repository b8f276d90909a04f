"""Figures as files that say with what and at which commit they were drawn."""

from __future__ import annotations

import re
import struct
import subprocess
import zlib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
MADE_BY = "python docs/pictures.py all"
IN_SVG = re.compile(r"<metadata>commit [0-9a-f]{7,40}; [^<]*</metadata>\n?")
OPENING = re.compile(r"<svg\b[^>]*>\n?")
PNG_HEAD = 33  # the signature and the first chunk
KEYWORD = b"Source\0"


def write(path: Path, drawing: str | bytes) -> None:
    """Keep a figure under its path. One that is the same as before keeps its commit too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = drawing.encode("utf-8") if isinstance(drawing, str) else drawing
    if not path.exists() or bare(path.read_bytes()) != bare(data):
        path.write_bytes(data)


def stamp_all() -> list[Path]:
    """Write a commit into every figure of the pages that has none, and tell which."""
    figures = sorted(path for path in DOCS.rglob("*") if path.suffix in (".svg", ".png"))
    new = [path for path in figures if DOCS / "site" not in path.parents and bare(data := path.read_bytes()) == data]
    for path in new:
        path.write_bytes(stamped(path.read_bytes(), f"commit {commit(path)}; {MADE_BY}"))
    return new


def commit(path: Path) -> str:
    """The commit that a figure was drawn at: the one that brought it as it is, else the one that is checked out."""
    changed = _git("status", "--porcelain", "--", str(path))
    return "" if changed is None else (_git("log", "-1", "--format=%h", *([] if changed else ["--", str(path)])) or "")


def _git(*words: str) -> str | None:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def bare(data: bytes) -> bytes:
    """A figure without what it says of itself."""
    if not data.startswith(b"\x89PNG"):
        return IN_SVG.sub("", data.decode("utf-8")).encode("utf-8")
    kept, at = data[:8], 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        chunk = data[at : at + 12 + length]
        if not (chunk[4:8] == b"tEXt" and chunk[8:].startswith(KEYWORD)):
            kept += chunk
        at += len(chunk)
    return kept


def stamped(data: bytes, said: str) -> bytes:
    """A figure that says where it is from."""
    if data.startswith(b"\x89PNG"):
        body = b"tEXt" + KEYWORD + said.encode("latin-1")
        chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
        return data[:PNG_HEAD] + chunk + data[PNG_HEAD:]
    text = data.decode("utf-8")
    found = OPENING.search(text)
    assert found is not None, "not a picture"
    return f"{text[: found.end()]}<metadata>{said}</metadata>\n{text[found.end() :]}".encode()
