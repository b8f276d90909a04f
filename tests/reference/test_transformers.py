"""Whole language models against transformers' GPT-2, Llama, Mamba and Mamba-2 on tiny random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Mamba2Config,
    Mamba2ForCausalLM,
    MambaConfig,
    MambaForCausalLM,
)

from answers import answered
from regard.core.context import Context
from regard.core.model import logits_of
from regard.core.registry import build

VOCABULARY, LENGTH, N_LAYERS = 13, 20, 2
BLOCK = "stack.layers.{}."


class Line(NamedTuple):
    """One line of a table of names: theirs, ours, and what makes their tensor ours. {} is the layer."""

    theirs: str
    ours: str
    change: Callable[[Tensor], Tensor] = lambda tensor: tensor


def transposed(tensor: Tensor) -> Tensor:
    """GPT-2 keeps its matrices as (in, out)."""
    return tensor.T


def one_channel(tensor: Tensor) -> Tensor:
    """A depthwise convolution keeps (channels, 1, window)."""
    return tensor[:, 0]


GPT2 = [
    Line("transformer.wte.weight", "embedding.token_to_vector.weight"),
    Line("transformer.wpe.weight", "embedding.position.table.weight"),
    Line("transformer.h.{}.ln_1.weight", BLOCK + "mixer_norm.weight"),
    Line("transformer.h.{}.ln_1.bias", BLOCK + "mixer_norm.bias"),
    Line("transformer.h.{}.attn.c_attn.weight", BLOCK + "mixer.input_to_heads.weight", transposed),
    Line("transformer.h.{}.attn.c_attn.bias", BLOCK + "mixer.input_to_heads.bias"),
    Line("transformer.h.{}.attn.c_proj.weight", BLOCK + "mixer.heads_to_output.weight", transposed),
    Line("transformer.h.{}.attn.c_proj.bias", BLOCK + "mixer.heads_to_output.bias"),
    Line("transformer.h.{}.ln_2.weight", BLOCK + "mlp_norm.weight"),
    Line("transformer.h.{}.ln_2.bias", BLOCK + "mlp_norm.bias"),
    Line("transformer.h.{}.mlp.c_fc.weight", BLOCK + "mlp.input_to_hidden.weight", transposed),
    Line("transformer.h.{}.mlp.c_fc.bias", BLOCK + "mlp.input_to_hidden.bias"),
    Line("transformer.h.{}.mlp.c_proj.weight", BLOCK + "mlp.hidden_to_output.weight", transposed),
    Line("transformer.h.{}.mlp.c_proj.bias", BLOCK + "mlp.hidden_to_output.bias"),
    Line("transformer.ln_f.weight", "norm.weight"),
    Line("transformer.ln_f.bias", "norm.bias"),
    Line("lm_head.weight", "head.weight"),
]
MAMBA = [
    Line("backbone.embeddings.weight", "embedding.token_to_vector.weight"),
    Line("backbone.layers.{}.norm.weight", BLOCK + "mixer_norm.weight"),
    Line("backbone.layers.{}.mixer.in_proj.weight", BLOCK + "mixer.input_to_streams.weight"),
    Line("backbone.layers.{}.mixer.conv1d.weight", BLOCK + "mixer.convolution.weight", one_channel),
    Line("backbone.layers.{}.mixer.conv1d.bias", BLOCK + "mixer.convolution.bias"),
    Line("backbone.layers.{}.mixer.A_log", BLOCK + "mixer.log_decay"),
    Line("backbone.layers.{}.mixer.D", BLOCK + "mixer.skip"),
    Line("backbone.layers.{}.mixer.out_proj.weight", BLOCK + "mixer.hidden_to_output.weight"),
    Line("backbone.norm_f.weight", "norm.weight"),
    Line("lm_head.weight", "head.weight"),
]
MAMBA_1 = [
    *MAMBA,
    Line("backbone.layers.{}.mixer.x_proj.weight", BLOCK + "mixer.stream_to_selection.weight"),
    Line("backbone.layers.{}.mixer.dt_proj.weight", BLOCK + "mixer.rank_to_step.weight"),
    Line("backbone.layers.{}.mixer.dt_proj.bias", BLOCK + "mixer.rank_to_step.bias"),
]
MAMBA_2 = [
    *MAMBA,
    Line("backbone.layers.{}.mixer.dt_bias", BLOCK + "mixer.step_bias"),
    Line("backbone.layers.{}.mixer.norm.weight", BLOCK + "mixer.norm.weight"),
]


def mapped(theirs: nn.Module, table: list[Line]) -> dict[str, Tensor]:
    """Their tensors under our names; each of theirs is used exactly once."""
    left = theirs.state_dict()
    found = {}
    for line in table:
        for layer in range(N_LAYERS) if "{}" in line.theirs else [0]:
            found[line.ours.format(layer)] = line.change(left.pop(line.theirs.format(layer)))
    assert not left, f"not in the table: {sorted(left)}"
    return found


def with_random_weights(model: Any) -> Any:
    """Weights far from their initial values, so that nothing hides behind a 0 or a 1."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def gpt2() -> tuple[Any, Any]:
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=32, n_embd=16, n_layer=N_LAYERS, n_head=4, attn_implementation="eager"
    )
    theirs = with_random_weights(GPT2LMHeadModel(config).double())
    faithful = {"norm": "layer", "position": "learned", "activation": "gelu_tanh", "bias": True, "qk_norm": False}
    sizes = {"d_model": 16, "n_layers": N_LAYERS, "n_heads": 4, "max_length": 32}
    ours = build("gpt", vocab_size=VOCABULARY, size="tiny", tied=True, **sizes, **faithful).double().eval()
    ours.load_state_dict(mapped(theirs, GPT2))
    return theirs, ours


