"""Choices: how a person says that a file is to be read; what they leave open is told from the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["auto", "text", "csv", "json", "parquet", "arrow", "excel"]
Header = Literal["auto", "yes", "no"]
Missing = Literal["refuse", "drop", "empty", "keep"]


@dataclass(frozen=True)
class Choices:
    """How a file is to be read.

    form       what it is, whatever its name says.
    delimiter  between the cells of a CSV.
    header     whether the first row names the columns.
    encoding   of a text.
    """

    form: Form = "auto"
    delimiter: str | None = None
    header: Header = "auto"
    encoding: str | None = None


OPEN = Choices()


@dataclass(frozen=True)
class TextChoices:
    """How plain text is to be read. column: of a table, by name or number. missing: of rows without a text."""

    choices: Choices = OPEN
    column: str | None = None
    missing: Missing = "refuse"


OPEN_TEXT = TextChoices()
