"""The Transformer as published against transformers' Marian on random weights: the same logits, in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from answers import answered
from regard.core import registry
from regard.core.context import real_tokens
from regard.core.model import logits_of

transformers = pytest.importorskip("transformers")

WIDTH, N_HEADS, N_LAYERS, INNER, VOCABULARY = 12, 3, 2, 20, 13
LENGTHS = torch.tensor([6, 2, 4])
NAMES = {
    "self_attn.out_proj": "mixer.heads_to_output",
    "self_attn_layer_norm": "mixer_norm",
    "fc1": "mlp.input_to_hidden",
    "fc2": "mlp.hidden_to_output",
    "final_layer_norm": "mlp_norm",
    "encoder_attn.q_proj": "mixer.input_to_queries",
    "encoder_attn.v_proj": "mixer.memory_to_values",
    "encoder_attn.out_proj": "mixer.heads_to_output",
    "encoder_attn_layer_norm": "mixer_norm",
}


def marian() -> Any:
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in (
        ("layers", N_LAYERS), ("attention_heads", N_HEADS), ("ffn_dim", INNER)
    )}  # fmt: skip
    config = transformers.MarianConfig(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=32,
        **dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0),
        **dict.fromkeys(("pad_token_id", "eos_token_id", "forced_eos_token_id", "decoder_start_token_id"), 0),
        **sizes,
    )
    model = transformers.MarianMTModel(config).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.normal_(std=0.4)
        # Its table of positions is rounded to float32.
        angles = torch.arange(32.0).double()[:, None] / 10000 ** (torch.arange(0, WIDTH, 2).double() / WIDTH)
        for side in (model.model.encoder, model.model.decoder):
            torch.testing.assert_close(side.embed_positions.weight[:, : WIDTH // 2], angles.sin(), rtol=0, atol=1e-6)
            side.embed_positions.weight.copy_(torch.cat([angles.sin(), angles.cos()], 1))
    return model


def loaded(theirs: Any) -> Any:
    """Ours with Marian's numbers."""
    sizes = {"d_model": WIDTH, "n_heads": N_HEADS, "n_layers": N_LAYERS, "d_hidden": INNER}
    ours = registry.build("transformer", vocab_size=VOCABULARY, size="paper", dropout=0.0, **sizes).double().eval()
    state = theirs.state_dict()
    table = "encoder.embedding.token_to_vector.weight"
    weights = dict.fromkeys((table, "decoder" + table.removeprefix("encoder"), "decoder.head.weight"))
    weights = {name: interleaved(state["model.shared.weight"]) for name in weights}
    for side in ("encoder", "decoder"):
        for number in range(N_LAYERS):
            weights |= layer(state, side, number)
    missing, unexpected = ours.load_state_dict(weights, strict=False)
    assert not missing
    assert not unexpected
    return ours


def layer(state: dict[str, Tensor], side: str, number: int) -> dict[str, Tensor]:
    """One of Marian's layers by our names: of a decoder two of ours."""
    prefix, own = f"model.{side}.layers.{number}.", f"{side}.stack.layers.{number}."
    within, across = own, own
    if side == "decoder":
        within, across = (f"{side}.stack.layers.{2 * number + part}." for part in (0, 1))
    found = {}
    for kind in ("weight", "bias"):
        parts = [state[f"{prefix}self_attn.{name}_proj.{kind}"] for name in "qkv"]
        joined = torch.cat([reading(part) if kind == "weight" else part for part in parts])
        found[f"{within}mixer.input_to_heads.{kind}"] = joined
        for theirs, ours in NAMES.items():
            if f"{prefix}{theirs}.{kind}" in state:
                place = within if theirs.startswith("self_attn") else across
                found[f"{place}{ours}.{kind}"] = rewired(state[f"{prefix}{theirs}.{kind}"], theirs, kind)
    if side == "decoder":
        found[f"{across}mixer.memory_to_keys.weight"] = reading(state[f"{prefix}encoder_attn.k_proj.weight"])
    return found


# Marian's positions are sines side by side and then cosines, ours take turns: its coordinates are ours in this order.
ORDER = torch.arange(WIDTH).reshape(2, WIDTH // 2).T.flatten()


def interleaved(rows: Tensor) -> Tensor:
    """Vectors of the stream, as the last axis, in our order."""
    return rows[..., ORDER]


def reading(weight: Tensor) -> Tensor:
    """A map that reads from the stream."""
    return weight[:, ORDER]


def rewired(value: Tensor, name: str, kind: str) -> Tensor:
    """A weight whose side towards the stream is in our order."""
    if name.endswith("norm") or (kind == "bias" and name.endswith(("out_proj", "fc2"))):
        return value[ORDER]
    if kind == "bias":
        return value
    return value[ORDER] if name.endswith(("out_proj", "fc2")) else reading(value)


@torch.no_grad()
def test_logits_equal_those_of_marian() -> None:
    theirs = marian()
    ours = loaded(theirs)
    source, tokens = torch.randint(1, VOCABULARY, (3, 6)), torch.randint(1, VOCABULARY, (3, 5))
    real = real_tokens(LENGTHS, source)
    expected = theirs(input_ids=source, attention_mask=real.long(), decoder_input_ids=tokens).logits
    given = ours.given(source, LENGTHS)
    torch.testing.assert_close(logits_of(given, tokens), expected, rtol=0, atol=1e-12)
    state = given.init_state(3)
    for t in range(tokens.shape[1]):
        logits, state = answered(given, tokens[:, t : t + 1], state)
        torch.testing.assert_close(logits[:, 0], expected[:, t], rtol=0, atol=1e-12)
