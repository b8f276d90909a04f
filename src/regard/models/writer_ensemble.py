"""An ensemble of models that write a text from a source: a model whose next token is drawn from the mean of its parts'.

    p(y_(t+1) | y_1 .. y_t, x) = mean over k of p_k(y_(t+1) | y_1 .. y_t, x)      (Sutskever, Vinyals, Le 2014, 3.6)

Every part has read the source and what was written so far, and all go on with the same token, so that a beam searches
through one distribution. State and memory are those of the parts, side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.core.context import EMPTY, Context
from regard.core.inputs import SourceTokens
from regard.core.state import Chain, State
from regard.layers.head import LogitsHead
from regard.models.encoder_decoder import Given
from regard.models.ensemble import Ensemble, EnsembleConfig


@dataclass(frozen=True)
class WriterEnsembleConfig(EnsembleConfig, kind="writer_ensemble"):
    """Of parts that are called with a source and what is written from it."""

    def build(self) -> WriterEnsemble:
        return WriterEnsemble(self)


class WriterEnsemble(Ensemble):
    """A `SourceModel` whose vectors are the logarithms of mean probabilities; its state is the chain of its parts'."""

    has_state = True

    def __init__(self, config: WriterEnsembleConfig) -> None:
        super().__init__(config)
        self.vocab_size: int = self.first.vocab_size
        self.head = LogitsHead(self.vocab_size)  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def stack(self) -> Any:
        """Of a part, which says of every part how its state grows."""
        return self.first.stack

    @property
    def reads_backward(self) -> bool:
        return self.first.reads_backward

    @property
    def max_source_length(self) -> int | None:
        return self.first.max_source_length

    @property
    def looks_at_source(self) -> bool:
        return self.first.looks_at_source

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The memories of all parts, side by side, (B, S, K D), and how much of each is real."""
        read = [part.encode(source, lengths) for part in self.writers]
        return torch.cat([memory for memory, _ in read], -1), read[0][1]

    def init_state(self, batch_size: int) -> Chain:
        """Before any token, and before any source was met."""
        return Chain(tuple(part.init_state(batch_size) for part in self.writers))

    def start(self, source: Tensor, lengths: Tensor | None = None) -> Chain:
        """Before any token, with the source met by every part."""
        return Chain(tuple(part.start(source, lengths) for part in self.writers))

    def given(self, source: Tensor, lengths: Tensor | None = None) -> Given:
        """The model of what follows from these sources, row by row."""
        return Given(self, source, lengths)

    def alignment(self, tokens: Int[Tensor, "B T"], state: State, *, written: Tensor | None = None) -> Tensor | None:
        """How much each token looks at each vector of the memory, the mean over parts; None without attention."""
        if not self.looks_at_source:
            return None
        each = zip(self.writers, self._states(state), strict=True)
        return torch.stack([part.alignment(tokens, own, written=written) for part, own in each]).mean(0)

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  # no numbers
        self, inputs: Tensor | SourceTokens, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, Chain | None]:
        """log p (B, T, V) of the token after each. A memory in `context` is that of `encode`."""
        answers, after = [], []
        for part, own, around in zip(self.writers, self._states(state), self._contexts(context), strict=True):
            vectors, own = part(inputs, own, around)
            answers.append(part.head(vectors))
            after.append(own)
        logits = torch.stack(answers)
        log_p = self.first.head.averaged(logits.to(torch.promote_types(logits.dtype, torch.float32)))
        return log_p.to(logits.dtype), None if state is None else Chain(tuple(after))

    @property
    def writers(self) -> list[Any]:
        """The parts."""
        return list(self.parts)

    def _states(self, state: State | None) -> Sequence[State | None]:
        return state.parts if isinstance(state, Chain) else [None] * len(self.parts)

    def _contexts(self, context: Context) -> list[Context]:
        if context.memory is None:
            return [context] * len(self.parts)
        return [replace(context, memory=memory) for memory in context.memory.chunk(len(self.parts), -1)]
