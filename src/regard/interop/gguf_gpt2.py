"""GPT-2 in GGUF files: its names and keys there and in transformers, read both ways."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from torch import Tensor

LAYERS = {
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
WHOLE = {
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
}
KEYS = {
    "context_length": "n_positions",
    "embedding_length": "n_embd",
    "block_count": "n_layer",
    "feed_forward_length": "n_inner",
    "attention.head_count": "n_head",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
}
TURNED = ("attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight")
HERE, THERE = re.compile(r"blk\.(\d+)\.(.+)\.(weight|bias)"), re.compile(r"transformer\.h\.(\d+)\.(.+)\.(weight|bias)")


@dataclass(frozen=True)
class Gpt2Names:
    """keys: of the file without the name of the architecture, and those of transformers."""

    keys: dict[str, str] = field(default_factory=lambda: KEYS)

    def short(self, name: str) -> str:
        """The name in a file of a tensor of transformers."""
        found = THERE.fullmatch(name)
        if found is not None:
            part = next(short for short, theirs in LAYERS.items() if theirs == found[2])
            return f"blk.{found[1]}.{part}.{found[3]}"
        plain, _, ending = name.rpartition(".")
        return f"{next(short for short, theirs in WHOLE.items() if theirs == plain)}.{ending}"

    def full(self, name: str) -> str | None:
        """The name in transformers of a tensor of a file; None where it is none of GPT-2's."""
        found = HERE.fullmatch(name)
        if found is not None:
            return f"transformer.h.{found[1]}.{LAYERS[found[2]]}.{found[3]}" if found[2] in LAYERS else None
        plain, _, ending = name.rpartition(".")
        return f"{WHOLE[plain]}.{ending}" if plain in WHOLE else None

    def changed(self, name: str, tensor: Tensor) -> Tensor:
        """Transformers keeps its maps as (in, out), files as (out, in); the same both ways. name: in either."""
        turned = name.endswith(TURNED) or name.endswith(("attn.c_attn.weight", "c_proj.weight", "c_fc.weight"))
        return tensor.T if turned else tensor


GPT2 = Gpt2Names()
