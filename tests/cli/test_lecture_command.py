"""`regard lecture` as a person types it: listed, sat, written as files, and wrong words."""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path

import pytest
from calling import call_here

from regard.errors import ResourceError, UsageError
from regard.lectures.catalogue import lecture, lectures
from regard.storage import disk

CELL = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def written(path: Path, *sources: str) -> str:
    cells = [{**CELL, "id": f"c{number}", "source": source} for number, source in enumerate(sources)]
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}), encoding="utf-8")
    return str(path)


def test_lectures_are_listed_in_their_order() -> None:
    outcome = call_here("lecture")
    assert outcome.code == 0
    places = [outcome.out.index(one.question) for one in lectures()]
    assert places == sorted(places)
    told = json.loads(call_here("lecture", "--json").out)["lectures"]
    assert [one["name"] for one in told] == [one.name for one in lectures()]


def test_a_lecture_of_ones_own_is_sat_and_told_to_programs(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.ipynb", "print('hello')\n21 * 2")
    outcome = call_here("lecture", path)
    assert (outcome.code, outcome.err) == (0, "")
    assert "1/1  mine" in outcome.out
    assert "hello\n\n42" in outcome.out
    told = json.loads(call_here("lecture", path, "--json").out)
    assert told["screens"][0]["cells"][0]["outputs"] == [
        {"kind": "text", "text": "hello\n"},
        {"kind": "text", "text": "42"},
    ]


def test_solutions_are_printed_when_they_are_asked_for(tmp_path: Path) -> None:
    solved = {**CELL, "metadata": {"regard": {"kind": "solution"}}, "source": "print('the', 'answer')"}
    path = tmp_path / "mine.ipynb"
    path.write_text(json.dumps({"nbformat": 4, "metadata": {}, "cells": [solved]}), encoding="utf-8")
    assert "the answer" not in call_here("lecture", str(path)).out
    assert "the answer" in call_here("lecture", str(path), "--solutions").out


def test_a_cell_that_fails_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    outcome = call_here("lecture", written(tmp_path / "mine.ipynb", "1 + 1", "int('x')"))
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert "lecture mine, screen 1 (mine), cell 2, line 1: ValueError: invalid literal" in outcome.err
    assert "bug of regard" not in outcome.err


def test_ctrl_c_says_that_the_lecture_is_not_done(tmp_path: Path) -> None:
    outcome = call_here("lecture", written(tmp_path / "mine.ipynb", "raise KeyboardInterrupt"))
    assert outcome.code == 130
    assert outcome.err == "regard: stopped; lecture mine was not sat to its end\n"


def test_the_notebook_is_copied_and_no_file_is_lost(tmp_path: Path) -> None:
    copy = tmp_path / "copy.ipynb"
    assert call_here("lecture", "counting", "--notebook", str(copy)).code == 0
    assert copy.read_bytes() == lectures()[0].path.read_bytes()
    outcome = call_here("lecture", "averaging", "--notebook", str(copy))
    assert outcome.code == UsageError.exit_code
    assert "there is a file already" in outcome.err
    assert copy.read_bytes() == lectures()[0].path.read_bytes()


def test_a_lecture_becomes_markdown_with_figures(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.ipynb", "from regard.explain.worked import example\nexample('sick')")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "mine-7.svg").write_text("of an earlier form", encoding="utf-8")
    outcome = call_here("lecture", path, "--markdown", str(tmp_path / "pages"))
    assert outcome.code == 0, outcome.err
    assert sorted(one.name for one in (tmp_path / "pages").iterdir()) == ["mine-1.svg", "mine.md"]


def test_a_lecture_becomes_one_page_that_needs_no_network(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.ipynb", "print('</script><b>')")
    outcome = call_here("lecture", path, "--html", str(tmp_path / "mine.html"))
    assert outcome.code == 0, outcome.err
    text = (tmp_path / "mine.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert "</script><b>" not in text
    assert "http://" not in text.replace("http://www.w3.org/", "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["countin"], "did you mean 'counting'"),
        (["nowhere.ipynb"], "nowhere.ipynb: no such file"),
        (["counting", "--html", "x.txt"], "must end in .html"),
        (["counting", "--html", "nowhere/x.html"], "there is no folder nowhere"),
        (["--solutions"], "name the lecture"),
    ],
)
def test_wrong_words_get_one_line(words: list[str], told: str) -> None:
    outcome = call_here("lecture", *words)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (UsageError.exit_code, "", 1)
    assert told in outcome.err


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = written(tmp_path / "mine.ipynb", "1")
    monkeypatch.setattr(disk, "write", full)
    for option, where in (("--notebook", "copy.ipynb"), ("--markdown", "pages"), ("--html", "mine.html")):
        outcome = call_here("lecture", path, option, str(tmp_path / where))
        assert (outcome.code, outcome.err.splitlines()[-1].count("No space left")) == (ResourceError.exit_code, 1)


def test_open_shows_a_lecture_of_the_package_on_the_page_of_the_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("regard.cli.lab.serve_page", lambda _common, _runs, _port, place: opened.append(place))
    assert call_here("lecture", "counting", "--open").code == 0
    assert opened == ["#show=counting"]
    outcome = call_here("lecture", written(tmp_path / "mine.ipynb", "1"), "--open")
    assert outcome.code == UsageError.exit_code
    assert "--html FILE makes a page of yours" in outcome.err


def test_open_shows_no_lecture_of_the_package_in_the_place_of_a_changed_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("regard.cli.lab.serve_page", lambda _common, _runs, _port, place: opened.append(place))
    copy = tmp_path / "mine.ipynb"
    assert call_here("lecture", "counting", "--notebook", str(copy)).code == 0
    copy.write_text(copy.read_text(encoding="utf-8").replace("mine = None", "mine = 1"), encoding="utf-8")
    assert call_here("lecture", str(copy), "--open").code == UsageError.exit_code
    assert opened == []


def test_the_page_of_lectures_is_true(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "lectures.md").read_text(encoding="utf-8")
    for one in lectures():
        assert f"| {one.number} | [{one.name}](lectures/{one.name}.md) | {one.question} |" in page
    for argv in (["lecture"], ["lecture", "counting", "--notebook", "mine.ipynb"]):
        assert f"regard {' '.join(argv)}\n" in page
        assert call_here(*argv).code == 0
    # What the notebook shows is looked at where it is sat.
    assert "regard lecture mine.ipynb\n" in page
    assert lecture("mine.ipynb").name == "counting"
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(block, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"# (counting/1: .*)", block)
