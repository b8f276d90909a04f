"""Encoder and decoder: any encoder's memory, and a language model that looks at it.

h, _ = model(SourceTokens(source, tokens))       the source read, then what is written, all at once
state = model.start(source, lengths)             the source met: from here on tokens alone
h, state = model(tokens, state)
given = model.given(source, lengths)             a TokenModel: decoding knows nothing of sources
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.config import Config
from regard.core.context import EMPTY, Context, row_count
from regard.core.inputs import SourceTokens
from regard.core.mixer import Mixer
from regard.core.state import State
from regard.core.tap import Trace, record, taps, trace
from regard.layers.head import LinearHead
from regard.models.encoder import EncoderConfig
from regard.models.language import LanguageModelConfig


@dataclass(frozen=True)
class EncoderDecoderConfig(Config, kind="encoder_decoder"):
    """encoder: of the source. decoder: a language model whose stack needs a memory.

    shared  both sides have one vocabulary and look their tokens up in one table.
    """

    encoder: EncoderConfig
    decoder: LanguageModelConfig
    shared: bool = False

    def build(self) -> EncoderDecoder:
        return EncoderDecoder(self)


class EncoderDecoder(nn.Module):
    """p(y_(t+1) | y_1 .. y_t, x) with the source x read once."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = config.encoder.build()
        self.decoder = config.decoder.build()
        if config.shared:
            self.encoder.embedding.token_to_vector = self.decoder.embedding.token_to_vector
        self.vocab_size = self.decoder.vocab_size

    @property
    def stack(self) -> Mixer:
        """Of the decoder: what is carried from token to token."""
        return self.decoder.stack

    @property
    def reads(self) -> str:
        return self.encoder.reads

    @property
    def reads_backward(self) -> bool:
        """Whether the places of the memory are those of the source from its end on."""
        return self.encoder.config.reverse

    @property
    def head(self) -> LinearHead:
        return self.decoder.head

    @property
    def max_length(self) -> int | None:
        """Positions of what is written."""
        return self.decoder.max_length

    @property
    def max_source_length(self) -> int | None:
        """Positions of what is read."""
        return self.encoder.max_length

    def encode(self, source: Tensor, lengths: Tensor | None = None) -> tuple[Float[Tensor, "B S D"], Tensor | None]:
        """The memory and how much of it is real."""
        return self.encoder(source, lengths)

    def init_state(self, batch_size: int) -> State:
        """Before any token, and before any source was met."""
        return self.decoder.init_state(batch_size)

    def start(self, source: Tensor, lengths: Tensor | None = None) -> State:
        """Before any token, with the source met: what a decoder looks at is in its state from here on."""
        memory, lengths = self.encode(source, lengths)
        nothing = torch.zeros(memory.shape[0], 0, dtype=torch.long, device=memory.device)
        context = Context(memory=memory, memory_lengths=lengths)
        _, state = self.decoder(nothing, self.init_state(memory.shape[0]), context)
        assert state is not None
        return state

    def given(self, source: Tensor, lengths: Tensor | None = None) -> Given:
        """The model of what follows from these sources, row by row."""
        return Given(self, source, lengths)

    @property
    def looks_at_source(self) -> bool:
        """Whether the decoder has attention over the memory."""
        return bool(self._looks())

    def _looks(self) -> list[str]:
        """Names of the taps that see how the decoder looks at the memory."""
        return [name for name in taps(self.decoder) if name.endswith("weights") and _looks_outside(self.decoder, name)]

    @torch.no_grad()
    def alignment(
        self, tokens: Int[Tensor, "B T"], state: State, *, layer: int = -1, written: Tensor | None = None
    ) -> Float[Tensor, "B T S"] | None:
        """How much each token looks at each vector of the memory, the mean over heads of one layer of attention.

        state    from `start`. None where the decoder has no attention.
        written  (B, T) the token after each. Attention is there before it and does not ask for it.
        """
        names = self._looks()
        if not names:
            return None
        with record(self.decoder, names[layer]) as seen:
            self.decoder(tokens, state)
        # A layer that goes step by step is recorded once a step.
        return torch.cat(seen[names[layer]], 2).mean(1)

    def trace(self, source: Tensor, tokens: Int[Tensor, "B T"], pattern: str = "*") -> Trace:
        """What the taps see while the source is read and `tokens`, a start symbol first, are written."""
        return trace(self, lambda: self.head(self(SourceTokens(source, tokens))[0]), pattern)

    def forward(
        self, inputs: Tensor | SourceTokens, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """The decoder's vectors. Tokens alone go on from a state that has met their source, or look at `context`'s."""
        if isinstance(inputs, Tensor):
            return self.decoder(inputs, state, context)
        memory, lengths = self.encoder(inputs.source, inputs.lengths)
        rows = row_count(inputs.tokens, context)
        if memory.shape[0] == 1 < rows:
            # A single source is looked at by every row.
            memory = memory.expand(rows, -1, -1)
            lengths = None if lengths is None else lengths.expand(rows)
        return self.decoder(inputs.tokens, state, replace(context, memory=memory, memory_lengths=lengths))


@runtime_checkable
class SourceModel(Protocol):
    """What reads a source once and writes a text from it: an encoder-decoder, or one that is fitted at once.

    looks_at_source    whether `alignment` tells where each token looks.
    reads_backward     whether places of the source are counted from its end on.
    max_source_length  positions of what is read, max_length of what is written; None without such a limit.

    It has a head too, which is not asked for: an isinstance does not find what is a submodule on Python 3.12.
    """

    @property
    def vocab_size(self) -> int: ...
    @property
    def max_length(self) -> int | None: ...
    @property
    def max_source_length(self) -> int | None: ...
    @property
    def reads_backward(self) -> bool: ...
    @property
    def looks_at_source(self) -> bool: ...
    @property
    def stack(self) -> Any: ...
    def encode(self, source: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]: ...
    def start(self, source: Tensor, lengths: Tensor | None = None) -> State: ...
    def given(self, source: Tensor, lengths: Tensor | None = None) -> Given: ...
    def alignment(self, tokens: Tensor, state: State, *, written: Tensor | None = None) -> Tensor | None: ...
    def __call__(
        self, inputs: Tensor | SourceTokens, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]: ...


class Given(nn.Module):
    """A TokenModel: the decoder with its sources met, row b looking at source b."""

    def __init__(self, model: SourceModel, source: Tensor, lengths: Tensor | None = None) -> None:
        super().__init__()
        self.model = model
        self.source, self.lengths = source, lengths

    @property
    def vocab_size(self) -> int:
        return self.model.vocab_size

    @property
    def max_length(self) -> int | None:
        return self.model.max_length

    @property
    def stack(self) -> Any:
        return self.model.stack

    @property
    def head(self) -> Any:
        model: Any = self.model
        return model.head

    @property
    def device(self) -> torch.device:
        return self.source.device

    def init_state(self, batch_size: int) -> State:
        """Row b begins with source b; a single source is met by every row."""
        if len(self.source) not in (1, batch_size):
            raise ValueError(f"{batch_size} rows cannot look at {len(self.source)} sources: each needs one of its own")
        state = self.model.start(self.source, self.lengths)
        if len(self.source) == batch_size:
            return state
        return state.select(torch.zeros(batch_size, dtype=torch.long, device=self.device))

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        if state is not None:
            return self.model(tokens, state, context)
        return self.model(tokens, self.init_state(row_count(tokens, context)), context)[0], None


def _looks_outside(decoder: nn.Module, tap: str) -> bool:
    """Whether the tap is of attention over the memory and not over the text itself."""
    owner: Any = decoder.get_submodule(tap.rpartition(".")[0])
    return getattr(owner, "needs_memory", False)
