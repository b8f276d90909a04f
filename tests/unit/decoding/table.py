"""A TokenModel small enough to know by heart: p(next | previous, current) is a table, the state the previous token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.core.context import EMPTY, Context
from regard.core.state import State, advance, zero_position


@dataclass(frozen=True)
class LastToken(State):
    """The token before the next one; V before any."""

    last: Tensor
    count: Tensor

    @property
    def position(self) -> Tensor:
        return self.count


class TableModel:
    """logits[previous, current] (V + 1, V, V), and a record of the chunks it was asked for."""

    def __init__(self, logits: Tensor, max_length: int | None = None) -> None:
        self.logits = logits
        self.max_length = max_length
        self.calls: list[tuple[int, int]] = []
        self.head = nn.Identity()

    @property
    def vocab_size(self) -> int:
        return self.logits.shape[-1]

    def init_state(self, batch_size: int) -> LastToken:
        return LastToken(torch.full((batch_size,), self.vocab_size), zero_position(batch_size))

    def __call__(self, tokens: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]:
        assert isinstance(state, LastToken)
        assert state.batch_size == len(tokens)
        self.calls.append((tokens.shape[0], tokens.shape[1]))
        after = advance(state.count, tokens.shape[1], context.lengths)
        assert self.max_length is None or after.max() <= self.max_length, "the model was led beyond its window"
        seen = torch.cat([state.last[:, None], tokens], 1)
        lengths = after - state.count
        last = seen.gather(1, lengths[:, None])[:, 0]
        return self.logits[seen[:, :-1], tokens], LastToken(last, after)


def random_table(vocab_size: int, seed: int, scale: float = 1.5, max_length: int | None = None) -> TableModel:
    generator = torch.Generator().manual_seed(seed)
    shape = (vocab_size + 1, vocab_size, vocab_size)
    return TableModel(scale * torch.randn(shape, generator=generator, dtype=torch.float64), max_length)


def bigram_table(rows: Sequence[Sequence[float]], max_length: int | None = None) -> TableModel:
    """p(next | current) given as probabilities; what came before does not matter."""
    logits = torch.tensor(rows, dtype=torch.float64).log()
    return TableModel(logits.expand(len(rows) + 1, -1, -1), max_length)


class Letters:
    """A streamer whose tokens spell given strings."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    def push(self, token: int) -> str:
        return self.words[token]

    def finish(self) -> str:
        return ""


def prompt(*tokens: int) -> Tensor:
    return torch.tensor(tokens, dtype=torch.long)
