"""What unknown tokens stand for, in bytes and in the nats that say it.

A loss is of tokens, bits are of the text: without these nats a text that a model knows nothing of would cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from regard.evaluation.language import Shard, TokenDecoder


@dataclass(frozen=True, eq=False)
class Unknown:
    """Unknown tokens: their places, the bytes that each stands for, and the nats that say what these are."""

    places: np.ndarray
    sizes: np.ndarray
    spelling: np.ndarray

    @classmethod
    def of(cls, shard: Shard, tokens: int, tokenizer: TokenDecoder) -> Self:
        """Of the first so many tokens of a shard."""
        unknown = -1 if tokenizer.unknown_id is None else tokenizer.unknown_id
        places = np.flatnonzero(np.asarray(shard.ids[:tokens]) == unknown)
        told = np.zeros(len(places), np.int64) if shard.unknown is None else np.asarray(shard.unknown[: len(places)])
        sizes = told.astype(np.int64)
        return cls(places, sizes, tokenizer.spelling(sizes))


def by_token(shard: Shard, tokens: int, tokenizer: TokenDecoder) -> tuple[np.ndarray, np.ndarray]:
    """Of the first so many tokens of a shard the bytes, and the nats that say what unknown ones stand for."""
    unknown = Unknown.of(shard, tokens, tokenizer)
    sizes, spelling = _known_sizes(np.asarray(shard.ids[:tokens]), tokenizer), np.zeros(tokens)
    sizes[unknown.places] = np.where(unknown.sizes > 0, unknown.sizes, sizes[unknown.places])
    spelling[unknown.places] = unknown.spelling
    return sizes, spelling


def _known_sizes(ids: np.ndarray, tokenizer: TokenDecoder) -> np.ndarray:
    """The bytes of every token; the end of a document is one, as that of a line would be."""
    tokens, previous, found = np.asarray(ids).tolist(), None, []
    for token in tokens:
        is_end = token == tokenizer.eos_id
        found.append(1 if is_end else len(tokenizer.piece(token, previous)))
        previous = None if is_end else token
    return np.array(found, dtype=np.float64)
