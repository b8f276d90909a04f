"""Every statement of the lecture material lies in one lecture, with a verdict that its study or example bears."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from regard.explain.worked import examples
from regard.lectures import markdown
from regard.lectures.catalogue import lectures
from regard.lectures.notebook import Lecture
from regard.studies.registry import names

DOCS = Path(__file__).parents[3] / "docs"
# How many statements each of the five sets of material makes.
MATERIAL = {"S0": 27, "S1": 47, "S2": 49, "S3": 33, "S4": 68}
BEGINNINGS = {
    "shown": "shown above",
    "exact": "exact in `",
    "holds": "holds, `",
    "in part": "in part, `",
    "not settled": "not settled, `",
    "does not hold": "does not hold, `",
    "reference": "reference",
    "no statement": "no statement",
}
OF_STUDIES = ("holds", "in part", "not settled", "does not hold")
ROW = re.compile(r"^\| (.+) \| (.+) \|$", re.MULTILINE)
NAME = re.compile(r"`([^`]+)`")


def table(lecture: Lecture) -> list[tuple[str, str]]:
    """Statement and verdict of each row of the lecture's last screen."""
    screen = lecture.screens[-1]
    assert screen.kind == "statements", lecture.name
    found = ROW.findall("\n".join(cell.source for cell in screen.cells))
    assert found[0] == ("What was said", "Verdict"), lecture.name
    return found[2:]


def judged() -> dict[str, set[str]]:
    """What docs/reproduce.md says of each study, on the CPU and on the GPU."""
    page = (DOCS / "reproduce.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| `(\w+)`[^|]*\|[^|]*\| ([a-z ]+) \| ([a-z ]+) \|$", page, re.MULTILINE)
    return {study: {cpu, gpu} for study, cpu, gpu in lines}


def statements_page() -> ModuleType:
    """The command that writes docs/statements.md."""
    spec = importlib.util.spec_from_file_location("statements_page", DOCS / "statements.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EVERY = [pytest.param(lecture, id=lecture.name) for lecture in lectures()]


def test_every_statement_lies_in_exactly_one_lecture() -> None:
    wanted = [f"{source}-{number:02d}" for source, count in MATERIAL.items() for number in range(1, count + 1)]
    found = [statement for lecture in lectures() for statement in lecture.statements]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("lecture", EVERY)
def test_each_row_has_its_statement_and_begins_with_its_verdict(lecture: Lecture) -> None:
    rows = table(lecture)
    assert len(rows) == len(lecture.statements)
    for (said, told), (statement, verdict) in zip(rows, lecture.statements.items(), strict=True):
        assert told.startswith(BEGINNINGS[verdict]), (statement, verdict, told)
        assert statement[:2] not in re.findall(r"S\d", said), "a reader is not shown numbers of an inventory"


@pytest.mark.parametrize("lecture", EVERY)
def test_verdicts_name_worked_examples_and_studies_that_there_are(lecture: Lecture) -> None:
    known = {*examples(), *names()}
    for (_, told), verdict in zip(table(lecture), lecture.statements.values(), strict=True):
        named = [name for name in NAME.findall(told) if not name.isupper()]
        if verdict == "exact":
            assert named[0] in examples(), told
        if verdict in OF_STUDIES:
            assert named[0] in names(), told
        assert known.issuperset(named), told


@pytest.mark.parametrize("lecture", EVERY)
def test_verdicts_are_those_that_the_studies_came_to(lecture: Lecture) -> None:
    of_study = judged()
    for (_, told), verdict in zip(table(lecture), lecture.statements.values(), strict=True):
        if verdict not in OF_STUDIES:
            continue
        came_out = of_study[NAME.findall(told)[0]]
        if verdict in ("holds", "does not hold"):
            assert came_out == {verdict}, told
        elif verdict == "not settled":
            assert came_out == {verdict} or len(came_out) == 2, told
        else:
            assert came_out != {"holds"}, f"the whole of it holds: {told}"


def test_a_page_of_a_lecture_leads_to_all_statements_where_they_lie_beside_it(tmp_path: Path) -> None:
    lecture = lectures()[0]
    alone = markdown.write(lecture, [], tmp_path / "mine").read_text(encoding="utf-8")
    assert "statements.md" not in alone
    (tmp_path / "statements.md").write_text("all of them", encoding="utf-8")
    beside = markdown.write(lecture, [], tmp_path / "lectures").read_text(encoding="utf-8")
    assert beside == f"{alone}\n[What was said in all lectures](../statements.md)\n"


def test_the_page_of_statements_is_up_to_date() -> None:
    written = (DOCS / "statements.md").read_text(encoding="utf-8")
    assert written == statements_page().page(), "run python docs/statements.py"
