"""Every command and every block of Python on the pages is run by a test, on small files and for a few steps."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from block_reading import ROOT, blocks, known_options, lines, pages, short, spoken, text, understand, words
from calling import call_here
from page_registry import HERE, OTHERS, OWN, READ, fixture_of, own_test

PAGES = [page for page in pages() if blocks(page)]
RUN_HERE = [page for page in PAGES if own_test(page) is None]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_page_with_a_block_has_a_test_or_a_fixture():
    assert [page for page in RUN_HERE if fixture_of(page) is None] == []
    for page in PAGES:
        test = own_test(page)
        if test is not None:
            assert says(ROOT / test, {Path(page).name, Path(page).parent.name, Path(page).stem}), (page, test)


def says(test: Path, names: set[str]) -> bool:
    """Whether a file of tests, or one of a folder of them, speaks of a page by one of its names."""
    files = sorted(test.rglob("test_*.py")) if test.is_dir() else [test]
    return any(name in file.read_text(encoding="utf-8") for file in files for name in names)


def is_read(line: str, page: str) -> bool:
    fixture = fixture_of(page)
    return words(line)[0] in READ or any(part in line for part in (fixture.read if fixture else ()))


@pytest.mark.parametrize("page", [page for page in RUN_HERE if lines(page)])
def test_the_commands_of_a_page_work_in_their_order(page: str, here: Path):
    fixture = fixture_of(page)
    assert fixture is not None
    found = [line for line in lines(page) if line.startswith("regard ")]
    run = [line for line in found if not is_read(line, page)]
    if run:
        fixture.files(here)
    for line in run:
        argv = short([fixture.instead.get(word, word) for word in words(line)])
        given = line.partition(" < ")[2].partition(" >")[0].strip()
        outcome = call_here(*argv, stdin=(here / given).read_text(encoding="utf-8") if given else "")
        assert outcome.code == 0, (line, argv, outcome.err)
        assert outcome.out or "saved" in outcome.err or argv[0] == "train", line


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_only_read_are_understood(page: str):
    for line in lines(page):
        if line.startswith("regard "):
            understand(words(line))
        elif own_test(page) is None:
            assert line.startswith(tuple(OTHERS)), (page, line)


@pytest.mark.parametrize("page", [page for page in pages() if spoken(page)])
def test_commands_in_sentences_name_verbs_and_options_that_there_are(page: str):
    for line in spoken(page):
        plain = re.split(r" \| | && | > | < ", line)[0].split()[1:]
        assert not list(known_options(plain)), (page, line)


def test_the_extras_that_pages_install_are_there():
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = [one for page in pages() for one in re.findall(r"(?:regard|\.)\[([a-z,]+)\]", text(page))]
    assert len(named) > 5
    assert {extra for one in named for extra in one.split(",")} <= known.keys()


@pytest.mark.parametrize(
    "page", [page for page in RUN_HERE if any(language == "python" for language, _ in blocks(page))]
)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: str, here: Path):
    fixture = fixture_of(page)
    assert fixture is not None
    if not fixture.runs_python:
        name = Path(page).name
        assert any(name in file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
        return
    fixture.files(here)
    code = "\n".join(block for language, block in blocks(page) if language == "python")
    for before, after in fixture.instead.items():
        code = code.replace(f'"{before}"', f'"{after}"')
    exec(compile(fixture.before + code, page, "exec"), {"__name__": "__main__"})


def test_no_line_of_the_registry_is_for_a_page_that_is_gone():
    there = [pattern for pattern in (*HERE, *OWN) if (ROOT / pattern).parent.is_dir()]
    assert [pattern for pattern in there if not any(fnmatch(page, pattern) for page in PAGES)] == []
