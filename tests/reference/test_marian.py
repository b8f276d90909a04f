"""The Transformer as published against transformers' Marian on random weights: the same logits, in float64."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from answers import answered
from regard.core import registry
from regard.core.context import real_tokens
from regard.core.model import logits_of
from regard.interop.translation_models import Side, layers_table
from regard.interop.weight_table import Interleaved, Line
from regard.layers.mlp import MlpConfig
from regard.storage import tensors

transformers = pytest.importorskip("transformers")

WIDTH, N_HEADS, N_LAYERS, INNER, VOCABULARY = 12, 3, 2, 20, 13
LENGTHS = torch.tensor([6, 2, 4])


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
    side = partial(Side, n_layers=N_LAYERS, n_heads=N_HEADS, mlp=MlpConfig(WIDTH, INNER))
    table = Line("encoder.embedding.token_to_vector.weight", "model.shared.weight", form=Interleaved(last=True))
    own = tensors.weights_of(ours)
    found = {
        line.ours: line.form.ours([state[name] for name in line.theirs])
        for line in [table, *layers_table(side("encoder"), side("decoder"), halves=True)]
    }
    assert found.keys() == own.keys()
    tensors.copy_into(own, found)
    return ours


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
