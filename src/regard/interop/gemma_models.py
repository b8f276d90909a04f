"""Gemma 3 as a setting of `gpt`: near and far layers with bases of their own, norms around each part.

Embeddings are scaled, and norms kept as their distance from one. Scores are divided by the root of a number of the
config and not of the width of a head: the difference is a part of the norm of queries.
"""

from __future__ import annotations

from typing import Any

from regard.core.stack import BlockConfig, StackConfig
from regard.interop.architecture import Architecture, Names, Plan
from regard.interop.causal_models import BLOCK, EMBEDDING, FULL, MODEL, SLIDING, rotary
from regard.interop.config_keys import ACTIVATIONS, Keys
from regard.interop.weight_table import Heads, Line, OneMore, Turned, both
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.position import RotaryConfig
from regard.mixers.attention import AttentionConfig
from regard.models.language import LanguageModelConfig

PATTERN = 6  # every sixth layer looks to the beginning
NORMS = {
    "mixer_norm": "input_layernorm",
    "mixer_after": "post_attention_layernorm",
    "mlp_norm": "pre_feedforward_layernorm",
    "mlp_after": "post_feedforward_layernorm",
}


def gemma_table(heads: Heads, scale: float) -> list[Line]:
    """scale: of scores, beside that of their width."""
    layer, one = "model.layers.{}.", OneMore()
    attention = layer + "self_attn."
    norm = {"query": ("q", OneMore(scale)), "key": ("k", one)}
    return [
        Line(EMBEDDING, "model.embed_tokens.weight"),
        *(Line(BLOCK + f"{ours}.weight", layer + f"{theirs}.weight", form=one) for ours, theirs in NORMS.items()),
        *both(BLOCK + "mixer.input_to_heads", *(attention + f"{part}_proj" for part in "qkv"), form=heads, bias=False),
        *(
            Line(
                BLOCK + f"mixer.{ours}_norm.weight",
                attention + f"{theirs}_norm.weight",
                form=Turned(heads.width, heads.turned, form),
            )
            for ours, (theirs, form) in norm.items()
        ),
        *both(BLOCK + "mixer.heads_to_output", attention + "o_proj", bias=False),
        *both(BLOCK + "mlp.input_to_gate", layer + "mlp.gate_proj", bias=False),
        *both(BLOCK + "mlp.input_to_hidden", layer + "mlp.up_proj", bias=False),
        *both(BLOCK + "mlp.hidden_to_output", layer + "mlp.down_proj", bias=False),
        Line("norm.weight", "model.norm.weight", form=one),
    ]


def gemma3(keys: Keys, _names: Names) -> Plan:
    d_model, n_layers = keys.count("hidden_size"), keys.count("num_hidden_layers")
    n_heads, width = keys.count("num_attention_heads"), keys.count("head_dim", 256)
    groups = keys.count("num_key_value_heads", None) or n_heads
    norm = NormConfig(d_model, "rms", keys.take("rms_norm_eps", float, 1e-6))
    activation = keys.choice("hidden_activation", ACTIVATIONS, "gelu_pytorch_tanh")
    mlp = MlpConfig(d_model, keys.count("intermediate_size"), activation, gated=True, bias=False)
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        keys.only(key, None)
    for key in ("attention_bias", "use_bidirectional_attention"):
        keys.only(key, False)
    keys.only("tie_word_embeddings", True)
    window, length = keys.count("sliding_window", 4096), keys.count("max_position_embeddings", 131072)
    turns = _turns(keys, width)
    attention: dict[str, Any] = {"n_kv_heads": groups, "d_head": width, "position": "rotary", "bias": False}
    attention |= {"qk_norm": True, "qk_epsilon": norm.epsilon}
    blocks = []
    for kind in _kinds(keys, n_layers):
        near = window if kind == SLIDING else None
        mixer = AttentionConfig(d_model, n_heads, window=near, rotary=turns[kind], **attention)
        blocks.append(BlockConfig(d_model, mixer, mlp, norm, placement="around"))
    embedding = EmbeddingConfig(keys.count("vocab_size"), d_model, scaled=True)
    config = LanguageModelConfig(embedding, StackConfig(d_model, tuple(blocks)), norm, tied=True)
    scale = (width / keys.take("query_pre_attn_scalar", float, 256.0)) ** 0.5
    table = gemma_table(Heads(n_heads, groups, width, width), scale)
    copies = {"lm_head.weight": "model.embed_tokens.weight"}
    return Plan(MODEL, config, table, n_layers, "model.", copies, length=length)


def _kinds(keys: Keys, n_layers: int) -> list[str]:
    """Whether each layer looks through a window or to the beginning."""
    kinds = keys.take("layer_types", tuple[str, ...] | None, None)
    every = keys.count("sliding_window_pattern", keys.count("_sliding_window_pattern", PATTERN))
    found = list(kinds or (FULL if (number + 1) % every == 0 else SLIDING for number in range(n_layers)))
    if len(found) != n_layers or not set(found) <= {FULL, SLIDING}:
        raise keys.refused("layer_types", f"does not say of {n_layers} layers which are {SLIDING}, which {FULL}")
    return found


def _turns(keys: Keys, width: int) -> dict[str, RotaryConfig]:
    """How fast positions turn in layers of each kind."""
    inner = keys.content.get("rope_parameters")
    if isinstance(inner, dict) and FULL in inner:
        keys.mark(["rope_parameters"])
        inside = Keys(inner, f"{keys.where}: rope_parameters", frozenset())
        found = {kind: rotary(Keys({"rope_parameters": inside.take(kind, Any)}, inside.where), width) for kind in KINDS}
        inside.done()
        return found
    near = RotaryConfig(keys.take("rope_local_base_freq", float, 10000.0))
    keys.content.setdefault("rope_theta", 1e6)
    return {FULL: rotary(keys, width), SLIDING: near}


KINDS = (FULL, SLIDING)
ARCHITECTURES = (Architecture("gemma3_text", gemma3, "Gemma 3, text alone"),)
