"""Stacks that read a source, by name: every family of the road can be an encoder, and any other registered part.

rnn lstm gru     stacked, in both directions or one, residual from the second layer on
gnmt             bottom layer in both directions, residual from the third on (Wu et al. 2016, 3.2)
transformer      full self-attention        gpt  the same, causal
s4d mamba mamba2 state spaces, in both directions or one
dan fnn          means and windows
a mixer's name   blocks of it with norms, residual connections and a feed-forward net, in both directions or one
a language model's name   its stack, in both directions or one, with its own positions and norms
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import torch

from regard.core import registry
from regard.core.bidirectional import BidirectionalConfig
from regard.core.config import Config, is_required
from regard.core.data_spec import EXAMPLE
from regard.core.mixer import Mixer
from regard.core.stack import BlockConfig, MixerConfig, StackConfig
from regard.errors import UsageError, nearest
from regard.layers.embedding import EmbeddingConfig
from regard.layers.linear import Activation
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.layers.spelled import D_BYTE, SpelledConfig
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
from regard.models.language import LanguageModelConfig

FAMILIES = ("rnn", "lstm", "gru", "gnmt", "transformer", "gpt", "s4d", "mamba", "mamba2", "dan", "fnn")
InputPosition = Literal["none", "learned", "sinusoidal"]
INIT_STD = 0.02
WINDOW = 5
# What a language model is told that becomes an encoder, where it has such a setting.
SHARED = ("d_model", "n_layers", "n_heads", "dropout")
OUTSIDE = "a part from outside the package is imported first: --import MODULE"


@dataclass(frozen=True)
class Layers:
    """What an encoder has beside its embedding.

    norm      after the last layer, where each is normalised before.
    position  what the embedding adds to tell places apart.
    init_std, embedding_std  as of a language model.
    """

    stack: MixerConfig
    norm: Config | None = None
    position: PositionConfig | None = None
    init_std: float | None = None
    embedding_std: float | None = None


@dataclass(frozen=True)
class EncoderStack:
    """What an encoder is made of, whatever its family.

    name           of a family, of a mixer or of a language model.
    bidirectional  what reads from the first position on reads both ways; attention of a family is as it is named.
    residual       recurrences write to a residual stream from the second layer on.
    max_length     of learned positions, which only attention needs.
    """

    name: str
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

    def config(
        self,
        vocab_size: int,
        *,
        scaled: bool = False,
        reverse: bool = False,
        spelled: bool = False,
        n_forms: int = 0,
        d_byte: int = D_BYTE,
    ) -> EncoderConfig:
        """The encoder of tokens, or of words with their spelling and forms."""
        made = self.layers()
        if spelled:
            words = SpelledConfig(
                vocab_size,
                self.d_model,
                d_byte,
                position=made.position,
                dropout=self.dropout,
                n_forms=n_forms,
                rare=self.dropout if n_forms else 0.0,
            )
            return EncoderConfig(words, made.stack, made.norm, reverse)
        embedding = EmbeddingConfig(vocab_size, self.d_model, made.position, self.dropout, scaled=scaled)
        if scaled:
            return EncoderConfig(embedding, made.stack, made.norm, reverse, embedding_std=self.d_model**-0.5)
        return EncoderConfig(embedding, made.stack, made.norm, reverse, made.init_std, made.embedding_std)

    def layers(self) -> Layers:
        """All but the embedding of tokens."""
        norm = NormConfig(self.d_model, self.norm)
        match self.name:
            case "rnn" | "lstm" | "gru":
                return Layers(self._recurrent())
            case "gnmt":
                return Layers(gnmt_stack(self.d_model, self.n_layers, self.dropout))
            case "transformer" | "gpt":
                places = (
                    PositionConfig(self.d_model, self.position, self.max_length) if self.position != "none" else None
                )
                last = norm if self.placement == "before" else None
                return Layers(self._attentive(norm), last, places, INIT_STD)
            case "s4d" | "mamba" | "mamba2":
                mlp = MlpConfig(self.d_model, 2 * self.d_model) if self.name == "s4d" else None
                return Layers(self._blocks(self._direction(self._state_space()), mlp, norm), norm)
            case "dan" | "fnn":
                return Layers(self._shallow())
        config = language_config(self.name, {name: getattr(self, name) for name in SHARED})
        if config is not None:
            return self._of_model(config)
        mlp = MlpConfig(self.d_model, self.d_hidden or 2 * self.d_model)
        return Layers(self._blocks(self._both_ways(self._mixer()), mlp, norm), norm)

    def _blocks(self, mixer: MixerConfig, mlp: MlpConfig | None, norm: NormConfig) -> StackConfig:
        block = BlockConfig(self.d_model, mixer, mlp, norm, dropout=self.dropout)
        return StackConfig(self.d_model, (block,) * self.n_layers)

    def _of_model(self, config: LanguageModelConfig) -> Layers:
        """The stack of a language model, with its own positions and norms."""
        found = config.embedding.d_model
        if found != self.d_model:
            raise UsageError(f"model.encoder: {self.name} has width {found}, which d_model={self.d_model} does not set")
        stack = self._both_ways(config.stack)
        return Layers(stack, config.norm, config.embedding.position, config.init_std, config.embedding_std)

    def _mixer(self) -> MixerConfig:
        """A registered mixer of this width; heads and dropout as asked for, where it has such settings."""
        known = registry.mixers()
        if self.name not in known:
            raise UsageError(
                f"model.encoder: unknown encoder {self.name!r}{nearest(self.name, encoders())} ({OUTSIDE})"
            )
        fields = {field.name: field for field in dataclasses.fields(known[self.name])}
        given = {name: getattr(self, name) for name in ("n_heads", "dropout") if name in fields}
        said = {"d_model": self.d_model} | given
        missing = [name for name, field in fields.items() if name not in said and is_required(field)]
        if missing:
            raise UsageError(
                f"model.encoder: {self.name} must be told {', '.join(missing)}: it is no encoder by its name alone"
            )
        config = known[self.name](**said)
        if _on_meta(config).needs_memory:
            raise UsageError(f"model.encoder: {self.name} looks at a memory, and an encoder has none to give")
        return config

    def _both_ways(self, config: MixerConfig) -> MixerConfig:
        """Layer by layer in both directions, where it is asked for and a layer reads in one alone."""
        if not self.bidirectional:
            return config
        if isinstance(config, StackConfig):
            return config.replace(layers=tuple(map(self._both_ways, config.layers)))
        if isinstance(config, BlockConfig):
            return config.replace(mixer=self._both_ways(config.mixer))
        part = _on_meta(config)
        return BidirectionalConfig(config.d_model, config) if part.causal and not part.permutes else config

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

    def _places(self) -> PositionConfig | None:
        return None if self.position == "none" else PositionConfig(self.d_model, self.position, self.max_length)

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


def language_config(name: str, settings: dict[str, Any] | None = None) -> LanguageModelConfig | None:
    """The config of a registered language model that has vectors, as far as it has these settings; else None."""
    if name not in registry.names():
        return None
    known = registry.entry(name)
    size = "small" if "small" in known.sizes else next(iter(known.sizes))
    own = known.parameters_of_preset()
    config = known.config(EXAMPLE, size, **{key: value for key, value in (settings or {}).items() if key in own})
    return config if isinstance(config, LanguageModelConfig) else None


def encoders() -> list[str]:
    """Every name that an encoder may have: of a family, of a mixer, of a language model with vectors."""
    models = [name for name in registry.names() if language_config(name) is not None]
    return list(dict.fromkeys([*FAMILIES, *registry.mixers(), *models]))


def _on_meta(config: MixerConfig) -> Mixer:
    """The mixer without its numbers, to ask what it says of itself."""
    with torch.device("meta"):
        return config.build()
