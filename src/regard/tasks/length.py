"""Texts within the positions of a model: a longer one is refused, or cut where that was asked for."""

from __future__ import annotations

from regard.data.ragged import Ragged
from regard.errors import DataError, UsageError


def cut(texts: Ragged, limit: int | None, truncate: bool, what: str = "text") -> Ragged:
    """Texts to learn from, of at most `limit` tokens."""
    number = _too_long(texts, limit)
    if number is None:
        return texts
    if not truncate:
        raise DataError(
            f"{what} {number + 1} has {texts.sizes[number]} tokens and the model {limit} positions; raise "
            f"model.max_length, or cut with --set data.truncate=true"
        )
    return texts.cut(limit or 0)


def fitted(texts: Ragged, limit: int | None, truncate: bool = False) -> Ragged:
    """Inputs of a person, of at most `limit` tokens; cut where the texts of training were."""
    number = _too_long(texts, limit)
    if number is None:
        return texts
    if not truncate:
        raise UsageError(
            f"input {number + 1} has {texts.sizes[number]} tokens and the model {limit} positions; shorten it"
        )
    return texts.cut(limit or 0)


def _too_long(texts: Ragged, limit: int | None) -> int | None:
    """The number of the longest text, if it is too long."""
    fits = limit is None or not len(texts) or int(texts.sizes.max()) <= limit
    return None if fits else int(texts.sizes.argmax())
