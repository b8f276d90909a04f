"""Words and tokens: which word a token belongs to, told by the text itself, and weights between words.

Tokens are pieces of text, so that offsets say what belongs together; no marker of a tokenizer has to be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.tokenizer import Tokenizer

SPACES = b" \t\n\r\x0b\x0c"


def word_numbers(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int | None]:
    """The number of the word that each token is a part of; None for blanks and for what is no text."""
    numbers: list[int | None] = []
    word, inside, previous = -1, False, None
    for token in ids:
        if not 0 <= token < tokenizer.vocab_size or tokenizer.is_special(token):
            numbers.append(None)
            inside, previous = False, None
            continue
        found = None
        for byte in tokenizer.piece(token, previous):
            if byte in SPACES:
                inside = False
                continue
            if not inside:
                word, inside = word + 1, True
            found = word if found is None else found
        numbers.append(found)
        previous = token
    return numbers


def word_texts(tokenizer: Tokenizer, ids: Sequence[int], words: Sequence[int | None]) -> tuple[str, ...]:
    """The text of each word by its number, from all its tokens together: one alone may be half a character."""
    parts: list[list[int]] = [[] for _ in range(1 + max((word for word in words if word is not None), default=-1))]
    for token, word in zip(ids, words, strict=True):
        if word is not None:
            parts[word].append(token)
    return tuple(tokenizer.decode(part).strip() for part in parts)


@dataclass(frozen=True)
class Groups:
    """Positions that belong together: a label for each group, and the positions in it."""

    labels: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]


def groups(labels: Sequence[str], words: Sequence[int | None], texts: Sequence[str]) -> Groups:
    """Tokens of one word together, with its text; any other token by itself, with its label.

    >>> groups(["<s>", "un", "happy", " dog"], [None, 0, 0, 1], ["unhappy", "dog"])
    Groups(labels=('<s>', 'unhappy', 'dog'), members=((0,), (1, 2), (3,)))
    """
    found: list[list[int]] = []
    for place, word in enumerate(words):
        if word is not None and found and words[found[-1][-1]] == word:
            found[-1].append(place)
        else:
            found.append([place])
    told = []
    for first, *others in found:
        word = words[first]
        told.append(texts[word] if others and word is not None else labels[first].strip() or labels[first])
    return Groups(tuple(told), tuple(map(tuple, found)))


def merged(weights: np.ndarray, rows: Groups, columns: Groups) -> np.ndarray:
    """Weights (T, S) between groups: what a group gets is summed, and what its members give is averaged."""
    summed = np.stack([weights[:, list(part)].sum(1) for part in columns.members], 1)
    return np.stack([summed[list(part)].mean(0) for part in rows.members])
