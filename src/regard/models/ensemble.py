"""An ensemble: a model whose parts are models of one kind from several seeds, and whose answer is the mean of theirs.

    p(c | x) = mean over k of p_k(c | x)          classes, tags (Lakshminarayanan, Pritzel, Blundell 2017)
    q_h      = mean over k of q_h,k               quantiles (Lago et al. 2021 average their nets so)
    p(y_t | x) = mean over k of p_k(y_t | x)      tags that are chosen together: of each word, whatever the others are

Each part was trained alone. What one seed makes of noise another one does not, and in the mean it is smaller. The head
of a part says how its answers are averaged. The same are `regard.decoding.mixture.Mixture` of language models and
`regard.models.writer_ensemble.WriterEnsemble` of those that write from a source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.config import Config, check
from regard.core.context import EMPTY, Context
from regard.core.inputs import Inputs
from regard.core.model import logits_of
from regard.core.state import State
from regard.core.tap import Traced
from regard.layers.crf import Chain, viterbi


@dataclass(frozen=True)
class EnsembleConfig(Config, kind="ensemble"):
    """part: the config of every part. count: how many there are."""

    part: Config
    count: int

    def __post_init__(self) -> None:
        check(self.count >= 1, f"count must be 1 or more, found {self.count}")

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Of a part that forecasts."""
        part: Any = self.part
        return part.quantiles

    def build(self) -> Ensemble:
        return Ensemble(self)


@dataclass(frozen=True)
class ChainEnsembleConfig(EnsembleConfig, kind="chain_ensemble"):
    """Of parts whose head chooses the tags of a sentence together."""

    def build(self) -> ChainEnsemble:
        return ChainEnsemble(self)


class Ensemble(Traced):
    """The mean answers of its parts. What it gives are answers already, and its head passes them on.

    looks_inside  no: its parts are runs of their own, and each of those can be looked into.
    """

    encoder = None
    has_state = False
    looks_inside = False

    def __init__(self, config: EnsembleConfig) -> None:
        super().__init__()
        self.config = config
        self.parts = nn.ModuleList(config.part.build() for _ in range(config.count))
        self.head = nn.Identity()

    @property
    def first(self) -> Any:
        """A part, which says what all have in common."""
        return self.parts[0]

    @property
    def reads(self) -> str:
        return self.first.reads

    @property
    def causal(self) -> bool:
        return self.first.causal

    @property
    def max_length(self) -> int | None:
        return self.first.max_length

    @property
    def piece(self) -> int:
        """Positions of a text that a part reads at a time; 0: all of it."""
        return getattr(self.first, "piece", 0)

    @property
    def lean(self) -> Tensor:
        """Of parts that tell spans: the mean of theirs."""
        return torch.stack([part.lean for part in self.parts]).mean()  # pyright: ignore[reportArgumentType]

    def forward(
        self, inputs: Inputs, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        answers = torch.stack([logits_of(part, inputs, context=context) for part in self.parts])
        return self.first.head.averaged(answers), None


class ChainEnsemble(Ensemble):
    """What it gives are the vectors of its parts, side by side; tags are chosen by the mean of the parts' chances.

    The chances of a word take its neighbours into account, so that no tag says anything of the next beyond them.
    """

    def forward(
        self, inputs: Inputs, state: State | None = None, context: Context = EMPTY
    ) -> tuple[Tensor, State | None]:
        return torch.cat([part(inputs, None, context)[0] for part in self.parts], -1), None

    def log_chances(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        heads: list[Any] = [part.head for part in self.parts]
        each = zip(heads, vectors.chunk(len(heads), -1), strict=True)
        return self.first.head.averaged(torch.stack([head.log_chances(own, lengths) for head, own in each]))

    def decode(self, vectors: Tensor, lengths: Tensor, allowed: Chain | None = None) -> Tensor:
        chances = self.log_chances(vectors, lengths)
        return viterbi(chances, lengths, self.chain().to(chances) if allowed is None else allowed.to(chances))

    def chain(self) -> Chain:
        n = self.first.head.n_answers
        return Chain(torch.zeros(n, n), torch.zeros(n), torch.zeros(n))
