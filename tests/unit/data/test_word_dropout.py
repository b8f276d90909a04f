"""Word dropout: how much is hidden, when, and what never is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.data.ragged import ragged
from regard.data.rows import LabelRows, PairRows, Shuffled
from regard.data.word_dropout import WordDropout

TEXTS = ragged(np.arange(1, 41) for _ in range(64))
LABELS = LabelRows(TEXTS, np.zeros(64, dtype=np.int64))


def test_the_share_rises_over_the_ramp_and_is_a_pure_function_of_the_step():
    sampler = WordDropout(Shuffled(LABELS, 0), 0.4, 100, 0, 5)
    shares = [float((sampler.batch(step, 32).tokens == 0).float().mean()) for step in (0, 50, 100, 900)]
    assert shares[0] == 0
    assert shares[1:] == pytest.approx([0.2, 0.4, 0.4], abs=0.04)
    assert torch.equal(sampler.batch(70, 32).tokens, sampler.batch(70, 32).tokens)
    assert not torch.equal(sampler.batch(70, 32).tokens == 0, sampler.batch(71, 32).tokens == 0)


def test_targets_and_the_start_of_what_is_written_stay():
    rows = PairRows(TEXTS, TEXTS, 99)
    plain, dropped = Shuffled(rows, 0).batch(3, 8), WordDropout(Shuffled(rows, 0), 0.9, 0, 50, 5).batch(3, 8)
    assert torch.equal(plain.targets, dropped.targets)
    assert torch.equal(plain.source, dropped.source)  # pyright: ignore[reportArgumentType]
    assert (dropped.tokens[:, 0] == 99).all()
    assert (dropped.tokens[:, 1:] == 50).float().mean() > 0.8


def test_a_hidden_word_has_no_spelling():
    spelt = ragged(np.tile(np.arange(1, 6), (10, 1)) for _ in range(8))
    rows = LabelRows(spelt, np.zeros(8, dtype=np.int64))
    tokens = WordDropout(Shuffled(rows, 0), 0.5, 0, 7, 1).batch(0, 8).tokens
    hidden = tokens[..., 0] == 7
    assert hidden.any()
    assert (tokens[hidden][:, 1:] == 0).all()
    assert (tokens[~hidden] == torch.arange(1, 6)).all()
