"""What tables share in which something is told of a text, a number or labels: how columns are chosen and read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.data.account import Account
from regard.data.example import E, Examples
from regard.data.header import mean_length
from regard.data.labelled import TEXT_NAMES
from regard.data.missing import Kept
from regard.data.packed import Column, Mapped
from regard.data.source import shown
from regard.data.table import Table
from regard.data.tabular import describe
from regard.errors import UsageError

HEAD = 1_000  # rows by which columns are told


def told_names(*names: str | None) -> list[str]:
    """The names of columns that somebody said, as a header is searched for them."""
    return [name.strip().lower() for name in names if name is not None and not name.isdecimal()]


def head_of(table: Table, lacking: Collection[str]) -> dict[str, list[str]]:
    """The first cells of each column that are texts, without blanks around. lacking: what stands for no value."""
    columns = zip(table.names, table.head(HEAD), strict=True)
    return {
        name: [cell.strip() for cell in column if isinstance(cell, str) and cell.strip() not in lacking]
        for name, column in columns
    }


def named_among(table: Table, found: Sequence[str], usual: Sequence[str]) -> list[str]:
    """Those of the columns that are called so."""
    return [name for name in found if table.named and name.strip().lower() in usual]


def choose_text(
    table: Table, head: Mapping[str, Sequence[str]], taken: str, is_other: Callable[[Sequence[str]], bool]
) -> str:
    """The column of texts, by its name or as the longest by far. taken: the other column; is_other: what is as that."""
    found = [name for name in head if name != taken and head[name] and not is_other(head[name])]
    longest = sorted(found, key=lambda name: -mean_length(head[name]))
    far = len(longest) > 1 and 2 * mean_length(head[longest[1]]) <= mean_length(head[longest[0]])
    chosen = named_among(table, found, TEXT_NAMES) or (longest[:1] if far else found)
    return only(table, chosen, "text", "several columns may be the text", "no column holds texts")


def only(table: Table, found: Sequence[str], role: str, many: str, none: str) -> str:
    """The only column that was found; where there are several or none, the setting that tells it is named."""
    if len(found) == 1:
        return found[0]
    names, told = ", ".join(table.names), many if found else none
    raise UsageError(f"{shown(table.path)}: {told}; its columns are {names}: say which with data.{role}=NAME")


def refuse_same(table: Table, text: str, other: str, role: str) -> None:
    if text == other:
        raise UsageError(f"data.text and data.{role} are both column {text!r} of {shown(table.path)}")


@dataclass(frozen=True)
class Told:
    """What is told of texts: what it is for, such as "number", the name of its column, values, the first for people."""

    role: str
    column: str
    values: Column[Any]
    first: str


def examples_of(kind: type[E], data: str, table: Table, kept: Kept, text: str, told: Told) -> Examples[E]:
    """The texts of a column with what is told of each."""
    role, name = told.role, told.column
    texts, columns, notes = table.cells[text], {"text": text, role: name}, [table.note, kept.told]
    account = Account(
        data=data,
        form=describe(table),
        target=name,
        columns=columns,
        ignored=[one for one in table.names if one not in columns.values()],
        read=len(table),
        dropped=kept.dropped,
        first={"text": texts[int(kept.rows[0])] or "", role: told.first},
    )
    return Examples(
        kind,
        {"text": Mapped(texts, _text), role: told.values, "where": table.places},
        rows=kept.rows,
        note=f"{shown(data)}: {'; '.join(filter(None, notes))}" if any(notes) else "",
        settings=columns,
        account=account,
    )


def _text(cell: str | None) -> str:
    return cell or ""
