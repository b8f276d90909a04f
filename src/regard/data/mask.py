"""Hidden words: masked rows for models that look both ways, and word dropout while training.

Masking (Devlin et al. 2019, 3.1):

    15% of the tokens are chosen; of these 80% become <mask>, 10% a random token, 10% stay as they are

What is chosen is a pure function of (seed, sample number), so that a sample that comes again is masked in another way
and a run that is resumed sees what it would have seen. A row has an `<eos>` on each side:

    <eos> x_1 .. x_n <eos>       a document, or n tokens of a long text
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from regard.data.batch import NOT_COUNTED, Batch, phases, stretches
from regard.data.order import mixed, uniform
from regard.data.shard import TokenShard
from regard.data.tokenizer import Tokenizer

if TYPE_CHECKING:
    from regard.data.rows import Shuffled

SHARE = 0.15
MASKED, RANDOM = 0.8, 0.1
# Kinds of characters: a token goes on with the word before it when both are letters or both digits where they meet.
BREAK, LETTER, DIGIT = 0, 1, 2
FRAME = 2  # tokens of a row that are no text


@dataclass(frozen=True, eq=False)
class Masking:
    """How rows of tokens are hidden.

    whole_words  all tokens of a word are chosen together, so that none can be told from its other half.
    """

    tokenizer: Tokenizer
    whole_words: bool = False

    @property
    def mask_id(self) -> int:
        """The tokenizer's own, or the row after all of them."""
        own = self.tokenizer.mask_id
        return self.tokenizer.vocab_size if own is None else own

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
        drawn = (other * (self.tokenizer.vocab_size - 1)).astype(np.int64)
        read = np.where(chosen & (fate >= MASKED) & (fate < MASKED + RANDOM), drawn, read)
        return read, np.where(chosen, tokens, NOT_COUNTED)

    def _chosen(self, tokens: np.ndarray, lengths: np.ndarray, choice: np.ndarray) -> np.ndarray:
        """The words with the smallest numbers, about SHARE of the tokens of each row."""
        places = np.arange(tokens.shape[1])
        text = (tokens != self.tokenizer.eos_id) & (tokens != self.tokenizer.start_id)
        open_to = (places < lengths[:, None]) & text
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
        for token in range(self.tokenizer.vocab_size):
            if self.tokenizer.is_special(token):
                continue
            # After another token a word brings the space before it, which sets it apart.
            piece = self.tokenizer.piece(token, token)
            found[:, token] = (_kind(piece[0]), _kind(piece[-1])) if piece else (BREAK, BREAK)
        return found


def _kind(byte: int) -> int:
    """Of one byte of UTF-8; those beyond ASCII are parts of letters nearly always."""
    character = chr(byte)
    return DIGIT if character.isdigit() and byte < 128 else LETTER if character.isalpha() or byte >= 128 else BREAK


@dataclass(frozen=True, eq=False)
class Passages:
    """Stretches of a shard.

    starts, lengths  of the text of each, without its frame.
    rolls            stretches begin elsewhere in each epoch, so that a border falls on other words.
    start            the token before each; None for that which ends a document.
    """

    shard: TokenShard
    starts: np.ndarray
    lengths: np.ndarray
    rolls: bool = False
    start: int | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> np.ndarray:
        """The ids of one row with its frame."""
        return self.padded(np.array([row]), np.zeros(1, dtype=np.int64), 0)[0]

    @property
    def sizes(self) -> np.ndarray:
        return self.lengths + FRAME

    def padded(self, rows: np.ndarray, epochs: np.ndarray, seed: int) -> np.ndarray:
        """Rows side by side, (B, T) int64, `<eos>` around and after the text of each."""
        starts, lengths = self.starts[rows], self.lengths[rows]
        if self.rolls:
            starts = starts + phases(epochs, seed, self.shard.tokens)
        places = np.arange(int(lengths.max()) + FRAME) - 1
        read = self.shard.ids[(starts[:, None] + places) % self.shard.tokens].astype(np.int64)
        rows_of_ids = np.where((places >= 0) & (places < lengths[:, None]), read, int(self.shard.ids[-1]))
        if self.start is not None:
            rows_of_ids[:, 0] = self.start
        return rows_of_ids


def cut(shard: TokenShard, length: int, samples: str, *, rolls: bool = False, start: int | None = None) -> Passages:
    """The "documents" of a shard, or "windows" of it as one text, in rows of at most `length` tokens in all."""
    if samples == "documents":
        starts, lengths, _ = stretches(shard.starts, shard.sizes - 1, length - FRAME, None)
        return Passages(shard, starts[lengths > 0], lengths[lengths > 0], start=start)
    starts, lengths, _ = stretches(np.zeros(1, dtype=np.int64), np.array([shard.tokens]), length - FRAME, None)
    return Passages(shard, starts, lengths, rolls, start)


@dataclass(frozen=True, eq=False)
class MaskedRows:
    """Passages with some tokens hidden: what is read, and -100 as the target of all that is not hidden."""

    passages: Passages
    masking: Masking
    seed: int

    @property
    def sizes(self) -> np.ndarray:
        return self.passages.sizes

    @property
    def n_targets(self) -> int:
        """Of one epoch, masked as the first."""
        numbers = np.arange(len(self.passages))
        return sum(self.batch_of(part, part).n_counted for part in np.array_split(numbers, -(-len(numbers) // 256)))

    @property
    def hash(self) -> str:
        digest = hashlib.sha256(f"{self.passages.shard.hash} {self.masking.whole_words} ".encode())
        digest.update(np.ascontiguousarray(self.sizes).data)
        return digest.hexdigest()

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        tokens = self.passages.padded(rows, numbers // len(self.passages), self.seed)
        sizes = self.sizes[rows]
        read, targets = self.masking.hide(tokens, sizes, numbers, self.seed)
        lengths = torch.from_numpy(sizes.astype(np.int64))
        return Batch(torch.from_numpy(read), torch.from_numpy(targets), lengths, numbers.tolist())


@dataclass(frozen=True)
class WordDropout:
    """The batches of another sampler with words hidden at random, so that no single one is relied on.

        p(step) = p * min(1, step / ramp)

    Hidden words become `<unk>`, or `<eos>` where a tokenizer has none (Bowman et al. 2016, 3.1; Iyyer et al. 2015, 3.1
    drop them altogether). What is hidden is a pure function of (seed, sample, epoch), as everything about a batch is.

    share     p, the part of the words that is hidden in the end.
    ramp      steps until it is.
    stand_in  the token in the place of a hidden word.
    """

    sampler: Shuffled
    share: float
    ramp: int
    stand_in: int
    seed: int

    def batch(self, step: int, batch_size: int) -> Batch:
        batch = self.sampler.batch(step, batch_size)
        share = self.share * min(1.0, step / self.ramp if self.ramp else 1.0)
        random = np.random.default_rng(mixed(self.seed, step, 7))
        chosen = torch.from_numpy(random.random(batch.tokens.shape[:2]) < share)
        tokens = batch.tokens.clone()
        if tokens.dim() == 2:
            tokens[chosen] = self.stand_in
        else:  # words with their spelling: both are hidden
            tokens[chosen] = 0
            tokens[..., 0][chosen] = self.stand_in
        # What a text begins with in a decoder is no word.
        if batch.source is not None:
            tokens[:, 0] = batch.tokens[:, 0]
        return replace(batch, tokens=tokens)
