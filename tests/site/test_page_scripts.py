"""What writes and draws the pages: their scripts, without what takes minutes or a browser, and where links may lead."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import create_autospec

import pytest
from block_reading import ROOT, text

from regard.laws.check import LAWS

NUMBERS = dict(enumerate(("eighteen", "nineteen", "twenty", "twenty-one"), start=18))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A script of docs/ or docs/site/ as a module."""
    for folder in ("docs", "docs/site"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    return importlib.import_module


def given(runs: Path, only: str = "") -> argparse.Namespace:
    return argparse.Namespace(runs=runs, only=only)


def test_the_card_is_photographed(script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pictures = script("pictures")
    photograph = create_autospec(pictures._photograph, return_value=b"a picture")
    monkeypatch.setattr(pictures, "_photograph", photograph)
    monkeypatch.setattr(pictures, "DOCS", tmp_path)
    pictures.KINDS["card"](given(tmp_path))
    assert (tmp_path / "site" / "card.png").read_bytes() == b"a picture"
    assert photograph.call_args.args[0].endswith("/site/card.svg")


def test_a_picture_of_another_run_trains_that_runs_model(
    script: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pictures = script("pictures")
    trained = create_autospec(pictures.regard.train)
    monkeypatch.setattr(pictures.regard, "train", trained)
    monkeypatch.setattr(pictures, "write", create_autospec(pictures.write))
    pictures.KINDS["inside"](given(tmp_path, "flow"))
    assert trained.call_args.args == ("gpt", "world:stories")
    assert trained.call_args.kwargs["out"] == Path(tmp_path.name) / "gpt"  # which is what the picture says


def test_sizes_that_carry_states_of_two_kinds_say_which_grow(script: Callable[..., Any]):
    states = script("models")._states
    kept = [{"bytes": 2000, "grows": True, "length": 1024}, {"bytes": 100, "grows": False, "length": 1024}]
    assert states(kept) == ("state of one text, after 1,024 tokens (+: growing)", "2kB+", "100B")
    assert states(kept[:1]) == ("state of one text, after 1,024 tokens and growing", "2kB")
    assert states(kept[1:]) == ("state of one text", "100B")


@pytest.mark.parametrize("link", ["/etc/hosts", "../../notes.txt", "a/../../../notes.txt"])
def test_no_link_brings_a_file_from_outside_the_repository_to_the_site(link: str, script: Callable[..., Any]):
    pages = script("pages")
    assert pages.target(link, "docs/index.md") is None
    assert pages.rewritten(f"[a]({link})", "docs/index.md", "index.md") == f"[a]({link})"
    assert pages.target("../examples/plugin", "docs/index.md") == "examples/plugin"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_page_that_tells_how_many_laws_there_are_counts_them(page: str):
    told = re.findall(r"([\w-]+) \[?laws\b(?:\]\([^)]*\))? run\b", " ".join(text(page).split()))
    assert told == [NUMBERS[len(LAWS)]]


def test_a_cell_of_many_words_says_so_and_its_column_is_wider_than_a_word_on_a_phone(script: Callable[..., Any]):
    row = f"<tr><td>few</td><td>{'many words ' * 6}</td><td><a href='{'x' * 80}'>few</a></td></tr>"
    boxed = script("tables").boxed(f"<table>{row}</table>")
    assert re.findall(r"<td([^>]*)>", boxed) == ["", ' class="long"', ""]
    assert "td.long { min-width" in text("docs/site/site.css")
