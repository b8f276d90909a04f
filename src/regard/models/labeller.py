"""The labeller: an encoder and a head for classes, one answer for the whole sequence or one for each position.

N-1    logits = W pool(m_1 .. m_S) + b      sentiment, topics; see layers/pooling.py
       number = w . pool(m_1 .. m_S) + b    a rating, a price; see layers/number_head.py
N-N    logits_t = W m_t + b                 tags, each for itself, or together under a CRF; see layers/crf.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.core.context import EMPTY, Context
from regard.core.state import State
from regard.core.tap import Traced
from regard.layers.binary_head import BinaryHead
from regard.layers.crf import CrfHead
from regard.layers.head import LinearHead
from regard.layers.number_head import NumberHead
from regard.layers.pooling import PoolingConfig
from regard.models.encoder import EncoderConfig

HeadName = Literal["linear", "crf", "binary", "squared", "huber"]


@dataclass(frozen=True)
class LabellerConfig(Config, kind="labeller"):
    """encoder: of the text. pooling: to one vector, or None for an answer at each position. dropout: before the head.

    d_memory  width of the encoder's vectors.
    head      of tags: linear, each for itself, or crf, those of a sentence together. binary: several
              labels, each for itself. squared, huber: the loss of a number.
    spans     tags mark spans, and how readily one is told is learnt on what is held out.
    """

    encoder: EncoderConfig
    d_memory: int
    n_classes: int
    pooling: PoolingConfig | None = None
    dropout: float = 0.0
    head: HeadName = "linear"
    spans: bool = False

    def __post_init__(self) -> None:
        check(self.n_classes > 0, f"n_classes must be positive, found {self.n_classes}")
        check(self.head != "crf" or self.pooling is None, "head = crf is for tags: one answer has no neighbours")
        check(0 <= self.dropout < 1, f"dropout must lie in [0, 1), found {self.dropout}")

    def build(self) -> Labeller:
        return Labeller(self)


class Labeller(Traced):
    """Tokens to the vector of each, or to the one that stands for all; its head gives logits over classes.

    causal     no: an answer may depend on the whole text.
    has_state  no: nothing is carried from one text to the next.
    lean       of one that tells spans: what is taken from the score of O when tags are chosen.
    """

    lean: Tensor
    causal = False
    has_state = False

    def __init__(self, config: LabellerConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = config.encoder.build()
        self.pooling = config.pooling.build() if config.pooling else None
        dropout = nn.Dropout(config.dropout) if config.dropout else None
        if config.head == "squared" or config.head == "huber":
            self.head = NumberHead(config.d_memory, config.head, transform=dropout)
        else:
            kind = {"linear": LinearHead, "crf": CrfHead, "binary": BinaryHead}[config.head]
            self.head = kind(config.d_memory, config.n_classes, transform=dropout)
        if config.spans:
            self.register_buffer("lean", torch.zeros(()))

    @property
    def reads(self) -> str:
        return self.encoder.reads

    @property
    def weighs_classes(self) -> bool:
        """Whether each answer is one class, so that classes may count more or less in its loss."""
        return self.config.head == "linear"

    @property
    def max_length(self) -> int | None:
        return self.encoder.max_length

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """The vectors (B, T, D) of the sequence, or (B, D), the one that stands for it."""
        memory, lengths = self.encoder(tokens, context.lengths)
        return memory if self.pooling is None else self.pooling(memory, lengths), None

    def encode(self, tokens: Tensor, context: Context = EMPTY) -> Tensor:
        """The vectors (B, T, D) of the sequence, before they are pooled."""
        return self.encoder(tokens, context.lengths)[0]
