"""How the package is built: nothing but a task's own file holds its name, and every task comes through one door."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard import tasks

SOURCE = Path(tasks.__file__).parents[1]
NAMES = frozenset(tasks.BUILT_IN)
# The files of tasks; what worlds and models say of themselves, which task they are for; and the laws, which make up
# something to read for every kind of model.
FREE = ("tasks", "data/worlds", "models", "laws")
# What asks for a task by its name.
CALLS = ("task_named", "world_of", "shape_of")


def others() -> list[Path]:
    """Every file that is to know no task by its name."""
    free = tuple(SOURCE / part for part in FREE)
    return [path for path in sorted(SOURCE.rglob("*.py")) if not any(path.is_relative_to(part) for part in free)]


def named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a name of a task stands for a task: compared or called with, set as one, or in a list of several."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            asks = any("task" in word or word == "kind" for word in words(node))
            found = strings(node) if asks else []
        elif isinstance(node, ast.Call):
            found = [part for argument in node.args for part in strings(argument)] if called(node) in CALLS else []
            found += [part for one in node.keywords if "task" in (one.arg or "") for part in strings(one.value)]
        elif isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set):
            inside = node.keys if isinstance(node, ast.Dict) else node.elts
            found = [one.value for one in inside if isinstance(one, ast.Constant) and one.value in NAMES]
            found = found if len(set(found)) > 1 else []
        else:
            continue
        yield from ((node.lineno, name) for name in found)


def strings(tree: ast.AST) -> list[str]:
    return [part.value for part in ast.walk(tree) if isinstance(part, ast.Constant) and part.value in NAMES]


def words(tree: ast.AST) -> list[str]:
    """The names of variables and attributes."""
    found = [part.id for part in ast.walk(tree) if isinstance(part, ast.Name)]
    return found + [part.attr for part in ast.walk(tree) if isinstance(part, ast.Attribute)]


def called(node: ast.Call) -> str:
    return (words(node.func) or [""])[-1]


def test_no_file_but_its_own_holds_the_name_of_a_task():
    found = [
        f"{path.relative_to(SOURCE)}, line {line}: {name}"
        for path in others()
        for line, name in named(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        'if task == "labelled": pass',
        'if run.task.name in ("text", "masked"): pass',
        'HEADED = {"labelled": "classifier", "tagged": "tagger"}',
        'world_of(data, "pairs")',
        'plan(task="series")',
    ],
)
def test_a_name_is_found_where_it_stands_for_a_task(code: str):
    assert list(named(ast.parse(code)))


@pytest.mark.parametrize("name", tasks.BUILT_IN)
def test_a_built_in_task_registers_as_one_from_outside_does(name: str):
    module = importlib.import_module(tasks.BUILT_IN[name])
    assert "@register_task" in Path(str(module.__file__)).read_text(encoding="utf-8")
    task = tasks.task_named(name)
    assert (task.name, type(task).__module__) == (name, tasks.BUILT_IN[name])
    assert task.model
    assert task.ladder
    assert task.world