def interleaved(rows: Tensor) -> Tensor:
    """Rows of a query or key map in our order, where 2j turns with 2j + 1; in Llama's, j turns with j + K / 2."""
    heads = rows.unflatten(0, (-1, 2, 2))  # (heads, half, K / 2, D) with K = 4
    return heads.transpose(1, 2).flatten(0, 2)


def llama() -> tuple[Any, Any]:
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_word_embeddings=False,
    )
    theirs = with_random_weights(LlamaForCausalLM(config))
    settings = {"norm": "rms", "position": "rotary", "activation": "silu", "gated": True, "bias": False}
    sizes = {"d_model": 16, "n_layers": N_LAYERS, "n_heads": 4, "n_kv_heads": 2, "d_hidden": 24}
    ours = build("gpt", vocab_size=VOCABULARY, size="tiny", qk_norm=False, **sizes, **settings).double().eval()
    layer = "model.layers.{}."
    table = [
        Line("model.embed_tokens.weight", "embedding.token_to_vector.weight"),
        Line(layer + "input_layernorm.weight", BLOCK + "mixer_norm.weight"),
        Line(layer + "self_attn.q_proj.weight", BLOCK + "q", interleaved),
        Line(layer + "self_attn.k_proj.weight", BLOCK + "k", interleaved),
        Line(layer + "self_attn.v_proj.weight", BLOCK + "v"),
        Line(layer + "self_attn.o_proj.weight", BLOCK + "mixer.heads_to_output.weight"),
        Line(layer + "post_attention_layernorm.weight", BLOCK + "mlp_norm.weight"),
        Line(layer + "mlp.gate_proj.weight", BLOCK + "mlp.input_to_gate.weight"),
        Line(layer + "mlp.up_proj.weight", BLOCK + "mlp.input_to_hidden.weight"),
        Line(layer + "mlp.down_proj.weight", BLOCK + "mlp.hidden_to_output.weight"),
        Line("model.norm.weight", "norm.weight"),
        Line("lm_head.weight", "head.weight"),
    ]
    weights = mapped(theirs, table)
    for i in range(N_LAYERS):
        parts = [weights.pop(BLOCK.format(i) + letter) for letter in "qkv"]
        weights[BLOCK.format(i) + "mixer.input_to_heads.weight"] = torch.cat(parts)
    ours.load_state_dict(weights)
    return theirs, ours


def mamba() -> tuple[Any, Any]:
    config = MambaConfig(
        vocab_size=VOCABULARY, hidden_size=16, state_size=4, num_hidden_layers=N_LAYERS, time_step_rank=1
    )
    theirs = with_random_weights(MambaForCausalLM(config))
    sizes = {"d_model": 16, "n_layers": N_LAYERS, "d_state": 4}
    ours = build("mamba", vocab_size=VOCABULARY, size="tiny", **sizes).double().eval()
    ours.load_state_dict(mapped(theirs, MAMBA_1))
    return theirs, ours


