"""Where plain text comes from: files, or the rows of a column of a table, each of them a document."""

from __future__ import annotations

from collections.abc import Iterator

from regard.core.progress import OFTEN, stage
from regard.data.account import Account
from regard.data.choices import TextChoices
from regard.data.labelled import TEXT_NAMES
from regard.data.missing import rows_with
from regard.data.source import shown
from regard.data.stream import Files, Piece, TextStream
from regard.data.table import Table
from regard.data.tabular import describe, is_table, open_table
from regard.errors import UsageError


class TableTexts:
    """The texts of a column, one document a row."""

    def __init__(self, table: Table, column: str | None, how: TextChoices) -> None:
        self.name = choose_text(table, column)
        kept = rows_with(table, {"text": self.name}, {}, how.missing)
        self.column = table.taken(kept.rows).cells[self.name]
        self.account = Account(
            form=describe(table),
            columns={"text": self.name},
            ignored=[name for name in table.names if name != self.name],
            dropped=kept.dropped,
        )

    def pieces(self, part: str) -> Iterator[Piece]:
        with stage(part, len(self.column), "rows") as advance:
            for number, text in enumerate(self.column):
                yield Piece(text or "", True)
                if number % OFTEN == 0:
                    advance(OFTEN)


def text_stream(path: str, documents: str, how: TextChoices) -> TextStream:
    """The documents of files as they stand, or of a column where they are a table."""
    if how.column is not None or is_table(path, how.choices):
        known = [] if how.column is None else [how.column.strip().lower()]
        return TableTexts(open_table(path, how.choices, known), how.column, how)
    return Files(path, documents, how.choices.encoding)


def is_of_texts(table: Table, has_no_labels: bool) -> bool:
    """Whether a table holds texts alone: one column, or one that is called text beside none of labels."""
    names = [name.strip().lower() for name in table.names]
    return len(names) == 1 or (has_no_labels and table.named and TEXT_NAMES[0] in names)


def choose_text(table: Table, column: str | None = None) -> str:
    """The column of the texts: as told, the only one, or the one that is called so."""
    if column is not None:
        return table.find("data.text", column)
    if len(table.names) == 1:
        return table.names[0]
    found = [name for name in table.names if table.named and name.strip().lower() in TEXT_NAMES]
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"{shown(table.path)} is a table with the columns {', '.join(table.names)}: say which holds the texts with "
        f"data.text=NAME, or data.format=text to learn the file as it stands"
    )


def joined_documents(stream: TextStream) -> list[str]:
    """The documents of a stream, whole."""
    found, gathered = list[str](), list[str]()
    for text, ends in stream.pieces("reading"):
        gathered.append(text)
        if ends:
            found.append("".join(gathered))
            gathered = []
    return found
