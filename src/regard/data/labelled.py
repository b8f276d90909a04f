"""Labelled texts from TSV, CSV and JSONL files, with a header or without."""

from __future__ import annotations

import numpy as np

from regard.data.column import choose
from regard.data.example import Examples, Labelled
from regard.data.packed import Coded, Places
from regard.data.record import read_records
from regard.data.source import shown
from regard.errors import DataError


def read_labelled(path: str, *, text: str | None = None, label: str | None = None) -> Examples[Labelled]:
    """The texts of a file with their labels, all labels as strings.

    text, label  the name of a column, or its number from 1. Unless told: columns named text (sentence, review,
                 question) and label (class, sentiment, category); else the longest column and the one with few
                 different values (see `column`).
    """
    records = read_records(path)
    columns = choose(records, text, label)
    first = int(columns.header)
    labels, empty = Coded(), 0
    for index, (words, kind) in enumerate(
        zip(records.columns[columns.text], records.columns[columns.label], strict=True)
    ):
        label_here = (kind or "").strip()
        if index >= first and (not label_here or words is None):
            role, missing = ("label", columns.label) if not label_here else ("text", columns.text)
            raise DataError(
                f"{records.where(index)}: no {role} in column {columns.names[missing]!r}; mend or remove it"
            )
        labels.append(label_here)
        empty += index >= first and not words.strip()
    n_rows = len(records) - first
    notes = [columns.note, f"{empty:,} of {n_rows:,} texts are empty" if empty else ""]
    return Examples(
        Labelled,
        {"text": records.columns[columns.text], "label": labels, "where": Places(path, records.lines)},
        rows=np.arange(first, len(records)),
        note=f"{shown(path)}: {'; '.join(filter(None, notes))}" if any(notes) else "",
        settings={"text": columns.names[columns.text], "label": columns.names[columns.label]},
    )
