"""Inputs as a caller has them: one, a list, an array, a column, or a table of which the run knows its column."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regard.data.in_memory import described, is_frame, is_listed, listed, rows_of
from regard.data.table import Table
from regard.data.tabular import table_of
from regard.data.unlabelled import choose_input
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.run.run import Run


def is_one(run: Run, given: Any) -> bool:
    """Whether something is a single input, and not several of them."""
    if isinstance(given, str | os.PathLike) or not (is_frame(given) or is_listed(given)):
        return True
    return run.task.reads_tables and not (is_listed(given) and _are_tables(run, listed(given)))


def inputs_of(run: Run, given: Any, verb: str) -> list[Any]:
    """Every input of a list, an array, a Series, an iterator or a table, each as the run's task takes it.

    verb  who asks, for messages. Where an input is a whole table, such a one is an input by itself.
    """
    task = run.task
    if task.reads_tables:
        found = listed(given) if is_listed(given) else given
        is_many = isinstance(found, Sequence) and not isinstance(found, str) and _are_tables(run, found)
        many = found if is_many else [found]
        return [task.given(one, f"{verb}, input {number}: ") for number, one in enumerate(many, 1)]
    if isinstance(given, str):
        raise UsageError(f"{verb} takes several inputs at once: give a list, [{given[:40]!r}]")
    if not (is_frame(given) or is_listed(given)):
        raise UsageError(
            f"{verb} takes a list of inputs, each {task.takes}, or a table that has them in a column; found "
            f"{described(given)}"
        )
    rows = given if is_frame(given) else rows_of(given, verb)
    if not len(rows):
        raise UsageError(f"{verb}: there are no inputs; give at least one")
    if is_frame(rows) or isinstance(rows[0], Mapping):
        return _cells(run, table_of(rows, f"the table of {verb}"))
    return [task.given(one, f"{verb}, input {number}: ") for number, one in enumerate(rows, 1)]


def _cells(run: Run, table: Table) -> list[Any]:
    role = run.task.input_role(run, run.settings)
    name = choose_input(table, role, "rename it, or give that column alone")
    found = []
    for row, cell in enumerate(table.cells[name]):
        if cell is None:
            raise UsageError(f"{table.where(row)}: there is nothing in the column {name!r}; fill it in or leave it out")
        found.append(run.task.given(run.task.of_cell(cell), f"{table.where(row)}: "))
    return found


def _are_tables(run: Run, values: Sequence[Any]) -> bool:
    """Whether each value is a table, the path of one or an example of the task, rather than a row."""
    kinds = (str, os.PathLike, *(() if run.task.example is None else (run.task.example,)))
    return bool(values) and all(isinstance(one, kinds) or _is_table(one) for one in values)


def _is_table(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and all(map(is_listed, value.values()))
    return is_frame(value)
