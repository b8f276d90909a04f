"""The neural language model: embedding + stack + head.

logits, state = model(tokens, state, context)
logits = model(tokens)                          from the beginning; the state is dropped
h = model.encode(tokens)                        the context-sensitive vectors h_1 .. h_n
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.core.context import EMPTY, Context, pack, unpack
from regard.core.mixer import Mixer
from regard.core.stack import Block, MixerConfig
from regard.core.state import State
from regard.core.trace import Traced
from regard.layers.embedding import EmbeddingConfig


@dataclass(frozen=True)
class LanguageModelConfig(Config, kind="language_model"):
    """Embedding, stack, an optional last norm, and a head that may share the embedding's table.

    transform      between the vectors and the head, as in BERT; `encode` gives the vectors before it.
    tied           the head's matrix is the embedding's.
    init_std       normal initialisation of linear maps and tables with this standard deviation, those that write to
                   the residual stream divided by sqrt(2 x layers) (Radford et al. 2019, 2.3). None: each part's own.
    embedding_std  the same for the embedding alone; a tied head wants small rows.
    d_head         width of the vectors that the head reads, None for that of the embedding.
    """

    embedding: EmbeddingConfig
    stack: MixerConfig
    norm: Config | None = None
    transform: Config | None = None
    tied: bool = False
    head_bias: bool = False
    init_std: float | None = None
    embedding_std: float | None = None
    d_head: int | None = None

    def __post_init__(self) -> None:
        read, given = self.stack.d_model, self.embedding.d_model
        check(read == given, f"the stack reads vectors of width {read}, the embedding gives {given}")
        narrow = self.d_head not in (None, self.embedding.d_model)
        check(not (self.tied and narrow), f"a tied head reads vectors of the embedding's width, found {self.d_head}")

    def build(self) -> LanguageModel:
        return LanguageModel(self)


class LanguageModel(Traced):
    """p(w_(t+1) | w_1 .. w_t) = softmax(E_out h_t), with h the outputs of the stack."""

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.embedding.vocab_size
        self.embedding = config.embedding.build()
        self.stack: Mixer = config.stack.build()
        self.norm = config.norm.build() if config.norm else nn.Identity()
        self.transform = config.transform.build() if config.transform else nn.Identity()
        width = config.d_head or config.embedding.d_model
        self.to_logits = nn.Linear(width, self.vocab_size, bias=config.head_bias)
        if config.init_std is not None:
            initialise(self, config.init_std)
        if config.embedding_std is not None:
            nn.init.normal_(self.embedding.token_to_vector.weight, std=config.embedding_std)
        if config.tied:
            self.to_logits.weight = self.embedding.token_to_vector.weight

    @property
    def max_length(self) -> int | None:
        """Positions beyond which the model is undefined; None without such a limit."""
        return self.embedding.max_length or getattr(self.stack, "max_length", None)

    @property
    def causal(self) -> bool:
        return self.stack.causal

    def init_state(self, batch_size: int) -> State:
        return self.stack.init_state(batch_size)

    def hidden(
        self, tokens: Int[Tensor, "B T"], state: State | None, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        """The vectors that the head reads, and the state, which is None when none was given."""
        h, state = self.vectors(tokens, state, context)
        return self.transform(h), state

    def vectors(
        self, tokens: Int[Tensor, "B T"], state: State | None, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        """The context-sensitive vectors, and the state, which is None when none was given."""
        if context.offsets is not None:
            padded, lengths = unpack(tokens, context.offsets)
            h, state = self.vectors(padded, state, dataclasses.replace(context, lengths=lengths, offsets=None))
            return pack(h, lengths), state
        if state is None:
            start = torch.zeros(tokens.shape[0], dtype=torch.long, device=tokens.device)
            h = self.stack(self.embedding(tokens, start), None, context)
        else:
            h, state = self.stack(self.embedding(tokens, state.position), state, context)
        return self.norm(h), state

    def encode(self, tokens: Int[Tensor, "B T"], context: Context = EMPTY) -> Float[Tensor, "B T D"]:
        """h_t: the encoding of w_t in the context of w_1 .. w_(t-1)."""
        return self.vectors(tokens, None, context)[0]

    def forward(
        self, tokens: Int[Tensor, "B T"], state: State | None = None, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B T V"], State | None]:
        h, state = self.hidden(tokens, state, context)
        return self.to_logits(h), state

    @overload
    def __call__(self, tokens: Tensor, state: None = None, context: Context = EMPTY) -> Tensor: ...
    @overload
    def __call__(self, tokens: Tensor, state: State, context: Context = EMPTY) -> tuple[Tensor, State]: ...
    def __call__(self, tokens: Tensor, state: State | None = None, context: Context = EMPTY) -> Any:
        logits, after = super().__call__(tokens, state, context)
        return logits if state is None else (logits, after)


def initialise(module: nn.Module, std: float) -> None:
    """Normal weights, zero biases; a linear map that writes to the residual stream is divided by sqrt(2 x layers)."""
    n_layers = max(1, sum(isinstance(part, Block) for part in module.modules()))
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear):
            writes_to_stream = name.rpartition(".")[2] in ("hidden_to_output", "heads_to_output")
            nn.init.normal_(part.weight, std=std / (2 * n_layers) ** 0.5 if writes_to_stream else std)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=std)
