"""Masking: which tokens of a row are hidden, and what stands in their place (Devlin et al. 2019, 3.1).

    15% of the tokens are chosen; of these 80% become <mask>, 10% a random token, 10% stay as they are

What is chosen is a pure function of (seed, sample number), so that a sample that comes again is masked in another way
and a run that is resumed sees what it would have seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.data.batch import NOT_COUNTED
from regard.data.order import mixed, uniform
from regard.data.tokenizer import Tokenizer

SHARE = 0.15
MASKED, RANDOM = 0.8, 0.1
# Kinds of characters: a token goes on with the word before it when both are letters or both digits where they meet.
BREAK, LETTER, DIGIT = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Masking:
    """How rows of tokens are hidden.

    whole_words  all tokens of a word are chosen together, so that none can be told from its other half.
    """

    tokenizer: Tokenizer
    whole_words: bool = False

    @property
    def mask_id(self) -> int:
        """The row after the tokenizer's own."""
        return self.tokenizer.vocab_size

    def hide(
        self, tokens: np.ndarray, lengths: np.ndarray, numbers: np.ndarray, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows (B, T) of which the first `lengths` (B,) are real: what the model reads, and what it is to tell.

        `<eos>` is never chosen; a row that holds anything else has at least one target.
        """
        choice, fate, other = (
            uniform([mixed(seed, int(number), stream) for number in numbers], tokens.shape[1]) for stream in range(3)
        )
        chosen = self._chosen(tokens, lengths, choice)
        read = np.where(chosen & (fate < MASKED), self.mask_id, tokens)
        drawn = (other * self.tokenizer.eos_id).astype(np.int64)
        read = np.where(chosen & (fate >= MASKED) & (fate < MASKED + RANDOM), drawn, read)
        return read, np.where(chosen, tokens, NOT_COUNTED)

    def _chosen(self, tokens: np.ndarray, lengths: np.ndarray, choice: np.ndarray) -> np.ndarray:
        """The words with the smallest numbers, about SHARE of the tokens of each row."""
        places = np.arange(tokens.shape[1])
        open_to = (places < lengths[:, None]) & (tokens != self.tokenizer.eos_id)
        first, last = self._words(tokens)
        order = np.argsort(np.where(open_to, np.take_along_axis(choice, first, 1), 2.0), axis=1, kind="stable")
        rank = np.argsort(order, axis=1, kind="stable")
        count = np.maximum(1, np.rint(SHARE * open_to.sum(1))).astype(np.int64)[:, None]
        begin, end = np.take_along_axis(rank, first, 1), np.take_along_axis(rank, last, 1)
        # A word across the border is in when more than half of it is, so that the share is kept on average.
        return open_to & ((begin + end < 2 * count - 1) | (begin == 0))

    def _words(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the word of each token begins and where it ends, (B, T) each."""
        places = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
        if not self.whole_words:
            return places, places
        opens, closes = self._edges[0][tokens], self._edges[1][tokens]
        goes_on = np.zeros(tokens.shape, dtype=bool)
        goes_on[:, 1:] = (opens[:, 1:] != BREAK) & (opens[:, 1:] == closes[:, :-1])
        first = np.maximum.accumulate(np.where(goes_on, 0, places), axis=1)
        ends = np.ones(tokens.shape, dtype=bool)
        ends[:, :-1] = ~goes_on[:, 1:]
        back = np.where(ends, places, tokens.shape[1])[:, ::-1]
        return first, np.minimum.accumulate(back, axis=1)[:, ::-1]

    @cached_property
    def _edges(self) -> np.ndarray:
        """The kind of the first and of the last character of every token, (2, V); `<eos>` and the mask are breaks."""
        found = np.zeros((2, self.tokenizer.vocab_size + 1), dtype=np.int8)
        for token in range(self.tokenizer.eos_id):
            # After another token a word brings the space before it, which sets it apart.
            piece = self.tokenizer.piece(token, token)
            found[:, token] = (_kind(piece[0]), _kind(piece[-1])) if piece else (BREAK, BREAK)
        return found


def _kind(byte: int) -> int:
    """Of one byte of UTF-8; those beyond ASCII are parts of letters nearly always."""
    character = chr(byte)
    return DIGIT if character.isdigit() and byte < 128 else LETTER if character.isalpha() or byte >= 128 else BREAK
