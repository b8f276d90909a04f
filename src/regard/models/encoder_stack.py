"""Stacks that read a source, by name: every family of the road can be an encoder.

rnn lstm gru     stacked, in both directions or one, residual from the second layer on
gnmt             bottom layer in both directions, residual from the third on (Wu et al. 2016, 3.2)
transformer      full self-attention        gpt  the same, causal
s4d mamba mamba2 state spaces, in both directions or one
dan fnn          means and windows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.core.stack import BidirectionalConfig, BlockConfig, MixerConfig, StackConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import Activation, MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.layers.spelling import SpelledConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.gru import GruConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.mamba import MambaConfig
from regard.mixers.mean import MeanConfig
from regard.mixers.rnn import RnnConfig
from regard.mixers.s4d import S4dConfig
from regard.mixers.ssd import SsdConfig
from regard.mixers.window import WindowConfig
from regard.models.encoder import EncoderConfig

EncoderName = Literal["rnn", "lstm", "gru", "gnmt", "transformer", "gpt", "s4d", "mamba", "mamba2", "dan", "fnn"]
InputPosition = Literal["none", "learned", "sinusoidal"]
INIT_STD = 0.02
WINDOW = 5


@dataclass(frozen=True)
class EncoderStack:
    """What an encoder is made of, whatever its family.

    bidirectional  recurrences and state spaces read both ways.
    residual       recurrences write to a residual stream from the second layer on.
    max_length     of learned positions, which only attention needs.
    """

    name: EncoderName
    d_model: int
    n_layers: int
    n_heads: int = 4
    dropout: float = 0.0
    bidirectional: bool = True
    norm: Literal["layer", "rms"] = "layer"
    placement: Literal["before", "after"] = "before"
    activation: Activation = "relu"
    position: InputPosition = "sinusoidal"
    max_length: int = 512
    d_hidden: int | None = None
    residual: bool = True

    @property
    def attends(self) -> bool:
        return self.name in ("transformer", "gpt")

    def config(
        self, vocab_size: int, *, scaled: bool = False, reverse: bool = False, spelled: bool = False
    ) -> EncoderConfig:
        """The encoder of tokens, or of words with their spelling."""
        stack, norm = self.stack()
        position = None
        if self.attends and self.position != "none":
            position = PositionConfig(self.d_model, self.position, self.max_length)
        if spelled:
            words = SpelledConfig(vocab_size, self.d_model, position=position, dropout=self.dropout)
            return EncoderConfig(words, stack, norm, reverse)
        embedding = EmbeddingConfig(vocab_size, self.d_model, position, self.dropout, scaled=scaled)
        if scaled:
            return EncoderConfig(embedding, stack, norm, reverse, embedding_std=self.d_model**-0.5)
        return EncoderConfig(embedding, stack, norm, reverse, INIT_STD if self.attends else None)

    def stack(self) -> tuple[StackConfig, NormConfig | None]:
        """The layers, and the norm after the last of them where each is normalised before."""
        norm = NormConfig(self.d_model, self.norm)
        match self.name:
            case "rnn" | "lstm" | "gru":
                return self._recurrent(), None
            case "gnmt":
                return gnmt_stack(self.d_model, self.n_layers, self.dropout), None
            case "transformer" | "gpt":
                return self._attentive(norm), norm if self.placement == "before" else None
            case "s4d" | "mamba" | "mamba2":
                mixer = self._direction(self._state_space())
                mlp = MlpConfig(self.d_model, 2 * self.d_model) if self.name == "s4d" else None
                block = BlockConfig(self.d_model, mixer, mlp, norm, dropout=self.dropout)
                return StackConfig(self.d_model, (block,) * self.n_layers), norm
            case "dan" | "fnn":
                return self._shallow(), None

    def _recurrent(self) -> StackConfig:
        kinds = {"rnn": RnnConfig, "lstm": LstmConfig, "gru": GruConfig}
        mixer = self._direction(kinds[self.name](self.d_model))
        first = BlockConfig(self.d_model, mixer, residual=False, dropout=self.dropout)
        later = BlockConfig(self.d_model, mixer, residual=self.residual, dropout=self.dropout)
        return StackConfig(self.d_model, (first, *[later] * (self.n_layers - 1)))

    def _attentive(self, norm: NormConfig) -> StackConfig:
        attention = AttentionConfig(
            self.d_model, self.n_heads, causal=self.name == "gpt", dropout=self.dropout, position="none"
        )
        mlp = MlpConfig(self.d_model, self.d_hidden or 4 * self.d_model, self.activation)
        block = BlockConfig(self.d_model, attention, mlp, norm, dropout=self.dropout, placement=self.placement)
        return StackConfig(self.d_model, (block,) * self.n_layers)

    def _shallow(self) -> StackConfig:
        """One layer that mixes positions, then layers that do not."""
        mixer = MeanConfig(self.d_model) if self.name == "dan" else WindowConfig(self.d_model, WINDOW, 4 * self.d_model)
        mixed = BlockConfig(self.d_model, mixer, residual=False, dropout=self.dropout)
        net = BlockConfig(self.d_model, WindowConfig(self.d_model, 1, 4 * self.d_model, "relu"), dropout=self.dropout)
        return StackConfig(self.d_model, (mixed, *[net] * (self.n_layers - 1)))

    def _state_space(self) -> MixerConfig:
        if self.name == "s4d":
            return S4dConfig(self.d_model, 32)
        return (
            MambaConfig(self.d_model) if self.name == "mamba" else SsdConfig(self.d_model, d_head=min(64, self.d_model))
        )

    def _direction(self, mixer: MixerConfig) -> MixerConfig:
        return BidirectionalConfig(self.d_model, mixer) if self.bidirectional else mixer


def gnmt_stack(d_model: int, n_layers: int, dropout: float) -> StackConfig:
    """Both directions side by side, a layer that reads the pair, then layers with residual connections."""
    bottom = BlockConfig(
        d_model,
        BidirectionalConfig(d_model, LstmConfig(d_model), project=n_layers == 1),
        residual=False,
        dropout=dropout,
    )
    second = BlockConfig(d_model, LstmConfig(d_model, d_input=2 * d_model), residual=False, dropout=dropout)
    later = BlockConfig(d_model, LstmConfig(d_model), dropout=dropout)
    return StackConfig(d_model, (bottom, second, *[later] * (n_layers - 2))[:n_layers])
