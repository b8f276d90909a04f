"""Labelled texts from TSV, CSV and JSONL files, with a header or without."""

from __future__ import annotations

from regard.data.column import choose
from regard.data.example import Examples, Labelled
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
    examples: list[Labelled] = []
    for index in range(int(columns.header), len(records.rows)):
        row = records.rows[index]
        words, kind = row[columns.text], (row[columns.label] or "").strip()
        if not kind or words is None:
            role, missing = ("label", columns.label) if not kind else ("text", columns.text)
            raise DataError(
                f"{records.where(index)}: no {role} in column {columns.names[missing]!r}; mend or remove it"
            )
        examples.append(Labelled(words, kind, records.where(index)))
    empty = sum(not example.text.strip() for example in examples)
    notes = [columns.note, f"{empty:,} of {len(examples):,} texts are empty" if empty else ""]
    chosen = {"text": columns.names[columns.text], "label": columns.names[columns.label]}
    return Examples(
        examples, note=f"{shown(path)}: {'; '.join(filter(None, notes))}" if any(notes) else "", settings=chosen
    )
