"""X of texts and of sentences, in whatever a person holds them: lists, arrays, columns of frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from regard.interop.sklearn.refusal import BadData

LONGEST = 40  # characters of a value in a message


def as_texts(X: Any) -> list[str]:
    """The texts of X: a list, an array of one dimension or one column, a Series, a frame with one column."""
    rows = _rows(X, "a list of texts")
    for number, text in enumerate(rows):
        if not isinstance(text, str):
            raise BadData(f"X[{number}] {_told(text)}; X is a list of texts, and an empty one is ''")
    return [str(text) for text in rows]


def as_sentences(X: Any) -> list[list[str]]:
    """The words of each sentence of X, a list of lists."""
    found = []
    for number, sentence in enumerate(_rows(X, "a list of lists of words")):
        if isinstance(sentence, str):
            raise BadData(f"X[{number}] {_told(sentence)}; X is a list of lists of words, such as X[{number}].split()")
        words = as_list(sentence, f"X[{number}]", "words")
        for place, word in enumerate(words):
            if not isinstance(word, str) or not word.strip():
                raise BadData(f"X[{number}][{place}] {_told(word)}; a word is a text that is not blank")
        found.append([str(word) for word in words])
    return found


def as_list(value: Any, where: str, unit: str) -> list[Any]:
    """The items of a list, a tuple, an array of one dimension or a Series."""
    listed = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    if listed is not None and len(value.shape) == 1:
        return listed()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    raise BadData(f"{where} {_told(value)}; it must be a list of {unit}")


def _rows(X: Any, wanted: str) -> list[Any]:
    if isinstance(X, str | bytes | Mapping | Set) or not isinstance(X, Iterable):
        raise BadData(f"X {_told(X)}; X is {wanted}")
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
            raise BadData(f"X has the shape {tuple(shape)}; X is {wanted}, of one dimension")
        values = values.ravel()
    found = list(values)
    if not found:
        raise BadData(f"X has 0 sample(s), and a minimum of 1 is required; X is {wanted}")
    return found


def _told(value: Any) -> str:
    """What a value is, for people."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        return f"is missing ({value})"
    text = repr(value)
    kind = type(value).__name__
    return f"is {text if len(text) <= LONGEST else text[:LONGEST] + '...'} ({kind})"
