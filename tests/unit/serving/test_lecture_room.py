"""The room of lectures: a notebook that is sat in a process of its own, watched, stopped, and played with."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.errors import UsageError
from regard.lectures import catalogue
from regard.serving import lecture_room
from regard.serving.lecture_room import LectureRoom

PICTURE = """
from regard.explain.view import Bars, Control, View
def picture(size=1):
    control = Control(name="size", label="size", kind="choice", value=size, values=[1, 2])
    return View("Bars", [Bars(names=["a"], values=[size])], controls=[control], remake=lambda asked: picture(**asked))
picture()
"""
Notebook = Callable[..., None]


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """Writes a lecture of one code cell to a screen where the room looks for lectures, in its process, too."""
    folder = tmp_path / "lectures"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(catalogue, "PLACES", (folder,))
    # The process reads this file before anything else, and looks where the test does.
    code = f"import pathlib, regard.lectures.catalogue as c; c.PLACES = (pathlib.Path({str(folder)!r}),)"
    (tmp_path / "sitecustomize.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))

    def write(name: str, *codes: str) -> None:
        cells: list[dict[str, Any]] = []
        for number, code in enumerate(codes):
            source = f"# {name}" if number == 0 else f"## Screen {number}"
            about = {"id": f"prose-{number}", "metadata": {}, "source": source}
            cells.append({"cell_type": "markdown", **about})
            ran = {"id": f"code-{number}", "metadata": {}, "source": code, "outputs": [], "execution_count": None}
            cells.append({"cell_type": "code", **ran})
        about = {"name": name, "number": len(list(folder.iterdir())) + 1, "title": name.title(), "question": "Why?"}
        told = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"regard": about}, "cells": cells}
        (folder / f"{name}.ipynb").write_text(json.dumps(told), encoding="utf-8")

    return write


@pytest.fixture
def room() -> Iterator[LectureRoom]:
    made = LectureRoom()
    yield made
    made.close()


def waited(room: LectureRoom, name: str, again: bool = False) -> dict[str, Any]:
    """What the room tells in the end."""
    end = time.monotonic() + 60
    told = room.sitting(name, again)
    while "sitting" not in told and time.monotonic() < end:
        time.sleep(0.05)
        told = room.sitting(name)
    return told


def test_a_lecture_is_sat_kept_and_its_pictures_answer(notebook: Notebook, room: LectureRoom) -> None:
    notebook("one", "print('begun')", PICTURE)
    assert [(one["name"], one["is_ready"]) for one in room.lectures()] == [("one", False)]
    assert room.sitting("one").keys() == {"screen", "of"}
    told = waited(room, "one")
    assert told["is_live"]
    outputs = [cell["outputs"] for screen in told["sitting"]["screens"] for cell in screen["cells"] if "code" in cell]
    assert outputs[0] == [{"kind": "text", "text": "begun\n"}]
    assert outputs[1][0]["view"]["panels"][0]["values"] == [1]
    assert room.view("one", [1, 0, 0], {"size": 2})["panels"][0]["values"] == [2]
    for place, values, why in (([0, 0, 0], {}, "nothing to choose"), ([1, 0, 0], {"colour": 1}, "TypeError")):
        with pytest.raises(UsageError, match=why):
            room.view("one", place, values)
    assert room.lectures()[0]["is_ready"]
    room.close()
    assert waited(room, "one") == {"sitting": told["sitting"], "is_live": False}
    with pytest.raises(UsageError, match="run it again"):
        room.view("one", [1, 0, 0], {"size": 2})
    assert waited(room, "one", again=True)["is_live"]


def test_an_answer_that_nobody_waits_for_is_not_kept(
    notebook: Notebook, room: LectureRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook("one", PICTURE)
    waited(room, "one")
    assert room.sat is not None
    held: list[dict[str, Any]] = []
    with monkeypatch.context() as patch:
        patch.setattr(room.sat.outbox, "send", held.append)
        patch.setattr(lecture_room.wanted, "check", left)
        with pytest.raises(ConnectionError):
            room.view("one", [0, 0, 0], {"size": 2})
    room.sat.outbox.send(held[0])  # its answer comes before that of the next
    assert room.view("one", [0, 0, 0], {"size": 1})["panels"][0]["values"] == [1]
    assert room.sat.answers == {}


def left() -> None:
    raise ConnectionError("the browser has gone")


def test_one_lecture_is_sat_at_a_time_and_one_that_fails_says_where(notebook: Notebook, room: LectureRoom) -> None:
    notebook("slow", "import time; time.sleep(60)")
    notebook("bad", "print(1)\nnonsense")
    room.sitting("slow")
    assert room.sitting("bad")["waits_for"] == "Slow"
    room.close()
    with pytest.raises(UsageError, match=r"lecture bad, screen 1 .*, cell 1, line 2: NameError: .*nonsense"):
        waited(room, "bad")
    assert room.sitting("slow").keys() == {"screen", "of"}  # nobody is in the way any more


def test_a_lecture_that_takes_too_long_or_whose_process_dies_is_refused(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook("slow", "import time; time.sleep(60)")
    notebook("dead", "import os; os._exit(3)")
    for name, why in (("slow", "took longer than 0.5 seconds and was stopped"), ("dead", "ended before it was done")):
        room = LectureRoom(longest=0.5 if name == "slow" else 60)
        with pytest.raises(UsageError, match=why):
            waited(room, name)
        room.close()


def test_the_page_names_lectures_and_no_files(notebook: Notebook, room: LectureRoom, tmp_path: Path) -> None:
    notebook("one", "1")
    for name in ("two", "1", str(tmp_path / "lectures" / "one.ipynb"), "../one.ipynb"):
        with pytest.raises(UsageError, match="unknown lecture"):
            room.sitting(name)
