"""The labeller: an encoder and a head for classes, one answer for the whole sequence or one for each position.

N-1    logits = W pool(m_1 .. m_S) + b      sentiment, topics; see layers/pooling.py
       number = w . pool(m_1 .. m_S) + b    a rating, a price; see layers/number_head.py
N-N    logits_t = W m_t + b                 tags, each for itself, or together under a CRF; see layers/crf.py

One answer for a text may have a second half, a linear classifier over n-grams that is solved for before the first step
(models/linear_half.py). What one of the two makes of noise the other does not, and their mean errs less than either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.core.context import EMPTY, Context
from regard.core.fitted import FitSettings, GivenExamples, Tell
from regard.core.state import State
from regard.core.tap import Traced
from regard.fitting.evidence import Evidence
from regard.fitting.grams import WORD
from regard.layers.binary_head import BinaryHead
from regard.layers.crf import CrfHead
from regard.layers.head import LinearHead
from regard.layers.number_head import NumberHead
from regard.layers.paired_head import PairedHead
from regard.layers.pooling import PoolingConfig
from regard.models.encoder import EncoderConfig
from regard.models.linear_half import LinearHalf
from regard.models.pieces import one_piece, pieces

HeadName = Literal["linear", "crf", "binary", "squared", "huber"]


@dataclass(frozen=True)
class LabellerConfig(Config, kind="labeller"):
    """encoder: of the text. pooling: to one vector, or None for an answer at each position. dropout: before the head.

    d_memory  width of the encoder's vectors.
    head      of tags: linear, each for itself, or crf, those of a sentence together. binary: several
              labels, each for itself. squared, huber: the loss of a number.
    spans     tags mark spans, and how readily one is told is learnt on what is held out.
    linear    columns of the half that is solved for, of words with their spelling; 0: there is none.
    skip      words that may stand between the two of a pair in that half.
    piece     positions that are read at a time, where a text has one answer; 0: the whole text (models/pieces.py).
    """

    encoder: EncoderConfig
    d_memory: int
    n_classes: int
    pooling: PoolingConfig | None = None
    dropout: float = 0.0
    head: HeadName = "linear"
    spans: bool = False
    linear: int = 0
    skip: int = 0
    piece: int = 0

    def __post_init__(self) -> None:
        check(self.n_classes > 0, f"n_classes must be positive, found {self.n_classes}")
        check(self.head != "crf" or self.pooling is None, "head = crf is for tags: one answer has no neighbours")
        check(self.linear >= 0, f"linear counts columns, found {self.linear}")
        has_half = self.pooling is not None and self.head == "linear"
        check(not self.linear or has_half, "linear is for one class of a text: other answers have no such half")
        check(self.piece >= 0, f"piece counts positions, found {self.piece}")
        check(not self.piece or self.pooling is not None, "piece is for one answer of a text: positions have their own")
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
            one = PairedHead if config.linear else LinearHead
            kind = {"linear": one, "crf": CrfHead, "binary": BinaryHead}[config.head]
            self.head = kind(config.d_memory, config.n_classes, transform=dropout)
        self.linear = LinearHalf(config.linear, config.n_classes, config.skip) if config.linear else None
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
    def piece(self) -> int:
        return self.config.piece

    @property
    def max_length(self) -> int | None:
        return self.encoder.max_length

    def forward(
        self, tokens: Tensor, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        """The vectors (B, T, D) of the sequence, or (B, D), the one that stands for it.

        Of a model with two halves that one is (B, D + C): what the other half says comes last.
        """
        if self.pooling is None:
            return self.encoder(tokens, context.lengths)[0], None
        pooled = self._pooled(tokens, context.lengths)
        if self.linear is None:
            return pooled, None
        return torch.cat([pooled, self.linear(tokens, context.lengths)], -1), None

    def _pooled(self, tokens: Tensor, lengths: Tensor | None) -> Tensor:
        """The vector (B, D) of each text; of one that is longer than a piece the mean of those of its pieces."""
        assert self.pooling is not None
        piece = self.piece
        # A graph that is exported reads texts of any length: pieces are cut in it, and not by the length of an example.
        if not piece or (tokens.shape[1] <= piece and not torch.compiler.is_exporting()):
            return self.pooling(*self.encoder(tokens, lengths))
        known = torch.full((len(tokens),), tokens.shape[1], device=tokens.device) if lengths is None else lengths
        if self.training:
            return self.pooling(*self.encoder(*one_piece(tokens, known, piece)))
        cut = pieces(tokens, known, piece)
        return cut.mean(self.pooling(*self.encoder(cut.tokens, cut.lengths)))

    def encode(self, tokens: Tensor, context: Context = EMPTY) -> Tensor:
        """The vectors (B, T, D) of the sequence, before they are pooled."""
        return self.encoder(tokens, context.lengths)[0]

    def begin(self, data: GivenExamples, settings: FitSettings, tell: Tell) -> None:
        """Solve for the other half, in seconds; its share of the answer is found on what is held out."""
        if self.linear is not None:
            self.linear.solve(data, settings, tell)

    def evidence(self, text: str) -> Evidence:
        """What each n-gram of a text adds to the answer of the half that was solved for."""
        assert self.linear is not None
        assert isinstance(self.head, PairedHead)
        share = float(self.head.share)
        note = (
            f"This is the half that was solved for: it counts {share:.0%} in the answer, and the net {1 - share:.0%}."
        )
        return replace(self.linear.evidence(WORD.findall(text)), note=note)
