"""T5 as a setting of `transformer`: learned numbers for distances, which all layers of a side have as one, scores that
are not scaled, RMSNorm before each part, and no bias anywhere.

T5 1.0 has one table for both sides and the logits, of which the latter are divided by sqrt(d_model): that is a part of
the last norm. T5 1.1 has a matrix of its own for the logits, and a gated net.
"""

from __future__ import annotations

from dataclasses import dataclass

from regard.core.stack import BlockConfig, StackConfig
from regard.interop.architecture import Architecture, Names, Plan
from regard.interop.config_keys import Keys
from regard.interop.translation_models import MODEL, SEARCH, TABLE
from regard.interop.weight_table import SAME, Heads, Line, Scaled
from regard.layers.distance import RelativeConfig
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.cross import CrossAttentionConfig
from regard.models.encoder import EncoderConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.language import LanguageModelConfig

SHARED, BIAS = "shared.weight", "mixer.distance_bias"
NETS = {"relu": ("relu", False), "gated-gelu": ("gelu_tanh", True), "gated-silu": ("silu", True)}


@dataclass(frozen=True)
class Sizes:
    """What a config says. width: of a head."""

    d_model: int
    n_heads: int
    width: int
    mlp: MlpConfig
    relative: RelativeConfig
    norm: NormConfig

    def read(self, *, causal: bool, mlp: bool) -> BlockConfig:
        """A layer that looks at its own text."""
        attention = AttentionConfig(
            self.d_model,
            self.n_heads,
            d_head=self.width,
            causal=causal,
            score="dot",
            position="relative",
            bias=False,
            relative=self.relative,
        )
        return BlockConfig(self.d_model, attention, self.mlp if mlp else None, self.norm)

    def look(self) -> BlockConfig:
        """A layer that looks at the source."""
        attention = CrossAttentionConfig(self.d_model, self.n_heads, d_head=self.width, score="dot", bias=False)
        return BlockConfig(self.d_model, attention, self.mlp, self.norm)


def t5(keys: Keys, _names: Names) -> Plan:
    d_model, layers = keys.count("d_model"), keys.count("num_layers")
    written = keys.count("num_decoder_layers", None) or layers
    tied = keys.take("tie_word_embeddings", bool, True)
    scaled = keys.take("scale_decoder_outputs", bool, tied)
    sizes = _sizes(keys, d_model)
    embedding = EmbeddingConfig(keys.count("vocab_size"), d_model)
    keys.only("is_decoder", False)
    keys.mark([*SEARCH, "dropout_rate", "initializer_factor", "dense_act_fn", "is_gated_act", "architectures"])
    reader = StackConfig(d_model, (sizes.read(causal=False, mlp=True),) * layers, (BIAS,))
    writer = StackConfig(d_model, (sizes.read(causal=True, mlp=False), sizes.look()) * written, (BIAS,))
    config = EncoderDecoderConfig(
        EncoderConfig(embedding, reader, sizes.norm),
        LanguageModelConfig(embedding, writer, sizes.norm, tied=tied),
        shared=True,
    )
    last = Scaled(d_model**-0.5) if scaled else SAME
    table = [
        Line(f"encoder.{TABLE}", SHARED),
        *t5_table(sizes, layers, written),
        Line("encoder.norm.weight", "encoder.final_layer_norm.weight"),
        Line("decoder.norm.weight", "decoder.final_layer_norm.weight", form=last),
        *([] if tied else [Line("decoder.head.weight", "lm_head.weight")]),
    ]
    copies = [f"{side}.embed_tokens.weight" for side in ("encoder", "decoder")] + (["lm_head.weight"] if tied else [])
    # Old files have a table of distances to the source, which nothing reads.
    unused = ("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",)
    length = keys.count("n_positions", 512)
    return Plan(MODEL, config, table, 0, "", dict.fromkeys(copies, SHARED), unused, length)


def t5_table(sizes: Sizes, n_encoder: int, n_decoder: int) -> list[Line]:
    """All layers, written out: one of their decoder is two of ours."""
    lines = []
    for number in range(n_encoder):
        ours, theirs = f"encoder.stack.layers.{number}.", f"encoder.block.{number}.layer."
        lines += [*_within(sizes, ours, theirs), *_net(sizes, ours, f"{theirs}1.")]
    for number in range(n_decoder):
        first, second = (f"decoder.stack.layers.{2 * number + part}." for part in (0, 1))
        theirs = f"decoder.block.{number}.layer."
        lines += [*_within(sizes, first, theirs), *_across(second, f"{theirs}1."), *_net(sizes, second, f"{theirs}2.")]
    biases = ("encoder", "decoder")
    bias = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return lines + [Line(f"{side}.stack.layers.0.{BIAS}.bucket_to_heads.weight", f"{side}.{bias}") for side in biases]


def _within(sizes: Sizes, ours: str, theirs: str) -> list[Line]:
    heads = Heads(sizes.n_heads, sizes.n_heads, sizes.width)
    attention = f"{theirs}0.SelfAttention."
    return [
        Line(ours + "mixer_norm.weight", f"{theirs}0.layer_norm.weight"),
        Line(ours + "mixer.input_to_heads.weight", *(f"{attention}{part}.weight" for part in "qkv"), form=heads),
        Line(ours + "mixer.heads_to_output.weight", attention + "o.weight"),
    ]


def _across(ours: str, theirs: str) -> list[Line]:
    parts = {"input_to_queries": "q", "memory_to_keys": "k", "memory_to_values": "v", "heads_to_output": "o"}
    return [
        Line(ours + "mixer_norm.weight", theirs + "layer_norm.weight"),
        *(Line(f"{ours}mixer.{own}.weight", f"{theirs}EncDecAttention.{part}.weight") for own, part in parts.items()),
    ]


def _net(sizes: Sizes, ours: str, theirs: str) -> list[Line]:
    gated = {"input_to_gate": "wi_0", "input_to_hidden": "wi_1", "hidden_to_output": "wo"}
    maps = gated if sizes.mlp.gated else {"input_to_hidden": "wi", "hidden_to_output": "wo"}
    return [
        Line(ours + "mlp_norm.weight", theirs + "layer_norm.weight"),
        *(Line(f"{ours}mlp.{own}.weight", f"{theirs}DenseReluDense.{part}.weight") for own, part in maps.items()),
    ]


def _sizes(keys: Keys, d_model: int) -> Sizes:
    activation, gated = keys.choice("feed_forward_proj", NETS, "relu")
    relative = RelativeConfig(
        keys.count("relative_attention_num_buckets", 32), keys.count("relative_attention_max_distance", 128)
    )
    return Sizes(
        d_model,
        keys.count("num_heads"),
        keys.count("d_kv"),
        MlpConfig(d_model, keys.count("d_ff"), activation, gated=gated, bias=False),
        relative,
        NormConfig(d_model, "rms", keys.take("layer_norm_epsilon", float, 1e-6)),
    )


ARCHITECTURES = (Architecture("t5", t5, "T5 1.0 and 1.1", has_encoder=True),)