def mamba2() -> tuple[Any, Any]:
    config = Mamba2Config(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_heads=4,
        head_dim=8,
        state_size=4,
        n_groups=1,
        num_hidden_layers=N_LAYERS,
        chunk_size=8,
        tie_word_embeddings=True,
    )
    theirs = with_random_weights(Mamba2ForCausalLM(config))
    sizes = {"d_model": 16, "n_layers": N_LAYERS, "d_state": 4, "d_head": 8, "chunk": 8}
    ours = build("mamba2", vocab_size=VOCABULARY, size="tiny", **sizes).double().eval()
    ours.load_state_dict(mapped(theirs, MAMBA_2))
    return theirs, ours


# GPT-2 stays in float64; the other three turn to float32 inside, whatever they are given.
PAIRS = {"gpt2": (gpt2, 1e-10), "llama": (llama, 2e-5), "mamba": (mamba, 2e-5), "mamba2": (mamba2, 2e-5)}


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any, float]:
    make, tolerance = PAIRS[request.param]
    return *make(), tolerance


def close(got: Tensor, expected: Tensor, tolerance: float) -> None:
    assert float(expected.std()) > 0.3, "logits too flat to compare"
    torch.testing.assert_close(got, expected.double(), rtol=tolerance, atol=tolerance)


@torch.no_grad()
def test_logits(pair: tuple[Any, Any, float]) -> None:
    theirs, ours, tolerance = pair
    tokens = torch.randint(VOCABULARY, (3, LENGTH))
    expected = theirs(tokens).logits
    close(logits_of(ours, tokens), expected, tolerance)
    close(answered(ours, tokens, ours.init_state(3))[0], expected, tolerance)


@torch.no_grad()
def test_padded_rows(pair: tuple[Any, Any, float]) -> None:
    theirs, ours, tolerance = pair
    tokens, lengths = torch.randint(VOCABULARY, (3, LENGTH)), torch.tensor([LENGTH, 3, 11])
    logits, state = answered(ours, tokens, ours.init_state(3), Context(lengths=lengths))
    more = torch.randint(VOCABULARY, (3, 1))
    after, _ = answered(ours, more, state)
    for row, length in enumerate(lengths.tolist()):
        expected = theirs(torch.cat([tokens[row, :length], more[row]])[None]).logits[0]
        close(torch.cat([logits[row, :length], after[row]]), expected, tolerance)


@torch.no_grad()
def test_cached_steps(pair: tuple[Any, Any, float]) -> None:
    theirs, ours, tolerance = pair
    cache = "past_key_values" if hasattr(theirs, "transformer") or hasattr(theirs, "model") else "cache_params"
    tokens, first = torch.randint(VOCABULARY, (2, LENGTH)), LENGTH - 8
    answer = theirs(tokens[:, :first], use_cache=True)
    logits, state = answered(ours, tokens[:, :first], ours.init_state(2).reserve(LENGTH))
    close(logits, answer.logits, tolerance)
    stepped = state.select(torch.tensor([0, 1]))
    for t in range(first, LENGTH):
        token = tokens[:, t : t + 1]
        answer = theirs(token, use_cache=True, **{cache: answer[cache]})
        logits, state = answered(ours, token, state)
        close(logits, answer.logits, tolerance)
        h, stepped = ours.stack.step(ours.embedding(token, stepped.position)[:, 0], stepped)
        close(ours.head(ours.norm(h)), answer.logits[:, 0], tolerance)


def test_gradients_equal_gpt2() -> None:
    theirs, ours = gpt2()
    tokens, weights = torch.randint(VOCABULARY, (2, 9)), torch.randn(2, 9, VOCABULARY).double()
    (theirs(tokens).logits * weights).sum().backward()
    (logits_of(ours, tokens) * weights).sum().backward()
    for theirs_name, ours_name, change in GPT2[:-1]:
        for layer in range(N_LAYERS) if "{}" in theirs_name else [0]:
            expected = theirs.get_parameter(theirs_name.format(layer)).grad
            found = ours.get_parameter(ours_name.format(layer)).grad
            torch.testing.assert_close(found, change(expected), rtol=1e-9, atol=1e-10)
