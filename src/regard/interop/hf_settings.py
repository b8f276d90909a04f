"""Our settings as the config.json of other programs: the keys of the import, read backwards.

What is written is taken for said only if the import makes the same settings of it again: what a config of theirs cannot
say is found by comparing the two (`hf_plan.py`), not by a list of what is supported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.core.config import Config
from regard.core.stack import BlockConfig, StackConfig
from regard.interop.causal_models import FULL, SLIDING
from regard.layers.embedding import EmbeddingConfig
from regard.layers.mlp import MlpConfig
from regard.layers.norm import NormConfig
from regard.layers.position import RotaryConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.mamba import MambaConfig
from regard.mixers.ssd import SsdConfig
from regard.models.language import LanguageModelConfig

WORDS = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "silu": "silu"}
Settings = dict[str, Any]


@dataclass(frozen=True)
class Attentive:
    """A stack of attention as all of these have it. length: positions. block: the first of its layers."""

    embedding: EmbeddingConfig
    blocks: tuple[BlockConfig, ...]
    attention: AttentionConfig
    mlp: MlpConfig
    norm: NormConfig
    length: int
    tied: bool

    @property
    def windows(self) -> list[int | None]:
        return [block.mixer.window for block in self.blocks if isinstance(block.mixer, AttentionConfig)]

    @property
    def sizes(self) -> Settings:
        """As Llama's kin, BERT's and GPT-NeoX call them."""
        return {
            "vocab_size": self.embedding.vocab_size,
            "hidden_size": self.embedding.d_model,
            "intermediate_size": self.mlp.d_hidden,
            "num_hidden_layers": len(self.blocks),
            "num_attention_heads": self.attention.n_heads,
            "max_position_embeddings": self.length,
            "tie_word_embeddings": self.tied,
        }


def attentive(config: Config, length: int) -> Attentive | None:
    """The measures of a language model that is a stack of attention with nets; None where it is not one."""
    if not isinstance(config, LanguageModelConfig) or not isinstance(config.stack, StackConfig):
        return None
    return measured(config.embedding, config.stack, length, config.tied)


def measured(embedding: Config, stack: Config | None, length: int, tied: bool) -> Attentive | None:
    """The same of its parts."""
    if not isinstance(embedding, EmbeddingConfig) or not isinstance(stack, StackConfig):
        return None
    blocks = tuple(block for block in stack.layers if isinstance(block, BlockConfig))
    if len(blocks) < len(stack.layers):
        return None
    first = blocks[0]
    mlp = next((block.mlp for block in blocks if isinstance(block.mlp, MlpConfig)), None)
    if not isinstance(first.mixer, AttentionConfig) or mlp is None or not isinstance(first.norm, NormConfig):
        return None
    places = embedding.position
    length = places.max_length if places is not None and places.max_length is not None else length
    return Attentive(embedding, blocks, first.mixer, mlp, first.norm, length, tied)


def gpt2(config: Config, length: int, _ids: Settings) -> Settings | None:
    found = attentive(config, length)
    return found and {
        "vocab_size": found.embedding.vocab_size,
        "n_embd": found.embedding.d_model,
        "n_layer": len(found.blocks),
        "n_head": found.attention.n_heads,
        "n_positions": found.length,
        "n_inner": found.mlp.d_hidden,
        "activation_function": WORDS.get(found.mlp.activation, "gelu_new"),
        "layer_norm_epsilon": found.norm.epsilon,
        "tie_word_embeddings": found.tied,
    }


def llama(config: Config, length: int, _ids: Settings) -> Settings | None:
    found = attentive(config, length)
    if found is None:
        return None
    bias = {"attention_bias": found.attention.bias, "mlp_bias": found.mlp.bias}
    return _of_llama(found) | bias


def mistral(config: Config, length: int, _ids: Settings) -> Settings | None:
    found = attentive(config, length)
    return found and _of_llama(found) | {"sliding_window": found.attention.window}


def qwen(config: Config, length: int, _ids: Settings) -> Settings | None:
    found = attentive(config, length)
    if found is None:
        return None
    window = next((window for window in found.windows if window is not None), None)
    kinds = [FULL if one is None else SLIDING for one in found.windows]
    windows = {"sliding_window": window, "use_sliding_window": window is not None, "layer_types": kinds}
    return _of_llama(found) | windows | {"max_window_layers": len(kinds)}


def qwen3(config: Config, length: int, ids: Settings) -> Settings | None:
    found = attentive(config, length)
    said = qwen(config, length, ids)
    return None if found is None or said is None else said | {"attention_bias": found.attention.bias}


def gemma3(config: Config, length: int, _ids: Settings) -> Settings | None:
    found = attentive(config, length)
    if found is None:
        return None
    near = next((window for window in found.windows if window is not None), 4096)
    turns = dict.fromkeys((FULL, SLIDING), found.attention.rotary)
    for block, window in zip(found.blocks, found.windows, strict=True):
        if isinstance(block.mixer, AttentionConfig):
            turns[FULL if window is None else SLIDING] = block.mixer.rotary
    said = _of_llama(found)
    del said["hidden_act"], said["rope_theta"]
    said.pop("rope_scaling", None)
    return said | {
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": found.attention.width,  # a part of the norm of queries, where it differs
        "sliding_window": near,
        "layer_types": [FULL if window is None else SLIDING for window in found.windows],
        "rope_parameters": {kind: _turning(one) for kind, one in turns.items()},
    }


def gpt_neox(config: Config, length: int, _ids: Settings) -> Settings | None:
    found = attentive(config, length)
    if found is None:
        return None
    share = (found.attention.rotary.width or found.attention.width) / found.attention.width
    turns = found.attention.rotary
    return found.sizes | {
        "hidden_act": WORDS.get(found.mlp.activation, "gelu"),
        "layer_norm_eps": found.norm.epsilon,
        "use_parallel_residual": found.blocks[0].placement == "parallel",
        "rotary_pct": share,
        "rotary_emb_base": turns.base,
        "rope_parameters": _turning(turns) | {"partial_rotary_factor": share},
    }


def mamba(config: Config, _length: int, _ids: Settings) -> Settings | None:
    mixer = _first_mixer(config)
    if not isinstance(config, LanguageModelConfig) or not isinstance(mixer, MambaConfig):
        return None
    inner = mixer.expand * mixer.d_model
    rank = mixer.rank if mixer.rank is not None else "auto"
    return _of_state_space(config, mixer) | {"intermediate_size": inner, "time_step_rank": rank}


def mamba2(config: Config, _length: int, _ids: Settings) -> Settings | None:
    mixer = _first_mixer(config)
    if not isinstance(config, LanguageModelConfig) or not isinstance(mixer, SsdConfig):
        return None
    heads = mixer.expand * mixer.d_model // mixer.d_head
    own = {"num_heads": heads, "head_dim": mixer.d_head, "n_groups": mixer.n_groups, "chunk_size": mixer.chunk}
    return _of_state_space(config, mixer) | own


def _of_llama(found: Attentive) -> Settings:
    return (
        found.sizes
        | {
            "num_key_value_heads": found.attention.groups,
            "head_dim": found.attention.width,
            "rms_norm_eps": found.norm.epsilon,
            "hidden_act": WORDS.get(found.mlp.activation, "silu"),
        }
        | _turns(found.attention.rotary)
    )


def _turns(rotary: RotaryConfig) -> Settings:
    """Twice, as older programs read it and as newer ones do: who does not find a base takes the usual one."""
    told = _turning(rotary)
    old = {key: value for key, value in told.items() if key != "rope_theta"}
    scaling = {"rope_scaling": old} if rotary.scaling != "none" else {}
    return {"rope_theta": rotary.base, "rope_parameters": told} | scaling


def _turning(rotary: RotaryConfig) -> Settings:
    said: Settings = {"rope_type": "default" if rotary.scaling == "none" else rotary.scaling, "rope_theta": rotary.base}
    if rotary.scaling != "none":
        said["factor"] = rotary.factor
    if rotary.scaling == "llama3":
        said |= {"low_freq_factor": rotary.low, "high_freq_factor": rotary.high}
        said["original_max_position_embeddings"] = rotary.trained
    return said


def _of_state_space(config: LanguageModelConfig, mixer: MambaConfig | SsdConfig) -> Settings:
    assert isinstance(config.stack, StackConfig)
    return {
        "vocab_size": config.embedding.vocab_size,
        "hidden_size": mixer.d_model,
        "num_hidden_layers": len(config.stack.layers),
        "state_size": mixer.d_state,
        "expand": mixer.expand,
        "conv_kernel": mixer.window,
        "tie_word_embeddings": config.tied,
        "layer_norm_epsilon": config.norm.epsilon if isinstance(config.norm, NormConfig) else 1e-5,
    }


def _first_mixer(config: Config) -> Config | None:
    stack = config.stack if isinstance(config, LanguageModelConfig) else None
    first = stack.layers[0] if isinstance(stack, StackConfig) else None
    return first.mixer if isinstance(first, BlockConfig) else None
