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
        if not 0 <= token < tokenizer.vocab_size or token == tokenizer.eos_id:
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


@dataclass(frozen=True)
class Groups:
    """Positions that belong together: a label for each group, and the positions in it."""

    labels: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]


def groups(labels: Sequence[str], words: Sequence[int | None]) -> Groups:
    """Tokens of one word together, any other token by itself.

    >>> groups(["<s>", "un", "happy", " dog"], [None, 0, 0, 1])
    Groups(labels=('<s>', 'unhappy', 'dog'), members=((0,), (1, 2), (3,)))
    """
    found: list[list[int]] = []
    for place, word in enumerate(words):
        if word is not None and found and words[found[-1][-1]] == word:
            found[-1].append(place)
        else:
            found.append([place])
    told = ("".join(labels[place] for place in members) for members in found)
    return Groups(tuple(text.strip() or text for text in told), tuple(map(tuple, found)))


def merged(weights: np.ndarray, rows: Groups, columns: Groups) -> np.ndarray:
    """Weights (T, S) between groups: what a group gets is summed, and what its members give is averaged."""
    summed = np.stack([weights[:, list(part)].sum(1) for part in columns.members], 1)
    return np.stack([summed[list(part)].mean(0) for part in rows.members])
