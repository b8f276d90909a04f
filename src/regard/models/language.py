"""The neural language model: embedding + stack + head.

h, state = model(tokens, state, context)        the context-sensitive vectors h_1 .. h_n
h, _ = model(tokens)                            from the beginning; no state in means that none is kept
logits = model.head(h)                          of the token after each
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.core.context import EMPTY, Context, pack, places_within, unpack
from regard.core.dropout import locks
from regard.core.mixer import Mixer
from regard.core.stack import Block, MixerConfig
from regard.core.state import State
from regard.core.tap import Traced
from regard.layers.embedding import EmbeddingConfig
from regard.layers.head import LinearHead

NORMED_STD = 0.05  # of the rows of an embedding that a norm reads: rows of size 1 take long to turn


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
        read, given = self.stack.d_read, self.embedding.d_model
        check(read == given, f"the stack reads vectors of width {read}, the embedding gives {given}")
        narrow = self.d_head not in (None, self.embedding.d_model)
        check(not (self.tied and narrow), f"a tied head reads vectors of the embedding's width, found {self.d_head}")
        check_deviations(self.init_std, self.embedding_std)

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
        self.head = self.made_head()
        if config.init_std is not None:
            initialise(self, config.init_std)
        if config.embedding_std is not None:
            nn.init.normal_(self.embedding.token_to_vector.weight, std=config.embedding_std)
        if config.tied:
            self.head.weight = self.embedding.token_to_vector.weight

    def made_head(self) -> LinearHead:
        """What makes logits of vectors."""
        config = self.config
        transform = config.transform.build() if config.transform else None
        width = config.d_head or config.embedding.d_model
        # A head with a net before it is asked at the few positions whose words are hidden.
        return LinearHead(width, self.vocab_size, config.head_bias, transform, sparse=transform is not None)

    @property
    def max_length(self) -> int | None:
        """Positions beyond which the model is undefined; None without such a limit."""
        return self.embedding.max_length or getattr(self.stack, "max_length", None)

    @property
    def reads(self) -> str:
        """What its inputs are: tokens, words with their spelling, pictures or numbers."""
        return self.embedding.reads

    @property
    def causal(self) -> bool:
        return self.stack.causal

    @property
    def packs(self) -> bool:
        """Whether texts that lie end to end are read as they are, without padding."""
        return self.stack.packs and not locks(self.embedding)

    def init_state(self, batch_size: int) -> State:
        return self.stack.init_state(batch_size)

    def forward(
        self, tokens: Int[Tensor, "B T"], state: State | None = None, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        """h_t: the encoding of w_t in the context of w_1 .. w_(t-1)."""
        if context.offsets is not None and not (self.packs and self.stack.takes_packed(state)):
            padded, lengths = unpack(tokens, context.offsets)
            h, state = self.forward(padded, state, dataclasses.replace(context, lengths=lengths, offsets=None))
            return pack(h, lengths), state
        start = (
            torch.zeros(tokens.shape[0], dtype=torch.long, device=tokens.device) if state is None else state.position
        )
        if context.offsets is not None:
            start = places_within(context.offsets)[None].to(tokens.device)
        h, state = self.stack(self.embedding(tokens, start), state, context)
        return self.norm(h), state

    def encode(self, tokens: Int[Tensor, "B T"], context: Context = EMPTY) -> Float[Tensor, "B T D"]:
        """The vectors alone, from the beginning."""
        return self(tokens, None, context)[0]


def check_deviations(init_std: float | None, embedding_std: float | None) -> None:
    """Refuse standard deviations that are none."""
    for name, std in (("init_std", init_std), ("embedding_std", embedding_std)):
        check(std is None or std >= 0, f"{name} must not be negative, found {std}")


def initialise(module: nn.Module, std: float) -> None:
    """Normal weights, zero biases; a linear map that writes to the residual stream is divided by sqrt(2 x layers).

    Which maps these are, the parts say themselves: `writes_to_stream`.
    """
    n_layers = max(1, sum(isinstance(part, Block) for part in module.modules()))
    writes = {id(getattr(part, name)) for part in module.modules() for name in getattr(part, "writes_to_stream", ())}
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.normal_(part.weight, std=std / (2 * n_layers) ** 0.5 if id(part) in writes else std)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=std)
