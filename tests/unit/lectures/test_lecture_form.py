"""The notebooks that come with the package: what is in them, and what is not."""

from __future__ import annotations

import ast
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from regard.charts.prose import nodes
from regard.lectures.catalogue import folder, lectures
from regard.lectures.exercise import OPEN, RIGHT, difference, passes, sitting_in, verdict
from regard.lectures.notebook import KINDS, Lecture

NOTEBOOKS = sorted(folder().glob("*.ipynb"))
EVERY = [pytest.param(lecture, id=lecture.name) for lecture in lectures()]
KEYS = {"cell_type", "id", "metadata", "source"}
SCREENS = range(8, 20)
NEEDED = {"experiment", "picture", "exercise", "claim", "statements"}
CALL = re.compile(r'answer\(\s*"([\w-]+)/(\w+)"')


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_no_outputs_and_stable_names_of_cells(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    told = json.loads(text)
    assert (told["nbformat"], told["nbformat_minor"]) == (4, 5)
    assert told["metadata"]["kernelspec"]["name"] == "python3"
    assert set(told["metadata"]["regard"]) == {"name", "number", "title", "question"}
    assert path.name == f"{told['metadata']['regard']['number']:02d}-{told['metadata']['regard']['name']}.ipynb"
    ids = [cell["id"] for cell in told["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in told["cells"]:
        assert re.fullmatch(r"[\w-]{1,64}", cell["id"])
        assert set(cell) == (KEYS if cell["cell_type"] == "markdown" else KEYS | {"execution_count", "outputs"})
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


def test_they_are_numbered_without_a_gap() -> None:
    assert [one.number for one in lectures()] == list(range(1, len(NOTEBOOKS) + 1))
    assert len({one.name for one in lectures()}) == len(NOTEBOOKS)


@pytest.mark.parametrize("lecture", EVERY)
def test_a_lecture_has_a_question_an_experiment_a_picture_exercises_and_a_claim(lecture: Lecture) -> None:
    assert lecture.question.endswith("?")
    assert len(lecture.screens) in SCREENS
    kinds = [screen.kind for screen in lecture.screens]
    assert NEEDED <= set(kinds) <= set(KINDS)
    assert kinds[-1] == "statements"
    assert len(lecture.exercises) >= 2
    for screen in lecture.screens:
        assert screen.title, lecture.name
        assert screen.notes, f"{lecture.name}: no presenter's notes on {screen.title}"
        assert screen.cells, f"{lecture.name}: {screen.title} is empty"


@pytest.mark.parametrize("lecture", EVERY)
def test_its_prose_and_its_code_can_be_read(lecture: Lecture) -> None:
    for screen in lecture.screens:
        for cell in screen.cells:
            if cell.is_code:
                assert ast.parse(cell.source).body
            else:
                assert nodes(cell.source)


@pytest.mark.parametrize("lecture", EVERY)
def test_every_exercise_is_asked_and_solved_on_its_screen(lecture: Lecture) -> None:
    for screen in lecture.screens:
        asked = {found for cell in screen.cells if not cell.is_solution for found in CALL.findall(cell.source)}
        solved = {found for cell in screen.cells if cell.is_solution for found in CALL.findall(cell.source)}
        assert asked == solved, screen.title
        assert {owner for owner, _ in asked} <= {lecture.name}
        assert bool(asked) is (screen.kind == "exercise"), screen.title
    whole = "\n".join(cell.source for screen in lecture.screens for cell in screen.cells)
    assert {number for _, number in CALL.findall(whole)} == set(lecture.exercises)


@pytest.mark.parametrize("lecture", EVERY)
def test_the_truth_is_right_nothing_is_open_and_anything_else_is_wrong(lecture: Lecture) -> None:
    with sitting_in(lecture):
        for number, exercise in lecture.exercises.items():
            name = f"{lecture.name}/{number}"
            assert exercise.hint, f"{name} has no hint"
            assert verdict(name, exercise.truth) == RIGHT
            assert verdict(name, None) == OPEN
            for other in wrong(exercise.truth):
                assert verdict(name, other) not in (RIGHT, OPEN), (name, other)


def wrong(truth: Any) -> list[Any]:
    """Answers that are not the truth, of its kind and of others."""
    if isinstance(truth, bool):
        return [not truth, int(truth), "yes"]
    if isinstance(truth, (int, float)):
        return [2 * truth + 3, -truth - 1, "many", [truth], True, float("nan")]
    if isinstance(truth, list):
        return [truth[:-1], [*truth, truth[-1]], [wrong(part)[0] for part in truth], 0.5, "none"]
    return [f"not {truth}", 0.5, [truth]]


def broken_at_once(width: int) -> Any:
    raise ZeroDivisionError(f"no {width} can be divided so")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (3, "int is neither a mixer"),
        (lambda width: None, "<lambda> gives a NoneType, not a regard.Mixer"),
        (broken_at_once, "ZeroDivisionError: no"),
    ],
)
def test_what_is_no_mixer_is_a_wrong_answer(given: Any, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert passes(given) is False
    assert capsys.readouterr().out.startswith(told)


def test_a_word_for_a_number_is_told_so_and_an_exercise_without_its_lecture_how_they_are_named() -> None:
    assert verdict("recurrence/2", "14").startswith("not yet: a number is expected")
    assert verdict("recurrence", 14) == 'name the lecture and the exercise, as "counting/1"'


def test_a_number_is_right_in_any_of_its_forms_and_a_huge_one_is_wrong() -> None:
    product = 0.1 * 3 * 1e6  # 300000.00000000006
    assert product != 300_000
    assert difference(product, 300_000) == ""
    assert difference(300_000.5, 300_000) != ""
    assert difference(300_001, 300_000) != ""
    assert difference(Fraction(1, 3), 1 / 3) == difference(Fraction(6, 2), 3) == ""
    assert difference(Fraction(1, 3), 0.25) == "Fraction(1, 3) is not it"
    assert difference(0.053, 4 / 75) == "0.053 is near, and not near enough"
    assert verdict("counting/1", 10**400).startswith("not yet: 1000")
