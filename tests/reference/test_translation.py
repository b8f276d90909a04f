"""Encoder-decoders against transformers' on tiny random weights, by way of the folders that it saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.models.t5 import modeling_t5

from answers import answered
from foreign_models import TRANSLATORS, VOCABULARY, ours_of, theirs_of
from regard.core.context import real_tokens
from regard.core.model import logits_of

LENGTHS = torch.tensor([9, 2, 5])


@pytest.fixture(params=TRANSLATORS)
def pair(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, float]:
    monkeypatch.setattr(modeling_t5.T5LayerNorm, "forward", wide_norm)
    theirs = theirs_of(request.param)
    ours = ours_of(theirs, tmp_path)
    return theirs.double(), ours, 1e-10


def wide_norm(self: Any, x: Tensor) -> Tensor:
    """T5's norm without its way by float32."""
    return self.weight * x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


def close(got: Tensor, expected: Tensor, tolerance: float) -> None:
    assert float(expected.std()) > 0.3, "logits too flat to compare"
    torch.testing.assert_close(got, expected.double(), rtol=tolerance, atol=tolerance)


@torch.no_grad()
def test_logits_and_steps_equal_also_where_sources_are_padded(pair: tuple[Any, Any, float]) -> None:
    theirs, ours, tolerance = pair
    source, tokens = torch.randint(3, VOCABULARY, (3, 9)), torch.randint(3, VOCABULARY, (3, 7))
    whole = theirs(input_ids=source, decoder_input_ids=tokens).logits
    close(logits_of(ours.given(source), tokens), whole, tolerance)
    mask = real_tokens(LENGTHS, source).long()
    expected = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=tokens).logits
    given = ours.given(source, LENGTHS)
    close(logits_of(given, tokens), expected, tolerance)
    state = given.init_state(3)
    for t in range(tokens.shape[1]):
        logits, state = answered(given, tokens[:, t : t + 1], state)
        close(logits[:, 0], expected[:, t], tolerance)


@torch.no_grad()
def test_what_is_read_and_where_it_is_looked_at_equal(pair: tuple[Any, Any, float]) -> None:
    theirs, ours, tolerance = pair
    source, tokens = torch.randint(3, VOCABULARY, (2, 8)), torch.randint(3, VOCABULARY, (2, 6))
    theirs.set_attn_implementation("eager")
    told = theirs(input_ids=source, decoder_input_ids=tokens, output_attentions=True)
    weights = ours.alignment(tokens, ours.start(source))
    close(weights * 10, told.cross_attentions[-1].mean(1) * 10, tolerance)
