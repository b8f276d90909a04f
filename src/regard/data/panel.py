"""Reading series from a table: which column is what, one series or several in one file, and what to do about holes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from regard.data.choices import OPEN, Choices
from regard.data.gaps import FILL, GAPS, refuse_missing, whole_grid
from regard.data.grid import grid_step, named
from regard.data.packed import Chosen
from regard.data.series import Panel, Roles, Series, observed
from regard.data.table import Table
from regard.data.tabular import read_table
from regard.errors import DataError, UsageError, nearest
from regard.storage.arrays import Spool, joined, slices

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
    groups, order, left = _groups(table, roles.series)
    reader = _Reader(table, roles, gaps, future, order)
    names = {label: f"{path}, {roles.series} {label}" if roles.series else path for label in groups}
    step = _common_step({names[label]: reader.times[rows] for label, rows in groups.items()})
    parts = reader.parts(groups, step, names)
    series = [reader.series(*parts[label], rows, step, label, names[label]) for label, rows in groups.items()]
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
    """Makes series of the rows of a table, and counts what was mended.

    order  in which the rows are taken, so that those of a series stand together; None where they do.
    """

    def __init__(self, table: Table, roles: Roles, gaps: str, future: bool, order: np.ndarray | None) -> None:
        assert roles.time is not None
        assert roles.target is not None
        self.table, self.roles, self.gaps, self.future, self.order = table, roles, gaps, future, order
        self.columns = [roles.target, *roles.known, *(roles.past or ())]
        self.times, self.values = table.times(roles.time), table.numbers(*self.columns)
        if order is not None:
            self.times = joined((self.times[some] for (some,) in slices(order)), dtype=self.times.dtype)
            self.values = joined((self.values[some] for (some,) in slices(order)), (len(self.columns),))
        self.n_added = self.n_empty = 0

    def parts(
        self, groups: dict[str, slice], step: np.timedelta64, names: dict[str, str]
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Times and values of every series, by label; views of the same two arrays."""
        if self.gaps == "refuse":
            return {label: (self.times[rows], self.values[rows]) for label, rows in groups.items()}
        times, columns, sizes = Spool(self.times.dtype), Spool(np.float64), list[int]()
        for label, rows in groups.items():
            whole = self._mended(columns, self.times[rows], self.values[rows], step, names[label])
            times.append(whole)
            sizes.append(len(whole))
        when, what, width = times.array().view(np.ndarray), columns.array().view(np.ndarray), len(self.columns)
        found, first = dict[str, tuple[np.ndarray, np.ndarray]](), 0
        for label, size in zip(groups, sizes, strict=True):
            stop = first + size
            found[label] = when[first:stop], what[width * first : width * stop].reshape(width, size).T
            first = stop
        return found

    def series(
        self, times: np.ndarray, values: np.ndarray, rows: slice, step: np.timedelta64, label: str, name: str
    ) -> Series:
        """The series with these times and values, from some rows."""
        if self.gaps == "refuse" and not self.future:
            refuse_missing(times, values[:, :1], self.columns[:1], name)
        known = 1 + len(self.roles.known)
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

    def _mended(
        self, columns: Spool, times: np.ndarray, values: np.ndarray, step: np.timedelta64, name: str
    ) -> np.ndarray:
        """Every time of the grid. Added to `columns` are values without holes, one column after the other."""
        whole, places = whole_grid(times, step, name)
        n_added, last = len(whole) - len(places), len(whole)
        if self.future:
            n_observed = observed(values[:, 0])
            last = int(places[n_observed - 1]) + 1 if n_observed else 0
        self.n_added, self.n_empty = self.n_added + n_added, self.n_empty - n_added * len(self.columns)
        for column in self._filled(whole, places, values, last, name):
            columns.append(column)
        return whole

    def _filled(
        self, times: np.ndarray, places: np.ndarray, values: np.ndarray, last: int, name: str
    ) -> Iterator[np.ndarray]:
        """One column (n,) after the other, whole up to the last target, those known ahead to the end.

        places  of the values, among the times.
        """
        for number, column in enumerate(self.columns):
            found = np.full(len(times), np.nan)
            for where, part in slices(places, values[:, number]):
                found[where] = part
            is_ahead = 1 <= number <= len(self.roles.known)
            stop = len(times) if is_ahead else last
            self.n_empty += int(np.isnan(found[:stop]).sum())
            if stop and (is_ahead or self.gaps != "skip"):
                # What is known ahead is needed of every step, also where windows are to keep clear of holes.
                fill = FILL.get(self.gaps, FILL["forward"])
                found[:stop] = fill(times[:stop], found[:stop], column, name)
            yield found

    def _static(self, column: str, label: str, rows: slice) -> str:
        """What the column says of a series, which must be one thing."""
        numbers = np.arange(rows.start, rows.stop) if self.order is None else self.order[rows]
        found = {(cell or "").strip() for cell in Chosen(self.table.cells[column], numbers)}
        if len(found) > 1:
            raise DataError(
                f"{self.table.path}: {column} is not the same all along {self.roles.series} {label}: "
                f"{listed(sorted(found))}; what changes is no static column, name it with data.past or data.known"
            )
        return found.pop()


def _groups(table: Table, column: str | None) -> tuple[dict[str, slice], np.ndarray | None, tuple[str, ...]]:
    """Where every series stands once the rows are in an order, that order, and a line about what is left out.

    The order is None where each series stands together as it is.
    """
    if column is None:
        return {"": slice(0, len(table))}, None, ()
    numbers = dict[str, int]()
    code = np.fromiter((numbers.setdefault(cell, len(numbers)) for cell in _labels(table, column)), "i4", len(table))
    table.cells[column].release()
    counts = np.bincount(code)
    single = [label for label, count in zip(numbers, counts, strict=True) if count == 1]
    if len(single) == len(numbers):
        raise DataError(f"{table.path}: every {column} has one row, and one time stamp makes no series")
    order = np.argsort(code, kind="stable")
    order = order[counts[code[order]] > 1]
    stops = np.cumsum(np.where(counts > 1, counts, 0)).tolist()
    found = {label: slice(stop - int(n), stop) for label, n, stop in zip(numbers, counts, stops, strict=True) if n > 1}
    left = (f"left out, for one row makes no series: {listed(single)}",) if single else ()
    return found, None if (order == np.arange(len(table))[: len(order)]).all() else order, left


def _labels(table: Table, column: str) -> Iterator[str]:
    """Of which series each row is."""
    for row, cell in enumerate((cell or "").strip() for cell in table.cells[column]):
        if not cell:
            raise DataError(f"{table.path}, line {table.lines[row]}, column {column!r}: no series is named; mend it")
        yield cell


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
