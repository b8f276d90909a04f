"""Causal Transformers of other programs as settings of `gpt`: GPT-2, Llama and its kin, GPT-NeoX.

What each needs beside GPT-2: Llama grouped heads, RMSNorm, rotary positions (with a base, stretched) and a gated net;
Mistral a window; Qwen2 biases of the heads alone; Qwen3 norms of queries and keys; GPT-NeoX positions that turn a part
of each head, and layers whose two parts read the same stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.core.stack import BlockConfig, StackConfig
from regard.interop.architecture import Architecture, Names, Plan
from regard.interop.config_keys import ACTIVATIONS, Keys
from regard.interop.weight_table import HeadByHead, Heads, Line, Transposed, Turned, both
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.position import PositionConfig, RotaryConfig
from regard.mixers.attention import AttentionConfig
from regard.models.language import LanguageModelConfig

MODEL = "gpt"
EMBEDDING, BLOCK = "embedding.token_to_vector.weight", "stack.layers.{}."
FULL, SLIDING = "full_attention", "sliding_attention"
TRANSPOSED = Transposed()


def gpt2_table() -> list[Line]:
    layer = "transformer.h.{}."
    return [
        Line(EMBEDDING, "transformer.wte.weight"),
        Line("embedding.position.table.weight", "transformer.wpe.weight"),
        *both(BLOCK + "mixer_norm", layer + "ln_1"),
        *_transposed(BLOCK + "mixer.input_to_heads", layer + "attn.c_attn"),
        *_transposed(BLOCK + "mixer.heads_to_output", layer + "attn.c_proj"),
        *both(BLOCK + "mlp_norm", layer + "ln_2"),
        *_transposed(BLOCK + "mlp.input_to_hidden", layer + "mlp.c_fc"),
        *_transposed(BLOCK + "mlp.hidden_to_output", layer + "mlp.c_proj"),
        *both("norm", "transformer.ln_f"),
    ]


def gpt2(keys: Keys, _names: Names) -> Plan:
    d_model, n_layers = keys.count("n_embd", 768), keys.count("n_layer", 12)
    length = keys.count("n_positions", 1024)
    norm = NormConfig(d_model, epsilon=keys.take("layer_norm_epsilon", float, 1e-5))
    activation = keys.choice("activation_function", ACTIVATIONS, "gelu_new")
    mlp = MlpConfig(d_model, keys.count("n_inner", None) or 4 * d_model, activation)
    block = BlockConfig(d_model, AttentionConfig(d_model, keys.count("n_head", 12)), mlp, norm)
    keys.only("scale_attn_weights", True)
    keys.only("scale_attn_by_inverse_layer_idx", False)
    tied = keys.take("tie_word_embeddings", bool, True)
    places = PositionConfig(d_model, "learned", length)
    embedding = EmbeddingConfig(keys.count("vocab_size", 50257), d_model, places)
    config = LanguageModelConfig(embedding, StackConfig(d_model, (block,) * n_layers), norm, tied=tied)
    unused = ("transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias")
    return _plan(config, gpt2_table(), n_layers, "transformer.", "lm_head.weight", length, unused)


@dataclass(frozen=True)
class LlamaKind:
    """What tells the kin of Llama apart.

    qkv_bias, output_bias  whether the maps of attention have biases; None: as the config's attention_bias says.
    qk_norm                queries and keys are normed.
    mlp_bias               the config has such a key.
    head_dim               width of a head where the config does not say it, None for d_model / heads.
    window                 tells the window of each layer.
    """

    qkv_bias: bool | None = None
    output_bias: bool | None = None
    qk_norm: bool = False
    mlp_bias: bool = False
    head_dim: int | None = None
    window: str = ""


LLAMA = LlamaKind(mlp_bias=True)
MISTRAL = LlamaKind(qkv_bias=False, output_bias=False, window="all")
QWEN2 = LlamaKind(qkv_bias=True, output_bias=False, window="layers")
QWEN3 = LlamaKind(qk_norm=True, head_dim=128, window="layers")


def llama_table(heads: Heads, *, qkv_bias: bool, output_bias: bool, mlp_bias: bool, qk_norm: bool) -> list[Line]:
    layer = "model.layers.{}."
    attention = layer + "self_attn."
    turned = Turned(heads.width, heads.turned)
    norms = [
        Line(BLOCK + f"mixer.{ours}_norm.weight", attention + f"{theirs}_norm.weight", form=turned)
        for ours, theirs in (("query", "q"), ("key", "k"))
    ]
    joined = [attention + f"{part}_proj" for part in "qkv"]
    return [
        Line(EMBEDDING, "model.embed_tokens.weight"),
        Line(BLOCK + "mixer_norm.weight", layer + "input_layernorm.weight"),
        *both(BLOCK + "mixer.input_to_heads", *joined, form=heads, bias=qkv_bias),
        *(norms if qk_norm else []),
        *both(BLOCK + "mixer.heads_to_output", attention + "o_proj", bias=output_bias),
        Line(BLOCK + "mlp_norm.weight", layer + "post_attention_layernorm.weight"),
        *both(BLOCK + "mlp.input_to_gate", layer + "mlp.gate_proj", bias=mlp_bias),
        *both(BLOCK + "mlp.input_to_hidden", layer + "mlp.up_proj", bias=mlp_bias),
        *both(BLOCK + "mlp.hidden_to_output", layer + "mlp.down_proj", bias=mlp_bias),
        Line("norm.weight", "model.norm.weight"),
    ]


def llama(keys: Keys, _names: Names, kind: LlamaKind = LLAMA) -> Plan:
    d_model, n_layers = keys.count("hidden_size"), keys.count("num_hidden_layers")
    n_heads = keys.count("num_attention_heads")
    groups = keys.count("num_key_value_heads", None) or n_heads
    width = keys.count("head_dim", None) or kind.head_dim or d_model // n_heads
    epsilon = keys.take("rms_norm_eps", float, 1e-6)
    said = keys.take("attention_bias", bool, False) if kind.qkv_bias is None else False
    qkv_bias = said if kind.qkv_bias is None else kind.qkv_bias
    output_bias = said if kind.output_bias is None else kind.output_bias
    mlp_bias = keys.take("mlp_bias", bool, False) if kind.mlp_bias else False
    keys.only("rope_interleaved", False)
    length = keys.count("max_position_embeddings", 2048)
    norm = NormConfig(d_model, "rms", epsilon)
    activation = keys.choice("hidden_act", ACTIVATIONS, "silu")
    mlp = MlpConfig(d_model, keys.count("intermediate_size"), activation, gated=True, bias=mlp_bias)
    attention: dict[str, Any] = {"n_kv_heads": groups, "d_head": width, "position": "rotary", "bias": qkv_bias}
    attention |= {"rotary": rotary(keys, width), "output_bias": output_bias}
    attention |= {"qk_norm": kind.qk_norm, "qk_epsilon": epsilon}
    blocks = tuple(
        BlockConfig(d_model, AttentionConfig(d_model, n_heads, window=window, **attention), mlp, norm)
        for window in _windows(keys, kind, n_layers)
    )
    tied = keys.take("tie_word_embeddings", bool, False)
    embedding = EmbeddingConfig(keys.count("vocab_size"), d_model)
    config = LanguageModelConfig(embedding, StackConfig(d_model, blocks), norm, tied=tied)
    heads = Heads(n_heads, groups, width, width)
    table = llama_table(heads, qkv_bias=qkv_bias, output_bias=output_bias, mlp_bias=mlp_bias, qk_norm=kind.qk_norm)
    unused = ("model.layers.*.self_attn.rotary_emb.inv_freq",)
    return _plan(config, table, n_layers, "model.", "lm_head.weight", length, unused)


def _windows(keys: Keys, kind: LlamaKind, n_layers: int) -> list[int | None]:
    """How far each layer looks back; None for to the beginning."""
    if not kind.window:
        return [None] * n_layers
    default = 4096 if kind.window == "all" else None
    window = keys.take("sliding_window", int | None, default)
    if kind.window == "all":
        return [window] * n_layers
    first = keys.take("max_window_layers", int, n_layers)
    used = keys.take("use_sliding_window", bool, False) and window is not None
    kinds = keys.take("layer_types", tuple[str, ...] | None, None)
    kinds = kinds or [SLIDING if used and number >= first else FULL for number in range(n_layers)]
    if len(kinds) != n_layers or not set(kinds) <= {FULL, SLIDING} or (SLIDING in kinds and not used):
        raise keys.refused("layer_types", f"does not say of {n_layers} layers which look through the sliding_window")
    return [window if one == SLIDING else None for one in kinds]


def rotary(keys: Keys, width: int, share: float = 1.0) -> RotaryConfig:
    """rope_theta and rope_scaling, or rope_parameters, which newer configs have in their place."""
    inner = keys.inner("rope_parameters")
    base = keys.take("rope_theta", float, 10000.0)
    scaling = keys.inner("rope_scaling")
    if inner is not None:
        base, share = inner.take("rope_theta", float, base), inner.take("partial_rotary_factor", float, share)
        if scaling is not None:  # said twice, for programs of before and of now
            inner.mark(key for key, value in scaling.content.items() if inner.content.get(key) == value)
        scaling = scaling or inner
    turned = int(width * share)
    rotated: dict[str, Any] = {"base": base, "width": None if turned == width else turned}
    if scaling is None:
        return RotaryConfig(**rotated)
    words = {"default": "none", "linear": "linear", "llama3": "llama3"}
    named = "rope_type" if "rope_type" in scaling.content else "type"
    form = scaling.choice(named, words, "default")
    scaling.take("type", str, "")
    if form != "none":
        rotated["factor"] = scaling.take("factor", float)
    if form == "llama3":
        rotated |= {name: scaling.take(f"{name}_freq_factor", float) for name in ("low", "high")}
        rotated["trained"] = scaling.count("original_max_position_embeddings")
    for one in {id(part): part for part in (inner, scaling) if part is not None}.values():
        one.mark(["rope_theta", "partial_rotary_factor", "rope_type"])
        one.done()
    return RotaryConfig(scaling=form, **rotated)


def neox_table(heads: Heads) -> list[Line]:
    layer = "gpt_neox.layers.{}."
    return [
        Line(EMBEDDING, "gpt_neox.embed_in.weight"),
        *both(BLOCK + "mixer_norm", layer + "input_layernorm"),
        *both(BLOCK + "mixer.input_to_heads", layer + "attention.query_key_value", form=HeadByHead(heads)),
        *both(BLOCK + "mixer.heads_to_output", layer + "attention.dense"),
        *both(BLOCK + "mlp_norm", layer + "post_attention_layernorm"),
        *both(BLOCK + "mlp.input_to_hidden", layer + "mlp.dense_h_to_4h"),
        *both(BLOCK + "mlp.hidden_to_output", layer + "mlp.dense_4h_to_h"),
        *both("norm", "gpt_neox.final_layer_norm"),
    ]


def gpt_neox(keys: Keys, _names: Names) -> Plan:
    d_model, n_layers = keys.count("hidden_size"), keys.count("num_hidden_layers")
    n_heads, length = keys.count("num_attention_heads"), keys.count("max_position_embeddings", 2048)
    keys.only("attention_bias", True)
    keys.mark(["is_decoder"])  # it always is one
    width = d_model // n_heads
    share = keys.take("partial_rotary_factor", float, keys.take("rotary_pct", float, 0.25))
    keys.content.setdefault("rope_theta", keys.take("rotary_emb_base", float, 10000.0))
    turns = rotary(keys, width, share)
    norm = NormConfig(d_model, epsilon=keys.take("layer_norm_eps", float, 1e-5))
    mlp = MlpConfig(d_model, keys.count("intermediate_size"), keys.choice("hidden_act", ACTIVATIONS, "gelu"))
    parallel = keys.take("use_parallel_residual", bool, True)
    attention = AttentionConfig(d_model, n_heads, position="rotary", rotary=turns)
    block = BlockConfig(d_model, attention, mlp, norm, placement="parallel" if parallel else "before")
    tied = keys.take("tie_word_embeddings", bool, False)
    embedding = EmbeddingConfig(keys.count("vocab_size"), d_model)
    config = LanguageModelConfig(embedding, StackConfig(d_model, (block,) * n_layers), norm, tied=tied)
    table = neox_table(Heads(n_heads, n_heads, width, turns.width or width))
    unused = [f"gpt_neox.layers.*.attention.{name}" for name in ("bias", "masked_bias", "rotary_emb.inv_freq")]
    return _plan(config, table, n_layers, "gpt_neox.", "embed_out.weight", length, unused)


def _transposed(ours: str, theirs: str) -> list[Line]:
    weight, bias = both(ours, theirs)
    return [Line(weight.ours, *weight.theirs, form=TRANSPOSED), bias]


def _plan(
    config: LanguageModelConfig,
    table: list[Line],
    n_layers: int,
    prefix: str,
    head: str,
    length: int,
    unused: Any,
) -> Plan:
    """head: their name of the map to logits, which a tied model may have as a copy of the embedding."""
    copies = {head: table[0].theirs[0]} if config.tied else {}
    lines = table if config.tied else [*table, Line("head.weight", head)]
    return Plan(MODEL, config, lines, n_layers, prefix, copies, tuple(unused), length)


ARCHITECTURES = (
    Architecture("gpt2", gpt2, "GPT-2"),
    Architecture("llama", llama, "Llama 1, 2, 3 and SmolLM"),
    Architecture("mistral", lambda keys, names: llama(keys, names, MISTRAL), "Mistral, with its window"),
    Architecture("qwen2", lambda keys, names: llama(keys, names, QWEN2), "Qwen2 and Qwen2.5"),
    Architecture("qwen3", lambda keys, names: llama(keys, names, QWEN3), "Qwen3"),
    Architecture("gpt_neox", gpt_neox, "GPT-NeoX and Pythia"),
)
