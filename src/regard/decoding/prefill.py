"""Prompts on their way into a state, a chunk of tokens at a time, so that other rows can step in between."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from regard.core.context import Context
from regard.core.model import TokenModel
from regard.core.state import State
from regard.decoding.ending import window_of
from regard.decoding.first_chunk import FirstChunks
from regard.decoding.logits import tokens_at_once
from regard.decoding.prefix_cache import PrefixCache
from regard.decoding.prompt import padded
from regard.decoding.row import Row

SHORTEST = 16  # tokens to which short prompts are padded where shapes are few


class Prefill:
    """Rows that read their tokens side by side, in a state of their own, from `state` on.

    steady  whether all calls have one of few shapes, whatever the rows are: `state` may have more rows than there are
            contexts, and chunks are padded. How products round then depends little on what else is read.
    """

    def __init__(
        self,
        model: TokenModel,
        contexts: Sequence[Sequence[int]],
        state: State,
        device: torch.device,
        chunk: int,
        steady: bool = False,
    ) -> None:
        self.model, self.state, self.steady = model, state, steady
        self.prefixes: PrefixCache | None = None
        self.first_chunks: FirstChunks | None = None
        self.rows = len(contexts)
        contexts = [*contexts, *[()] * (state.batch_size - self.rows)]
        self.contexts, self.lengths = contexts, [len(context) for context in contexts]
        self.chunk = tokens_at_once(model, len(contexts), chunk)
        self.tokens, _ = padded(contexts, device)
        if steady:
            longest = self.tokens.shape[1]
            self.tokens = pad(self.tokens, (0, padded_length(model, longest, self.chunk) - longest))
        self.at = 0
        self.last: Float[Tensor, "B D"] | None = None

    @property
    def done(self) -> bool:
        return self.at >= self.tokens.shape[1]

    def advance(self) -> None:
        """Read one chunk."""
        piece = self.tokens[:, self.at : self.at + self.chunk]
        size = piece.shape[1]
        real = [min(max(length - self.at, 0), size) for length in self.lengths]
        if self.first_chunks is not None and self.at == 0:
            self.last, self.state = self.first_chunks.read(piece, real)
        else:
            self._read(piece, real)
        self.at += size
        if self.prefixes is not None and size == self.chunk:
            for row in [i for i in range(self.rows) if real[i] == size]:
                self.prefixes.put(self.contexts[row][: self.at], functools.partial(self._state_of, row))

    def _read(self, piece: Int[Tensor, "B T"], real: Sequence[int]) -> None:
        size = piece.shape[1]
        lengths = None if min(real) == size and not self.steady else torch.tensor(real, device=piece.device)
        values, self.state = self.model(piece, self.state, Context(lengths=lengths))
        # Rows whose last token this chunk holds.
        ends = [i for i, length in enumerate(self.lengths) if self.at < length <= self.at + size]
        if len(ends) == len(real) and lengths is None:
            self.last = values[:, -1]
        elif ends:
            rows = torch.tensor(ends, device=values.device)
            places = torch.tensor([real[i] - 1 for i in ends], device=values.device)
            before = values.new_zeros(len(real), values.shape[-1]) if self.last is None else self.last
            self.last = before.index_copy(0, rows, values[rows, places])

    def _state_of(self, row: int) -> State:
        """Of one row, by itself."""
        if len(self.lengths) == 1:
            return self.state
        return self.state.select(torch.tensor([row], device=self.tokens.device))

    def begin_with(self, prefixes: PrefixCache, known: int) -> None:
        """Go on after `known` tokens that all rows begin with; chunks that are not known yet will be.

        Whole chunks alone: then every product has the shape that it has without, and the text is the same to the bit.
        """
        self.prefixes = prefixes
        found = prefixes.get(self.contexts[0][:known]) if known else None
        if found is not None:
            self.at, number = known, len(self.lengths)
            first = torch.zeros(number, dtype=torch.long, device=self.tokens.device)
            self.state = found if number == 1 else found.select(first)

    def logits(self) -> Float[Tensor, "B V"]:
        """Of the token after each row's last one."""
        assert self.last is not None
        return self.model.head(self.last)[: self.rows]


def padded_length(model: TokenModel, length: int, chunk: int) -> int:
    """Of prompts of so many tokens, where shapes are to be few: a power of two, or whole chunks."""
    if length <= chunk:
        return int(min(chunk, max(SHORTEST, 1 << (length - 1).bit_length()), window_of(model, None)))
    return int(min(-(-length // chunk) * chunk, window_of(model, None)))


def begun(
    model: TokenModel,
    rows: Sequence[Row],
    device: torch.device,
    chunk: int,
    prefixes: PrefixCache | None,
    steady: int = 0,
    first_chunks: FirstChunks | None = None,
) -> Prefill:
    """The reading of rows that begin alike. steady: how many rows a call always has; 0 for as many as there are."""
    contexts = [row.begin() for row in rows]
    for row, context in zip(rows, contexts, strict=True):
        row.context = len(context)
    state = beginning(model, rows, device, steady)
    prefill = Prefill(model, contexts, state, device, chunk, steady > 0)
    if rows[0].start is None:
        prefill.first_chunks = first_chunks
    if prefixes is not None and rows[0].start is None and (steady or len(rows) == 1):
        prefill.begin_with(prefixes, known_beginning(contexts[0], prefill.chunk, prefixes))
    return prefill


def known_beginning(context: Sequence[int], chunk: int, prefixes: PrefixCache) -> int:
    """How many tokens, in whole chunks, are known of a prompt; its last one has to be read."""
    for at in range((len(context) - 1) // chunk * chunk, 0, -chunk):
        if prefixes.has(context[:at]):
            return at
    return 0


def beginning(model: TokenModel, rows: Sequence[Row], device: torch.device, number: int | None = None) -> State:
    """What these rows begin with, and as many more of the first as make up the number."""
    number = number or len(rows)
    first = rows[0].start
    if first is None:
        return model.init_state(number)
    index = [row.start[1] for row in rows if row.start is not None]
    index += [index[0]] * (number - len(index))
    if index == list(range(first[0].batch_size)):
        return first[0]
    return first[0].select(torch.tensor(index, device=device))
