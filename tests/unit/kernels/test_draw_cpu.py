"""Compiled drawing is the plain one of float64, whatever is asked for beside a row."""

from __future__ import annotations

import math

import pytest
import torch
from decoding.readable import drawn

from regard.decoding.drawing import next_tokens
from regard.decoding.logits_processing import GREEDY, RowSettings, Sampling, kind_of, raw_log_probs
from regard.kernels import draw_cpu
from regard.kernels.compiled import library

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler")
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _narrow_rows_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw_cpu, "WIDE", 1)


@torch.no_grad()
@pytest.mark.parametrize("temperature", [1.0, 0.3, 2.5])
@pytest.mark.parametrize("width", [1, 15, 16, 17, 255, 257, 5000])
def test_a_token_is_drawn_as_in_float64(width: int, temperature: float) -> None:
    # Quarters, of which sums and shares are far enough apart for the rounding of float32.
    logits = torch.randint(-8, 8, (64, width), generator=torch.Generator().manual_seed(0)) / 4
    logits[:, 1::3] = -math.inf
    uniform = torch.rand(64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    uniform[:3] = torch.tensor([0.0, 1 - 2**-53, 1 - 2**-53])
    warped = (logits.double() / temperature).softmax(-1)
    expected = [drawn(p, u) for p, u in zip(warped.tolist(), uniform.tolist(), strict=True)]
    settings = [Sampling(temperature)] * 64
    tokens, log_probs = next_tokens(logits, RowSettings.of(settings, CPU), uniform, kind_of(settings))
    assert tokens.tolist() == expected
    exact = logits.double().log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    torch.testing.assert_close(log_probs.double(), exact, rtol=1e-6, atol=2e-6)


@torch.no_grad()
def test_of_equal_logits_the_first_is_the_likeliest() -> None:
    logits = torch.zeros(3, 400)
    logits[1, [33, 380]], logits[2, 399] = 2.0, 5.0
    both = [GREEDY] * 3
    tokens, log_probs = next_tokens(logits, RowSettings.of(both, CPU), None, kind_of(both))
    assert tokens.tolist() == [0, 33, 399]
    torch.testing.assert_close(log_probs, logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0])


@torch.no_grad()
def test_a_row_is_drawn_the_same_beside_one_that_cuts() -> None:
    logits = torch.randn(5, 3000, generator=torch.Generator().manual_seed(0))
    uniform = torch.rand(5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    asked = [Sampling(), Sampling(top_p=0.9), GREEDY, Sampling(top_k=5, temperature=2.0), Sampling(min_p=0.01)]
    tokens, log_probs = next_tokens(logits, RowSettings.of(asked, CPU), uniform, kind_of(asked))
    torch.testing.assert_close(log_probs, raw_log_probs(logits).gather(1, tokens[:, None])[:, 0])
    for i, settings in enumerate(asked):
        alone = RowSettings.of([settings], CPU)
        one = next_tokens(logits[i : i + 1], alone, uniform[i : i + 1], kind_of([settings]))
        assert (tokens[i], log_probs[i]) == (one[0][0], one[1][0])


@torch.no_grad()
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("settings", [GREEDY, Sampling(), Sampling(top_p=0.9)])
def test_a_row_without_a_distribution_is_told_and_spoils_no_other(bad: float, settings: Sampling) -> None:
    logits = torch.randn(3, 900, generator=torch.Generator().manual_seed(0))
    rows, half = [settings] * 3, torch.full((3,), 0.5)
    expected = next_tokens(logits, RowSettings.of(rows, CPU), half, kind_of(rows))
    logits[0], logits[1, 700] = bad, math.nan
    tokens, log_probs = next_tokens(logits, RowSettings.of(rows, CPU), half, kind_of(rows))
    assert log_probs.isnan().tolist() == [True, True, False]
    assert (tokens[2], log_probs[2]) == (expected[0][2], expected[1][2])
    assert all(0 <= token < 900 for token in tokens.tolist())


@torch.no_grad()
def test_the_log_probability_of_a_likely_token_is_exact_at_a_high_temperature() -> None:
    """Where the uncut draw is of an unlikely token."""
    logits = torch.randn(16, 700, generator=torch.Generator().manual_seed(0)) * 200
    settings = [Sampling(temperature=1000.0, top_k=2)] * 16
    uniform = torch.rand(16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    tokens, log_probs = next_tokens(logits, RowSettings.of(settings, CPU), uniform, kind_of(settings))
    exact = logits.double().log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    torch.testing.assert_close(log_probs.double(), exact, rtol=1e-6, atol=1e-6)


@torch.no_grad()
def test_settings_of_one_row_are_those_of_all() -> None:
    logits = torch.randn(5, 3000, generator=torch.Generator().manual_seed(0))
    uniform = torch.rand(5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for settings in (GREEDY, Sampling(0.7), Sampling(0.7, top_k=9)):
        one, each = (RowSettings.of([settings] * count, CPU) for count in (1, 5))
        found, expected = (next_tokens(logits, rows, uniform, kind_of([settings])) for rows in (one, each))
        assert torch.equal(found[0], expected[0])
        assert torch.equal(found[1], expected[1])


def test_small_vocabularies_and_gradients_are_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not draw_cpu.takes(torch.randn(2, 50))
    with torch.no_grad():
        assert draw_cpu.takes(torch.randn(2, 50))
        assert not draw_cpu.takes(torch.randn(2, 50).double())
        assert not draw_cpu.takes(torch.randn(50, 2).T)
        monkeypatch.setattr(draw_cpu, "WIDE", 51)
        assert not draw_cpu.takes(torch.randn(2, 50))


@torch.no_grad()
def test_what_is_traced_draws_as_torch_does() -> None:
    both = [GREEDY, GREEDY]

    def tokens(logits: torch.Tensor) -> torch.Tensor:
        return next_tokens(logits, RowSettings.of(both, CPU), None, kind_of(both))[0]

    traced = torch.jit.trace(tokens, torch.randn(2, 50), check_trace=False)
    others = torch.randn(2, 50)
    assert traced(others).tolist() == others.argmax(-1).tolist()
