"""How the cells of a lecture run: what they show, what of them fails, and in which words."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.errors import DataError, ResourceError, Stopped, UsageError
from regard.lectures import catalogue, folder
from regard.lectures.execution import MODULE, MOST, CellError, SatScreen, screens
from regard.lectures.markdown import page, write
from regard.lectures.notebook import Lecture, read
from regard.lectures.printed import paragraphs
from regard.lectures.sitting import keep, kept, sit


def notebook(path: Path, *cells: tuple[str, ...], **about: Any) -> Lecture:
    """A lecture of (kind of cell, source, tags), as Jupyter would write it."""
    told = [
        {
            "cell_type": kind,
            "id": f"c{number}",
            "metadata": {"tags": list(tags)},
            "source": source.splitlines(keepends=True),
            **({} if kind == "markdown" else {"outputs": [], "execution_count": None}),
        }
        for number, (kind, source, *tags) in enumerate(cells)
    ]
    whole = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"regard": about} if about else {}, "cells": told}
    path.write_text(json.dumps(whole), encoding="utf-8")
    return read(path)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return tmp_path / "mine.ipynb"


def shown(lecture: Lecture) -> list[list[tuple[str, Any]]]:
    """Kind and value of what each cell of code has shown."""
    cells = [cell for screen in screens(lecture) for cell in screen.cells if cell.cell.is_code]
    return [[(output.kind, output.value) for output in cell.outputs] for cell in cells]


def test_a_cell_shows_what_it_prints_and_its_last_line(mine: Path) -> None:
    lecture = notebook(
        mine, ("code", "x = 3\nprint('so')\nx + 1"), ("code", "x;"), ("code", "y = x"), ("code", "None"), ("code", "")
    )
    assert shown(lecture) == [[("text", "so\n"), ("text", "4")], [], [], []]


def test_a_view_stays_one_and_whatever_draws_itself_is_a_drawing(mine: Path) -> None:
    lecture = notebook(
        mine,
        ("code", "from regard.explain.worked import example\nexample('ab')"),
        ("code", "class Drawn:\n    def to_svg(self):\n        return '<svg/>'\n\nDrawn()"),
    )
    (view,), drawing = shown(lecture)
    assert view[0] == "view"
    assert view[1]["S"].values.shape == (4, 4)
    assert drawing == [("svg", "<svg/>")]


def test_a_cell_that_fails_is_told_by_its_place_and_ends_the_lecture(mine: Path) -> None:
    lecture = notebook(
        mine,
        ("markdown", "# Mine"),
        ("markdown", "## One"),
        ("code", "x = 1"),
        ("code", "x += 1\nunknown + x\nprint('never')"),
    )
    wanted = r"^lecture mine, screen 1 \(One\), cell 2, line 2: NameError: name 'unknown' is not defined$"
    with pytest.raises(CellError, match=wanted):
        sit(lecture)
    assert CellError.exit_code == 1
    assert MODULE not in sys.modules


def test_a_line_that_is_no_python_is_told_by_its_place(mine: Path) -> None:
    with pytest.raises(CellError, match=r"cell 1, line 2: SyntaxError"):
        sit(notebook(mine, ("code", "x = 1\nif x")))


def test_an_error_of_the_package_is_told_in_its_own_line(mine: Path) -> None:
    with pytest.raises(CellError, match=r"line 2: unknown model 'gtp'.*did you mean 'gpt'"):
        sit(notebook(mine, ("code", "import regard\nregard.build('gtp', vocab_size=5)")))


def test_a_cell_that_may_fail_shows_its_error_and_the_lecture_goes_on(mine: Path) -> None:
    lecture = notebook(mine, ("code", "1 / 0", "raises-exception"), ("code", "'on'"))
    assert shown(lecture) == [[("error", "ZeroDivisionError: division by zero")], [("text", "'on'")]]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("raise KeyboardInterrupt", KeyboardInterrupt),
        ("from regard.errors import Stopped\nraise Stopped('x')", Stopped),
    ],
)
def test_whoever_stops_a_lecture_is_heard(mine: Path, source: str, kind: type[BaseException]) -> None:
    with pytest.raises(kind):
        sit(notebook(mine, ("code", source)))


def test_classes_of_a_cell_are_those_of_a_module(mine: Path) -> None:
    source = "from dataclasses import dataclass\n\n@dataclass\nclass Point:\n    x: 'int'\n\nPoint(2)"
    assert shown(notebook(mine, ("code", source))) == [[("text", "Point(x=2)")]]


def test_a_cell_is_python_as_in_jupyter_and_takes_no_settings_of_ours(mine: Path) -> None:
    source = "def double(x: int) -> int:\n    return 2 * x\n\ndouble.__annotations__['x'] is int"
    assert shown(notebook(mine, ("code", source))) == [[("text", "True")]]


def test_a_value_that_cannot_be_shown_is_told_by_its_place(mine: Path) -> None:
    source = "class Shy:\n    def __repr__(self):\n        raise ValueError('no')\n\nShy()"
    with pytest.raises(CellError, match=r"cell 1, line 3: ValueError: no$"):
        sit(notebook(mine, ("code", source)))
    (((kind, text),),) = shown(notebook(mine, ("code", "from regard.explain.view import View\nView")))
    assert (kind, text) == ("text", "<class 'regard.explain.view.View'>")


def test_what_is_printed_without_end_is_cut(mine: Path) -> None:
    (((_, text),),) = shown(notebook(mine, ("code", "print('a' * 100_000)")))
    assert len(text) < MOST + 50
    assert text.endswith("characters more")


def test_a_notebook_of_anybody_is_a_lecture(mine: Path) -> None:
    lecture = notebook(mine, ("code", "1 + 1"), ("markdown", "## Then\n\nWords."), ("markdown", "More."))
    assert (lecture.name, lecture.title, lecture.number) == ("mine", "mine", 0)
    assert [(screen.title, len(screen.cells)) for screen in lecture.screens] == [("mine", 1), ("Then", 2)]
    assert notebook(mine, ("markdown", "# Its title\n\nWords.")).title == "Its title"


def test_prose_that_cannot_be_read_is_told_by_its_screen(mine: Path) -> None:
    lecture = notebook(mine, ("markdown", "## Then\n\n$$\\nosuchmacro{x}$$"))
    with pytest.raises(DataError, match=r"lecture mine, screen 1 \(Then\): .*nosuchmacro"):
        sit(lecture)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "JSONDecodeError"),
        (b"\xff\xfe", "UnicodeDecodeError"),
        (b"[]", "not a notebook of format 4"),
        (b'{"nbformat": 3, "cells": []}', "not a notebook of format 4"),
        (b'{"nbformat": 4, "cells": [1]}', "TypeError"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code"}]}', "KeyError"),
        (b"[" * 100_000, "RecursionError"),
    ],
)
def test_what_is_no_notebook_is_refused_in_a_line(mine: Path, content: bytes, told: str) -> None:
    mine.write_bytes(content)
    with pytest.raises(DataError, match=told) as refused:
        read(mine)
    assert str(refused.value).startswith(f"{mine}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_a_pipe_is_not_waited_for(mine: Path) -> None:
    os.mkfifo(mine)
    with pytest.raises(UsageError, match=r"mine\.ipynb: is a named pipe, not a regular file"):
        read(mine)


def test_unknown_names_get_the_nearest_and_a_missing_folder_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="did you mean 'counting'"):
        catalogue.lecture("countin")
    assert catalogue.lecture("1").name == "counting"
    monkeypatch.setattr(catalogue, "PLACES", (Path("/nowhere"), Path("/nowhere/else")))
    with pytest.raises(ResourceError, match="no lectures lie in /nowhere"):
        catalogue.lecture("counting")


def test_a_sitting_is_kept_until_the_notebook_changes(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lecture = notebook(mine, ("code", "1 + 1"))
    assert kept(lecture) is None
    sitting = sit(lecture)
    keep(lecture, sitting)
    assert kept(lecture) == sitting
    assert kept(notebook(mine, ("code", "1 + 2"))) is None
    (cached,) = (tmp_path / "cache" / "regard" / "lectures").iterdir()
    cached.write_text("{", encoding="utf-8")
    assert kept(lecture) is None


def test_a_name_that_would_lead_elsewhere_is_refused_and_no_file_of_others_is_removed(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("../up", "/tmp/up", "a\\b"):
        with pytest.raises(DataError, match="no name of a lecture"):
            notebook(mine, ("code", "1"), name=name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lectures = [notebook(tmp_path / f"{name}.ipynb", ("code", "1")) for name in ("mine", "mine-too", "*")]
    for lecture in lectures:
        keep(lecture, sit(lecture))
    assert all(kept(lecture) for lecture in lectures)
    folder = tmp_path / "pages"
    folder.mkdir()
    for name in ("mine-2.svg", "mine-drawing.svg"):
        (folder / name).write_text("<svg/>", encoding="utf-8")
    write(lectures[0], screens(lectures[0]), folder)
    assert sorted(path.name for path in folder.iterdir()) == ["mine-drawing.svg", "mine.md"]


def test_a_page_has_its_figures_and_hides_solutions(mine: Path) -> None:
    lecture = notebook(
        mine,
        ("markdown", "# Mine\n\nA question."),
        ("markdown", "## Look"),
        ("code", "from regard.explain.worked import example\nexample('ab')"),
        ("code", "print('```')"),
    )
    text, figures = page(lecture, screens(lecture))
    assert text.startswith("# Mine\n\n```\nregard lecture mine\n```\n\nA question.\n\n## Look\n\n```python\n")
    assert list(figures) == ["mine-1.svg"]
    assert figures["mine-1.svg"].startswith("<svg")
    assert "](mine-1.svg)" in text
    assert "````text\n```\n````" in text


def test_a_figure_is_found_by_a_page_whose_name_has_spaces(tmp_path: Path) -> None:
    lecture = notebook(
        tmp_path / "my notes.ipynb", ("code", "from regard.explain.worked import example\nexample('ab')")
    )
    text, figures = page(lecture, screens(lecture))
    assert list(figures) == ["my notes-1.svg"]
    assert "](my%20notes-1.svg)" in text


def test_prose_is_filled_and_what_must_stand_alone_stands_alone() -> None:
    source = "one two\nthree four\n\n1. five six seven\n   eight\n\n| a | b |\n\n$$x$$\n```\nkept  as is\n```"
    wanted = ["one two", "three four", "", "1. five six", "   seven", "   eight", "", "| a | b |", "", "$$x$$"]
    assert list(paragraphs(source, 12)) == [*wanted, "kept  as is"]


def test_places_of_runs_are_new_every_time_and_names_are_names() -> None:
    first, second = folder.new_folder("run"), folder.new_folder("run")
    assert first != second
    assert not Path(first).exists()
    assert Path(first).parent.is_dir()
    with pytest.raises(UsageError, match="letters, digits"):
        folder.new_folder("../up")


def test_a_screen_says_its_number() -> None:
    numbers = [one.number for one in _of("counting")]
    assert numbers == [1, 2]


def _of(name: str) -> list[SatScreen]:
    """The first two screens, which do no more than import and show a worked example."""
    found = screens(catalogue.lecture(name))
    return [next(found), next(found)]
