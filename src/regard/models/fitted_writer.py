"""FittedWriter: base of models that read a source once and write a text, fitted at once instead of by steps.

    memory, lengths = model.encode(source, lengths)      what is kept of the source, (B, S, D)
    state = model.begin(memory, lengths)                 before any token, with the source met
    log_p, state = model.write(tokens, state, context)   of the token after each, (B, T, V)

A subclass writes these three and `fit`. The rest is what an encoder-decoder has: decoding, beams, scores, explain and
the laws tell no difference (regard/models/encoder_decoder.py).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.core.context import EMPTY, Context, pack, row_count, unpack
from regard.core.inputs import SourceTokens
from regard.core.state import State
from regard.fitting.lexicon import Texts
from regard.fitting.model import FittedModel
from regard.models.encoder_decoder import Given


@runtime_checkable
class PairRows(Protocol):
    """The rows of a fit: ids of sources, each with its end, and of targets without."""

    @property
    def source(self) -> Any: ...
    @property
    def target(self) -> Any: ...


@runtime_checkable
class PairData(Protocol):
    """The training part of a task of pairs."""

    @property
    def rows(self) -> PairRows: ...


@dataclass(frozen=True, eq=False)
class ExamplePairs:
    """A few pairs, to fit a model to."""

    source: Texts
    target: Texts

    @property
    def rows(self) -> ExamplePairs:
        return self


class FittedWriter(FittedModel):
    """p(y_(t+1) | y_1 .. y_t, x), written out.

    max_length, max_source_length  as of an encoder-decoder: positions of what is written, and of what is read.
    looks_at_source                whether `alignment` tells from which place of the source each token comes.
    """

    causal = True
    has_state = True
    state_grows = False
    permutes = False
    reach: int | None = None
    max_source_length: int | None = None
    reads_backward = False
    looks_at_source = False
    vocab_size: int

    @abstractmethod
    def encode(self, source: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """What is kept of a source, (B, S, D), and how much of it is real."""

    @abstractmethod
    def begin(self, memory: Tensor, lengths: Tensor | None) -> State:
        """The state before any token of rows that have met their source; one of no places is none yet."""

    @abstractmethod
    def write(self, tokens: Tensor, state: State, context: Context) -> tuple[Tensor, State]:
        """log p of the token after each, (B, T, V), and the state after those that are real by `context.lengths`."""

    @property
    @abstractmethod
    def d_memory(self) -> int:
        """D, numbers that are kept of each place of a source."""

    def init_state(self, batch_size: int) -> State:
        """Before any token, and before any source was met."""
        return self.begin(torch.zeros(batch_size, 0, self.d_memory, device=self.like.device), None)

    def start(self, source: Tensor, lengths: Tensor | None = None) -> State:
        """Before any token, with the source met."""
        return self.begin(*self.encode(source, lengths))

    def given(self, source: Tensor, lengths: Tensor | None = None) -> Given:
        """The model of what follows from these sources, row by row."""
        return Given(self, source, lengths)

    @property
    def stack(self) -> FittedWriter:
        """Itself is what is carried from token to token."""
        return self

    def alignment(self, tokens: Tensor, state: State, *, written: Tensor | None = None) -> Tensor | None:
        """(B, T, S): from which place of the source each token comes; None where that is not known."""
        return None

    def forward(
        self, inputs: Tensor | SourceTokens, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """log p (B, T, V). Tokens alone go on from a state, or from the memory of `context`."""
        if context.offsets is not None:
            tokens = inputs if isinstance(inputs, Tensor) else inputs.tokens
            rows, lengths = unpack(tokens, context.offsets)
            apart = rows if isinstance(inputs, Tensor) else replace(inputs, tokens=rows)
            y, state = self.forward(apart, state, replace(context, lengths=lengths, offsets=None))
            return pack(y, lengths), state
        if isinstance(inputs, SourceTokens):
            memory, lengths = self.encode(inputs.source, inputs.lengths)
            context = replace(context, memory=memory, memory_lengths=lengths)
        tokens = inputs if isinstance(inputs, Tensor) else inputs.tokens
        if state is not None:
            return self.write(tokens, state, context)
        return self.write(tokens, self._first(row_count(tokens, context), context), context)[0], None

    def _first(self, n_rows: int, context: Context) -> State:
        """The state that rows begin with; a single source is met by every row."""
        if context.memory is None:
            return self.init_state(n_rows)
        state = self.begin(context.memory, context.memory_lengths)
        if len(context.memory) == n_rows:
            return state
        return state.select(torch.zeros(n_rows, dtype=torch.long, device=context.memory.device))
