"""What a worked example is written with: float64 matrices, panels of them, fractions, questions with their answers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.explain.notation import tex_of
from regard.explain.view import Heat, Note, Numbers, Panel, View

# Every fraction of the examples has a smaller denominator.
LARGEST_DENOMINATOR = 1_000_000


def tensor(rows: Any) -> Tensor:
    """Given numbers in float64."""
    return torch.tensor(rows, dtype=torch.float64)


def array(values: Tensor) -> np.ndarray:
    """A copy for a panel: what is given stays as it is, whatever is done to the panel."""
    return values.detach().double().numpy().copy()


def sheet(name: str, title: str, *parts: Sequence[Panel]) -> View:
    """The view of an example whose parts follow each other."""
    return View(title, [panel for part in parts for panel in part], about={"example": name}, name="steps")


def numbers(
    key: str,
    values: Tensor,
    equation: str = "",
    *,
    title: str = "",
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    note: str = "",
    marked: Sequence[tuple[int, int]] = (),
) -> Numbers:
    """A matrix to be read; a vector is one row of it."""
    matrix = values.reshape(-1, values.shape[-1])
    return Numbers(
        key=key,
        title=title,
        values=array(matrix),
        rows=rows,
        columns=columns,
        equation=equation,
        tex=tex_of(equation),
        note=note,
        marked=marked,
    )


def heat(key: str, weights: Tensor, title: str, rows: Sequence[str], columns: Sequence[str], note: str = "") -> Heat:
    """Attention weights as shades: a row looks at the columns."""
    return Heat(
        key=key,
        title=title,
        weights=array(weights),
        rows=rows,
        columns=columns,
        row_name="who looks",
        column_name="at whom",
        note=note,
    )


def text(words: str, title: str = "") -> Note:
    return Note(title=title, text=words)


def formula(*lines: str, title: str = "") -> Note:
    plain = "\n".join(lines)
    return Note(title=title, text=plain, style="equation", tex=tex_of(plain))


def answer(question: str, words: str) -> Note:
    return Note(title=question, text=words, style="answer")


def fractions(values: Tensor) -> str:
    """The numbers of a vector as fractions, such as "1/6, 1/2"."""
    return ", ".join(str(Fraction(value).limit_denominator(LARGEST_DENOMINATOR)) for value in values.flatten().tolist())


def short(value: Tensor | float) -> str:
    """Four significant digits."""
    return f"{float(value):.4g}"


def listed(values: Tensor) -> str:
    """The numbers of a vector in four digits each, such as "[2, 0.5]"."""
    return f"[{', '.join(short(value) for value in values.flatten().tolist())}]"


def steps(length: int) -> list[str]:
    """Labels t = 1, t = 2, and so on."""
    return [f"t = {n}" for n in range(1, length + 1)]
