"""Servers and files for the tests of the page; the browser is that of tests/browsing.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from picture_book import Book

from open_lab import answering
from regard.serving.lab import Lab


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def lab(book: Book) -> Iterator[Lab]:
    """The server with views of known numbers."""
    with answering(book) as server:
        yield server


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[str], str]:
    """Writes a file and gives its address on disk."""

    def write(html: str) -> str:
        path = tmp_path / "view.html"
        path.write_text(html, encoding="utf-8")
        return path.as_uri()

    return write
