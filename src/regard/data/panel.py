"""Reading series from a table: which column is what, one series or several in one file, and what to do about holes."""

from __future__ import annotations

from collections import Counter

import numpy as np

from regard.data.choices import OPEN, Choices
from regard.data.gaps import FILL, GAPS, refuse_missing, whole_grid
from regard.data.grid import grid_step, named
from regard.data.series import Panel, Roles, Series, observed
from regard.data.table import Table
from regard.data.tabular import read_table
from regard.errors import DataError, UsageError, nearest

TIME_NAMES = ("time", "date", "datetime", "timestamp", "ds")
TARGET_NAMES = ("target", "y", "price", "value")
MOST_NAMED = 12  # columns or series that a message lists


def read_panel(
    path: str, roles: Roles | None = None, gaps: str = "refuse", *, future: bool = False, choices: Choices = OPEN
) -> Panel:
    """The series of a file of named columns.

    gaps    what to do about missing rows and cells: of `GAPS`.
    future  whether rows at the end may lack the target, as the steps to be forecast do.
    """
    if gaps not in GAPS:
        raise UsageError(f"gaps = {gaps!r} is not a choice{nearest(gaps, GAPS)}")
    table = read_table(path, choices)
    roles, ignored = found_roles(table, roles or Roles())
    groups, left = _groups(table, roles.series)
    reader = _Reader(table, roles, gaps, future)
    names = {label: f"{path}, {roles.series} {label}" if roles.series else path for label in groups}
    step = _common_step({names[label]: reader.times[rows] for label, rows in groups.items()})
    series = [reader.series(rows, step, label, names[label]) for label, rows in groups.items()]
    return Panel(tuple(series), roles, (*left, *reader.mended()), ignored)


def found_roles(table: Table, asked: Roles) -> tuple[Roles, tuple[str, ...]]:
    """Every column by name, and those that are not read."""
    time = _time_column(table, asked.time)
    series = None if asked.series is None else table.column(asked.series, "series")
    lists = {role: _listed(table, role, getattr(asked, role) or ()) for role in ("known", "past", "static")}
    if lists["static"] and series is None:
        raise UsageError("data.static tells several series in one file apart: name the column of series (data.series)")
    named_already = [name for name in (time, series, *lists["known"], *lists["static"]) if name is not None]
    target = _target_column(table, asked.target, tuple(named_already))
    taken = [*named_already, target, *lists["past"]]
    for name, count in Counter(taken).items():
        if count > 1:
            raise UsageError(
                f"{name!r} is there twice: a column is the time, the target, known, past, static or series"
            )
    numeric = table.numeric(but=taken)
    past = tuple(numeric) if asked.past is None else lists["past"]
    found = Roles(time, target, lists["known"], past, series, lists["static"])
    return found, tuple(name for name in table.cells if name not in taken and name not in past)


