"""X of texts and of sentences, in whatever a person holds them: lists, arrays, columns of frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from regard.data.cell import ABSENT
from regard.interop.sklearn.refusal import BadData

LONGEST = 40  # characters of a value in a message


def as_texts(X: Any) -> list[str]:
    """The texts of X: a list, an array of one dimension or one column, a Series, a frame with one column."""
    rows = _rows(X, "a list of texts")
    for number, text in enumerate(rows):
        if not isinstance(text, str):
            raise BadData(f"X[{number}] must be a text, {_told(text)}; write '' where there is none")
    return [str(text) for text in rows]


def as_sentences(X: Any) -> list[list[str]]:
    """The words of each sentence of X, a list of lists."""
    found = []
    for number, sentence in enumerate(_rows(X, "a list of lists of words")):
        if isinstance(sentence, str):
            raise BadData(f"X[{number}] must be a list of words, {_told(sentence)}; such as X[{number}].split()")
        words = as_list(sentence, f"X[{number}]", "words")
        for place, word in enumerate(words):
            if not isinstance(word, str) or not word.strip():
                raise BadData(f"X[{number}][{place}] must be a word and not blank, {_told(word)}")
        found.append([str(word) for word in words])
    return found


def as_list(value: Any, where: str, unit: str) -> list[Any]:
    """The items of a list, a tuple, an array of one dimension or a Series."""
    listed = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    if listed is not None and len(value.shape) == 1:
        return listed()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    raise BadData(f"{where} must be a list of {unit}, {_told(value)}")


def _rows(X: Any, wanted: str) -> list[Any]:
    if isinstance(X, str | bytes | Mapping | Set) or not isinstance(X, Iterable):
        raise BadData(f"X must be {wanted}, {_told(X)}")
    values: Any = X
    columns = getattr(values, "columns", None)
    if columns is not None:
        if len(columns) != 1:
            named = ", ".join(map(repr, list(columns)[:8]))
            raise BadData(f"X has {len(columns)} columns, {named}; give the one of the texts alone, as in X[NAME]")
        values = values[columns[0]]
    shape = getattr(values, "shape", None)
    if shape is not None and len(shape) != 1:
        if len(shape) != 2 or shape[1] != 1 or not hasattr(values, "ravel"):
            raise BadData(f"X must be {wanted}, of one dimension, and has the shape {tuple(shape)}")
        values = values.ravel()
    found = list(values)
    if not found:
        raise BadData(f"X must be {wanted}, and has 0 sample(s) while a minimum of 1 is required")
    return found


def is_missing(value: Any) -> bool:
    """Whether a value says that there is none: None, NaN, or what pandas has for it."""
    return value is None or type(value).__name__ in ABSENT or (isinstance(value, float) and value != value)


def _told(value: Any) -> str:
    """What a value is, for people."""
    if is_missing(value):
        return f"found {value}, which is no value"
    text = repr(value)
    return f"found {text if len(text) <= LONGEST else text[:LONGEST] + '...'} ({type(value).__name__})"
