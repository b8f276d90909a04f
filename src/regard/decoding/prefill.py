"""Prompts on their way into a state, a chunk of tokens at a time, so that other rows can step in between."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.core.context import Context
from regard.core.model import TokenModel
from regard.core.state import State
from regard.decoding.logits import tokens_at_once
from regard.decoding.prefix_cache import PrefixCache
from regard.decoding.prompt import padded
from regard.decoding.row import Row


class Prefill:
    """Rows that read their tokens side by side, in a state of their own, from `state` on."""

    def __init__(
        self, model: TokenModel, contexts: Sequence[Sequence[int]], state: State, device: torch.device, chunk: int
    ) -> None:
        self.model, self.state = model, state
        self.prefixes: PrefixCache | None = None
        self.lengths = [len(context) for context in contexts]
        self.tokens, _ = padded(contexts, device)
        self.at = 0
        self.chunk = tokens_at_once(model, len(contexts), chunk)
        self.last: Float[Tensor, "B D"] | None = None

    @property
    def done(self) -> bool:
        return self.at >= self.tokens.shape[1]

    def advance(self) -> None:
        """Read one chunk."""
        piece = self.tokens[:, self.at : self.at + self.chunk]
        size = piece.shape[1]
        real = [min(max(length - self.at, 0), size) for length in self.lengths]
        lengths = None if min(real) == size else torch.tensor(real, device=piece.device)
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
        self.at += size
        if self.prefixes is not None and size == self.chunk:
            self.prefixes.put(self.tokens[0, : self.at], self.state)

    def begin_with(self, prefixes: PrefixCache) -> None:
        """Go on from the longest beginning, of whole chunks, that is known; those that are not yet will be.

        Whole chunks alone: then every product has the shape that it has without, and the text is the same to the bit.
        """
        self.prefixes = prefixes
        whole = (self.tokens.shape[1] - 1) // self.chunk * self.chunk
        for at in range(whole, 0, -self.chunk):
            found = prefixes.get(self.tokens[0, :at])
            if found is not None:
                self.at, self.state = at, found
                return

    def logits(self) -> Float[Tensor, "B V"]:
        """Of the token after each row's last one."""
        assert self.last is not None
        return self.model.head(self.last)


def begun(
    model: TokenModel, rows: Sequence[Row], device: torch.device, chunk: int, prefixes: PrefixCache | None
) -> Prefill:
    """The reading of rows that begin alike. prefixes: for one that begins as every text does."""
    contexts = [row.to_read() for row in rows]
    for row, context in zip(rows, contexts, strict=True):
        row.context = len(context)
    prefill = Prefill(model, contexts, beginning(model, rows, device), device, chunk)
    if prefixes is not None and len(rows) == 1 and rows[0].start is None:
        prefill.begin_with(prefixes)
    return prefill


def beginning(model: TokenModel, rows: Sequence[Row], device: torch.device) -> State:
    """What these rows begin with."""
    first = rows[0].start
    if first is None:
        return model.init_state(len(rows))
    index = [row.start[1] for row in rows if row.start is not None]
    if index == list(range(first[0].batch_size)):
        return first[0]
    return first[0].select(torch.tensor(index, device=device))
