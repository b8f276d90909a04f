"""Transformers of other programs that look both ways, as settings of `bert`: BERT, MiniLM, RoBERTa, DistilBERT.

With the head that fills in masks they are masked language models; without it sentence encoders, whose vectors are
pooled. All text is of the first segment, as with us there is one; the pooler, a head of its own, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.core.stack import BlockConfig, StackConfig
from regard.interop.architecture import Architecture, Names, Plan
from regard.interop.config_keys import ACTIVATIONS, Keys
from regard.interop.weight_table import Heads, Line, Places, both
from regard.layers.embedding import EmbeddingConfig
from regard.layers.linear import Activation
from regard.layers.mlp import MlpConfig, TransformConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig
from regard.mixers.attention import AttentionConfig
from regard.models.language import LanguageModelConfig
from regard.models.sentence_encoder import SentenceEncoderConfig

MODEL = "bert"
BLOCK = "stack.layers.{}."


@dataclass(frozen=True)
class Spelling:
    """How one of these architectures calls its parts.

    prefix             of all but the head. layer: a layer.
    heads              its maps to queries, keys and values, and output, the one behind them.
    mixer_norm, ...    its other parts.
    dense, norm, bias  of the head: the map, the norm, and the bias of the logits.
    decoder            the map to logits, whose weight and bias may be copies.
    """

    prefix: str
    layer: str
    heads: tuple[str, str, str]
    output: str
    mixer_norm: str
    hidden: str
    back: str
    mlp_norm: str
    dense: str
    norm: str
    bias: str
    decoder: str


LAYER_OF_BERT: dict[str, Any] = {
    "heads": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "output": "attention.output.dense",
    "mixer_norm": "attention.output.LayerNorm",
    "hidden": "intermediate.dense",
    "back": "output.dense",
    "mlp_norm": "output.LayerNorm",
}
HEAD_OF_BERT = "cls.predictions."
BERT = Spelling(
    prefix="bert.",
    layer="bert.encoder.layer.{}.",
    **LAYER_OF_BERT,
    dense=HEAD_OF_BERT + "transform.dense",
    norm=HEAD_OF_BERT + "transform.LayerNorm",
    bias=HEAD_OF_BERT + "bias",
    decoder=HEAD_OF_BERT + "decoder",
)
ROBERTA = Spelling(
    prefix="roberta.",
    layer="roberta.encoder.layer.{}.",
    **LAYER_OF_BERT,
    dense="lm_head.dense",
    norm="lm_head.layer_norm",
    bias="lm_head.bias",
    decoder="lm_head.decoder",
)
DISTILBERT = Spelling(
    prefix="distilbert.",
    layer="distilbert.transformer.layer.{}.",
    heads=("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    output="attention.out_lin",
    mixer_norm="sa_layer_norm",
    hidden="ffn.lin1",
    back="ffn.lin2",
    mlp_norm="output_layer_norm",
    dense="vocab_transform",
    norm="vocab_layer_norm",
    bias="vocab_projector.bias",
    decoder="vocab_projector",
)


def encoder_table(spelling: Spelling, heads: Heads, places: Places) -> list[Line]:
    """All but the head."""
    embeddings, layer = spelling.prefix + "embeddings.", spelling.layer
    rows = [embeddings + "position_embeddings.weight"]
    rows += [embeddings + "token_type_embeddings.weight"] if places.segments else []
    return [
        Line("embedding.token_to_vector.weight", embeddings + "word_embeddings.weight"),
        Line("embedding.position.table.weight", *rows, form=places),
        *both("embedding.norm", embeddings + "LayerNorm"),
        *both(BLOCK + "mixer.input_to_heads", *(layer + name for name in spelling.heads), form=heads),
        *both(BLOCK + "mixer.heads_to_output", layer + spelling.output),
        *both(BLOCK + "mixer_norm", layer + spelling.mixer_norm),
        *both(BLOCK + "mlp.input_to_hidden", layer + spelling.hidden),
        *both(BLOCK + "mlp.hidden_to_output", layer + spelling.back),
        *both(BLOCK + "mlp_norm", layer + spelling.mlp_norm),
    ]


def head_table(spelling: Spelling) -> list[Line]:
    """The net that fills in masks."""
    return [
        *both("head.transform.vector_to_hidden", spelling.dense),
        *both("head.transform.norm", spelling.norm),
        Line("head.bias", spelling.bias),
    ]


@dataclass(frozen=True)
class Sizes:
    """What the config of such a model says."""

    vocab_size: int
    d_model: int
    d_hidden: int
    n_layers: int
    n_heads: int
    length: int
    activation: Activation
    epsilon: float
    tied: bool


def bert(keys: Keys, names: Names) -> Plan:
    return _plan(BERT, _sizes(keys), Places(segments=keys.count("type_vocab_size", 2)), names)


def roberta(keys: Keys, names: Names) -> Plan:
    # Positions are counted from the row after that of padding.
    first = keys.take("pad_token_id", int, 1) + 1
    return _plan(ROBERTA, _sizes(keys), Places(first, keys.count("type_vocab_size", 2)), names)


def _sizes(keys: Keys) -> Sizes:
    keys.only("position_embedding_type", "absolute")
    keys.only("is_decoder", False)
    return Sizes(
        keys.count("vocab_size"),
        keys.count("hidden_size", 768),
        keys.count("intermediate_size", 3072),
        keys.count("num_hidden_layers", 12),
        keys.count("num_attention_heads", 12),
        keys.count("max_position_embeddings", 512),
        keys.choice("hidden_act", ACTIVATIONS, "gelu"),
        keys.take("layer_norm_eps", float, 1e-12),
        keys.take("tie_word_embeddings", bool, True),
    )


def distilbert(keys: Keys, names: Names) -> Plan:
    keys.take("sinusoidal_pos_embds", bool, False)  # how the table, which is in the file, was begun
    keys.only("tie_weights_", True)
    sizes = Sizes(
        keys.count("vocab_size"),
        keys.count("dim", 768),
        keys.count("hidden_dim", 3072),
        keys.count("n_layers", 6),
        keys.count("n_heads", 12),
        keys.count("max_position_embeddings", 512),
        keys.choice("activation", ACTIVATIONS, "gelu"),
        1e-12,
        keys.take("tie_word_embeddings", bool, True),
    )
    return _plan(DISTILBERT, sizes, Places(), names)


def _plan(spelling: Spelling, sizes: Sizes, places: Places, names: Names) -> Plan:
    width, length = sizes.d_model, sizes.length - places.first
    norm = NormConfig(width, epsilon=sizes.epsilon)
    mlp = MlpConfig(width, sizes.d_hidden, sizes.activation)
    attention = AttentionConfig(width, sizes.n_heads, causal=False)
    block = BlockConfig(width, attention, mlp, norm, placement="after")
    embedding = EmbeddingConfig(sizes.vocab_size, width, PositionConfig(width, "learned", length), norm=norm)
    stack = StackConfig(width, (block,) * sizes.n_layers)
    heads = Heads(sizes.n_heads, sizes.n_heads, attention.width)
    table = encoder_table(spelling, heads, places)
    unused = [spelling.prefix + "embeddings.position_ids", spelling.prefix + "pooler.*", "cls.seq_relationship.*"]
    lost = ["the pooler"] if any("pooler." in name for name in names) else []
    config: LanguageModelConfig = SentenceEncoderConfig(embedding, stack)
    copies = {}
    if f"{spelling.dense}.weight" in names:
        config = LanguageModelConfig(
            embedding, stack, None, TransformConfig(width, norm, sizes.activation), tied=sizes.tied, head_bias=True
        )
        table += head_table(spelling)
        matrix = f"{spelling.decoder}.weight"
        copies = {f"{spelling.decoder}.bias": spelling.bias} if spelling.bias != f"{spelling.decoder}.bias" else {}
        if sizes.tied:
            copies[matrix] = table[0].theirs[0]
        else:
            table.append(Line("head.weight", matrix))
    return Plan(MODEL, config, table, sizes.n_layers, spelling.prefix, copies, tuple(unused), length, lost)


ARCHITECTURES = (
    Architecture("bert", bert, "BERT and MiniLM"),
    Architecture("roberta", roberta, "RoBERTa"),
    Architecture("distilbert", distilbert, "DistilBERT"),
)
