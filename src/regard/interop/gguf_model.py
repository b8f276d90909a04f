"""Models of GGUF files: their keys as the config that transformers would have, their tensors by its names.

From there on they are read like a folder. llama.cpp keeps the norms of Gemma whole and the rows of Llama's queries and
keys in pairs of neighbours; both are undone here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from torch import Tensor

from regard.errors import CheckpointError, nearest
from regard.interop.gguf_file import GgufFile, Renamed
from regard.interop.gguf_gpt2 import GPT2
from regard.interop.weight_table import Turned

LAYER = re.compile(r"blk\.(\d+)\.(.+)\.(weight|bias)")
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
BOTH = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
NAMES = {
    "llama": BOTH | {"ffn_norm": "post_attention_layernorm"},
    "gemma3": BOTH
    | {
        "attn_q_norm": "self_attn.q_norm",
        "attn_k_norm": "self_attn.k_norm",
        "post_attention_norm": "post_attention_layernorm",
        "ffn_norm": "pre_feedforward_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm",
    },
}
# Their key, without the name of the architecture, and that of transformers.
KEYS = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
    "rope.freq_base": "rope_theta",
}
INERT = ("attention.value_length", "vocab_size", "rope.dimension_count")
OUTPUT = "output.weight"
TYPES = {"llama": "llama", "gemma3": "gemma3_text", "gpt2": "gpt2"}
KEYS_OF = {"llama": KEYS, "gemma3": KEYS, "gpt2": GPT2.keys}


def config_of(file: GgufFile) -> dict[str, Any]:
    """The config.json that says what a file says."""
    kind = str(file.facts.get("general.architecture", ""))
    if kind not in TYPES:
        raise CheckpointError(f"{file.path}: general.architecture: {kind[:60]!r} is not known{nearest(kind, TYPES)}")
    found: dict[str, Any] = {"model_type": TYPES[kind], "vocab_size": len(file.facts.get("tokenizer.ggml.tokens", ()))}
    for key, value in file.facts.items():
        name = key.removeprefix(f"{kind}.")
        if name == key or name in INERT:
            continue
        if name not in KEYS_OF[kind]:
            raise CheckpointError(f"{file.path}: {key[:80]}: is not known, and neither is what it changes")
        found[KEYS_OF[kind][name]] = value
    width = found.get("head_dim") or found.get("hidden_size", 0) // max(1, found.get("num_attention_heads", 1))
    for name in ("attention.value_length", "rope.dimension_count"):
        if file.facts.get(f"{kind}.{name}", width) != width:
            raise CheckpointError(f"{file.path}: {kind}.{name}: differs from the width of a head, {width}")
    own = {"query_pre_attn_scalar": width} if kind == "gemma3" else {"tie_word_embeddings": OUTPUT not in file.forms}
    return found | own


def tensors_of(file: GgufFile, config: dict[str, Any]) -> Renamed:
    """The tensors of a file as transformers names and keeps them."""
    kind = str(file.facts["general.architecture"])
    names = {}
    for name in file.forms:
        full = GPT2.full(name) if kind == "gpt2" else _full(name, NAMES[kind])
        if full is None:
            raise CheckpointError(f"{file.told(name)[:200]}: not known, and neither is what it does")
        names[full] = name
    return Renamed(file, names, CHANGES[kind](config))


def _full(name: str, layers: dict[str, str]) -> str | None:
    """The name in transformers of a tensor of a file; None where it is none of these."""
    found = LAYER.fullmatch(name)
    plain, _, ending = name.rpartition(".")
    if found is not None and found[2] in layers:
        return f"model.layers.{found[1]}.{layers[found[2]]}.{found[3]}"
    return f"{WHOLE[plain]}.{ending}" if plain in WHOLE else None


def _of_gemma(_config: dict[str, Any]) -> Callable[[str, Tensor], Tensor]:
    return lambda name, tensor: tensor - 1 if name.endswith("norm.weight") else tensor


def _of_llama(config: dict[str, Any]) -> Callable[[str, Tensor], Tensor]:
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    turned = Turned(width, width)

    def changed(name: str, tensor: Tensor) -> Tensor:
        return turned.theirs(tensor)[0] if ".q_proj." in name or ".k_proj." in name else tensor

    return changed


CHANGES = {"gemma3": _of_gemma, "llama": _of_llama, "gpt2": lambda _config: GPT2.changed}