def listed(names: list[str]) -> str:
    """Names with commas between, of many the first."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class _Reader:
    """Makes series of the rows of a table, and counts what was mended."""

    def __init__(self, table: Table, roles: Roles, gaps: str, future: bool) -> None:
        assert roles.time is not None
        assert roles.target is not None
        self.table, self.roles, self.gaps, self.future = table, roles, gaps, future
        self.columns = [roles.target, *roles.known, *(roles.past or ())]
        self.times = table.times(roles.time)
        self.values = np.stack([table.numbers(column) for column in self.columns], axis=1)
        self.n_added = self.n_empty = 0

    def series(self, rows: np.ndarray, step: np.timedelta64, label: str, name: str) -> Series:
        """The series of some rows."""
        times, values = self.times[rows], self.values[rows]
        if self.gaps != "refuse":
            times, values = self._mended(*whole_grid(times, values, step, name), name)
        elif not self.future:
            refuse_missing(times, values[:, :1], self.columns[:1], name)
        known = self._ahead.stop
        return Series(
            *(times, values[:, 0], values[:, 1:known], self.roles.known, step, self.columns[0], name),
            past=values[:, known:],
            measured=self.roles.past or (),
            static=tuple(self._static(column, label, rows) for column in self.roles.static),
            label=label,
            is_sparse=self.gaps == "skip",
            path=self.table.path,
        )

    def mended(self) -> tuple[str, ...]:
        """A line about holes, where there were any."""
        if not self.n_added + self.n_empty:
            return ()
        if self.gaps == "skip":
            return (
                f"{self.n_added} missing rows and {self.n_empty} empty cells: windows that touch them are left out",
            )
        return (f"filled in {self.n_added} missing rows and {self.n_empty} empty cells (data.gaps = {self.gaps})",)

    @property
    def _ahead(self) -> slice:
        return slice(1, 1 + len(self.roles.known))

    def _mended(self, times: np.ndarray, values: np.ndarray, added: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Values without holes up to the last target, those known ahead to the end."""
        last = observed(values[:, 0]) if self.future else len(values)
        n_empty = int(np.isnan(values[:last]).sum()) + int(np.isnan(values[last:, self._ahead]).sum())
        self.n_added, self.n_empty = self.n_added + added, self.n_empty + n_empty - added * values.shape[1]
        result, columns = values.copy(), self.columns
        # What is known ahead is needed of every step, also where windows are to keep clear of holes.
        fill = FILL.get(self.gaps, FILL["forward"])
        result[:, self._ahead] = fill(times, values[:, self._ahead], columns[self._ahead], name)
        for part in (slice(0, 1), slice(self._ahead.stop, None)) if self.gaps != "skip" else ():
            result[:last, part] = fill(times[:last], values[:last, part], columns[part], name)
        return times, result

    def _static(self, column: str, label: str, rows: np.ndarray) -> str:
        """What the column says of a series, which must be one thing."""
        cells = self.table.cells[column]
        found = {(cells[row] or "").strip() for row in rows.tolist()}
        if len(found) > 1:
            raise DataError(
                f"{self.table.path}: {column} is not the same all along {self.roles.series} {label}: "
                f"{listed(sorted(found))}; what changes is no static column, name it with data.past or data.known"
            )
        return found.pop()


def _groups(table: Table, column: str | None) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The numbers of the rows of every series, in the order in which they come, and a line about what is left out."""
    if column is None:
        return {"": np.arange(len(table.lines))}, ()
    found: dict[str, list[int]] = {}
    for row, cell in enumerate((cell or "").strip() for cell in table.cells[column]):
        if not cell:
            raise DataError(f"{table.path}, line {table.lines[row]}, column {column!r}: no series is named; mend it")
        found.setdefault(cell, []).append(row)
    single = [label for label, rows in found.items() if len(rows) == 1]
    if len(single) == len(found):
        raise DataError(f"{table.path}: every {column} has one row, and one time stamp makes no series")
    kept = {label: np.array(rows) for label, rows in found.items() if len(rows) > 1}
    return kept, (f"left out, for one row makes no series: {listed(single)}",) if single else ()


def _common_step(times: dict[str, np.ndarray]) -> np.timedelta64:
    """The step of all series; the first that has another is refused."""
    steps = {name: grid_step(some, name) for name, some in times.items()}
    (first, step), *others = steps.items()
    for name, other in others:
        if other.dtype != step.dtype or other != step:
            raise DataError(f"{name}: a step of {named(other)}, and {first} has {named(step)}; bring all to one step")
    return step


def _time_column(table: Table, name: str | None) -> str:
    if name is not None:
        return table.column(name, "time")
    found = [column for column in table.cells if column.lower() in TIME_NAMES] + table.dated()
    if not found:
        raise DataError(f"{table.path}: no column holds times such as 2013-01-31 23:00; say which does (time = NAME)")
    return found[0]


def _target_column(table: Table, name: str | None, taken: tuple[str, ...]) -> str:
    """The column to forecast; where several may be meant, it is asked for."""
    if name is not None:
        return table.column(name, "target")
    numeric = table.numeric(but=taken)
    if not numeric:
        raise DataError(f"{table.path}: no column beside {taken[0]!r} holds numbers, so there is nothing to forecast")
    called = [column for column in numeric if column.lower() in TARGET_NAMES]
    if len(numeric) > 1 and len(called) != 1:
        raise UsageError(
            f"{table.path}: which column is to be forecast? Its columns of numbers are {listed(numeric)}; name one "
            f"with --target NAME (data.target)"
        )
    return (called or numeric)[0]


def _listed(table: Table, role: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(table.column(name, role) for name in names)
