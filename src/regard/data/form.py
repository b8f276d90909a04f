"""Form: what a file is by its content, and what its name says; where the two disagree, a person is told of both.

form      content                                        names
text      anything else that is text                     .txt .md, and any that says nothing
csv       rows of cells, the same number in each          .csv .tsv .tab .psv
json      an array, or an object a line                   .json .jsonl .ndjson
parquet   begins with PAR1                                .parquet .pq
arrow     begins with ARROW1, or a stream of messages     .arrow .feather .ipc
excel     a zip with the folder xl                        .xlsx .xlsm
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from regard.data.decoding import HEAD, is_utf8_head
from regard.data.delimiter import Dialect, sniffed
from regard.data.source import STDIN, SUFFIXES, named, opened, plain, shown, unpacked
from regard.errors import DataError

NAMES = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".psv"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".xlsx", ".xlsm"), "excel"),
    **dict.fromkeys(SUFFIXES, "text"),
}
TOLD = {
    "text": "plain text",
    "csv": "a table of cells between delimiters",
    "json": "JSON",
    "parquet": "a Parquet file",
    "arrow": "an Arrow file",
    "excel": "an Excel workbook",
}
USUAL = {"csv": ".csv", "json": ".json", "parquet": ".parquet", "arrow": ".arrow", "excel": ".xlsx", "text": ".txt"}
BINARY = frozenset({"parquet", "arrow", "excel"})
# What is no text and no table, by its first bytes, and what to do about it.
FOREIGN = {
    b"\x1f\x8b": ("a gzip file", "add .gz to its name"),
    b"\xfd7zXZ\x00": ("an xz file", "add .xz to its name"),
    b"\x28\xb5\x2f\xfd": ("a zstd file", "add .zst to its name"),
    b"BZh": ("a bzip2 file", "unpack it, or pack it with gzip"),
    b"\xd0\xcf\x11\xe0": ("an old Excel or Office file", "save it as .xlsx or .csv"),
    b"%PDF": ("a PDF", "save its text to a .txt file"),
    b"SQLite format 3": ("a database of SQLite", "export the table as CSV"),
    b"\x89PNG": ("a picture", "give a folder of pictures with captions.tsv, or a text"),
    b"\xff\xd8\xff": ("a picture", "give a folder of pictures with captions.tsv, or a text"),
}
ZIP = b"PK\x03\x04"
# An Arrow stream begins with the mark of a message and its length.
STREAM = b"\xff\xff\xff\xff"
OBJECT = re.compile(rb'\s*\{\s*(?:"|\}\s*$)')
ARRAY = re.compile(rb'\s*\[\s*(?:[\[{"]|-?\d|\]\s*$|true|false|null)')


@dataclass(frozen=True)
class Look:
    """What a file looks like.

    form      by its content.
    named     what its name says; None of a name that says nothing.
    dialect   of a table of cells: what stands between them.
    """

    path: str
    form: str
    named: str | None
    dialect: Dialect | None = None

    @property
    def agrees(self) -> bool:
        """Whether the name says what the content is, or nothing. What looks like text may be a table of few rows."""
        return self.named in (None, self.form) or (self.form == "text" and self.named == "csv")

    @property
    def is_table(self) -> bool:
        return (self.form if self.named != "csv" or self.form != "text" else "csv") != "text"

    def refusal(self) -> DataError:
        """What the file is, what its name says, and the two ways out."""
        place = plain(self.path)
        packed = "".join(Path(self.path).suffixes[-1:]) if str(place) != self.path else ""
        better = place.with_suffix(self.dialect.suffix if self.dialect else USUAL[self.form])
        return DataError(
            f"{shown(self.path)} looks like {self.told}, and its name says {TOLD[self.named or 'text']}; rename it "
            f"to {better.name}{packed}, or say what it is: data.format={self.form}"
            + (", or data.format=text to learn it as it stands" if self.named == "text" else "")
        )

    @property
    def told(self) -> str:
        return self.dialect.told if self.dialect else TOLD[self.form]


def look(path: str, encoding: str | None = None) -> Look:
    """What a file looks like by its first bytes."""
    name = None if path == STDIN else NAMES.get(plain(path).suffix.lower())
    with named(path), unpacked(path) as raw:
        form = _binary(raw.peek(HEAD)[:HEAD], path)
    if form is not None:
        return Look(path, form, name)
    with named(path), opened(path, encoding) as stream:
        head = stream.peek(HEAD)[:HEAD]
    if not is_utf8_head(head):
        return Look(path, "text", name)
    if ARRAY.match(head) or OBJECT.match(head):
        return Look(path, "json", name) if name == "json" or _is_json(head) else Look(path, "text", name)
    dialect = sniffed(head, is_told=name == "csv", is_whole=len(head) < HEAD)
    return Look(path, "text" if dialect is None else "csv", name, dialect)


def _binary(head: bytes, path: str) -> str | None:
    """The form of a file that is no text; one that is nothing that could be read is refused by what it is."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", STREAM)):
        return "arrow"
    if head.startswith(ZIP):
        if b"xl/" in head or plain(path).suffix.lower() in (".xlsx", ".xlsm"):
            return "excel"
        if plain(path).suffix.lower() != ".npz":
            raise DataError(f"{shown(path)} is a zip archive; unpack it and give the files in it")
    for mark, (what, advice) in FOREIGN.items():
        if head.startswith(mark):
            raise DataError(f"{shown(path)} is {what}; {advice}")
    return None


def _is_json(head: bytes) -> bool:
    """Whether what begins like JSON is JSON, as far as its first lines tell: prose may begin with a bracket too."""
    from regard.data.json_rows import begins_as_json

    return begins_as_json(head)
