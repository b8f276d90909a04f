"""Whole language models against transformers' on tiny random weights, by way of the folders that it saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from answers import answered
from foreign_models import CAUSAL, N_LAYERS, VOCABULARY, ours_of, theirs_of
from regard.core.context import Context
from regard.core.model import logits_of
from regard.interop.causal_models import gpt2_table
from regard.interop.weight_table import lines_of

LENGTH = 20
# These stay in float64; the others turn to float32 inside, whatever they are given.
WIDE = ("gpt2",)


@pytest.fixture(params=CAUSAL)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any, float]:
    theirs = theirs_of(request.param)
    ours = ours_of(theirs, tmp_path)
    return (theirs.double(), ours, 1e-10) if request.param in WIDE else (theirs, ours, 1e-5)


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
    cache = "cache_params" if theirs.config.model_type.startswith("mamba") else "past_key_values"
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


def test_gradients_equal_gpt2(tmp_path: Path) -> None:
    theirs = theirs_of("gpt2")
    ours, theirs = ours_of(theirs, tmp_path), theirs.double()
    tokens, weights = torch.randint(VOCABULARY, (2, 9)), torch.randn(2, 9, VOCABULARY).double()
    (theirs(tokens).logits * weights).sum().backward()
    (logits_of(ours, tokens) * weights).sum().backward()
    for line in lines_of(gpt2_table(), N_LAYERS):
        expected = line.form.ours([theirs.get_parameter(name).grad for name in line.theirs])
        torch.testing.assert_close(ours.get_parameter(line.ours).grad, expected, rtol=1e-9, atol=1e-10)
