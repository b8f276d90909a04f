from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.readable import SETTINGS, logits_of, probabilities
from regard.decoding import logits_processing
from regard.decoding.logits_processing import (
    CANDIDATES,
    RowSettings,
    Sampling,
    largest,
    raw_log_probs,
    warped_log_probs,
)
from regard.errors import UsageError

INF = math.inf


def kept(log_probs: torch.Tensor) -> list[int]:
    return (log_probs > -INF).nonzero()[:, -1].tolist()


def left(logits: torch.Tensor, **settings: Any) -> list[int]:
    """The tokens that are not cut off."""
    return kept(warped_log_probs(logits, Sampling(**settings)))


def test_top_k_keeps_exactly_k_and_of_equal_logits_the_lower_id() -> None:
    logits = torch.tensor([1.0, 3.0, 3.0, 3.0, 0.0])
    assert left(logits, top_k=1) == [1]
    assert left(logits, top_k=2) == [1, 2]
    assert left(logits, top_k=4) == [0, 1, 2, 3]


@pytest.mark.parametrize("k", [5, 6, 1000])
def test_top_k_of_the_whole_vocabulary_or_more_changes_nothing(k: int) -> None:
    logits = torch.tensor([1.0, 3.0, -INF, 3.0, 0.0])
    torch.testing.assert_close(warped_log_probs(logits, Sampling(top_k=k)), raw_log_probs(logits))


def test_top_k_beyond_the_possible_tokens_revives_none() -> None:
    assert left(torch.tensor([1.0, -INF, -INF, 2.0]), top_k=3) == [0, 3]


def test_top_p_keeps_the_fewest_tokens_that_reach_p() -> None:
    logits = torch.tensor([0.1, 0.5, 0.25, 0.15], dtype=torch.float64).log()
    assert left(logits, top_p=1e-9) == [1]
    assert left(logits, top_p=0.49) == [1]
    assert left(logits, top_p=0.51) == [1, 2]
    assert left(logits, top_p=0.74) == [1, 2]
    assert left(logits, top_p=0.89) == [1, 2, 3]
    assert left(logits, top_p=0.91) == [0, 1, 2, 3]


def test_top_p_of_one_keeps_even_a_token_too_improbable_for_a_float() -> None:
    assert left(torch.tensor([0.0, -80.0, -200.0]), top_p=1.0) == [0, 1, 2]


def test_top_p_among_equal_tokens_keeps_the_lower_ids() -> None:
    assert left(torch.zeros(8, dtype=torch.float64), top_p=0.3) == [0, 1, 2]


def test_top_p_finds_a_nucleus_wider_than_its_candidates() -> None:
    width = 4 * CANDIDATES
    assert left(torch.zeros(width, dtype=torch.float64), top_p=0.5001) == list(range(width // 2 + 1))


def test_min_p_keeps_tokens_within_a_ratio_of_the_best() -> None:
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64).log() + 7
    assert left(logits, min_p=0.0) == [0, 1, 2, 3]
    assert left(logits, min_p=0.49) == [0, 1, 2]
    assert left(logits, min_p=0.51) == [0, 1]
    assert left(logits, min_p=1.0) == [0]


def test_temperature_divides_the_logits() -> None:
    logits = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    expected = (logits / 0.7).softmax(-1)
    found = warped_log_probs(logits, Sampling(temperature=0.7)).exp()
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("form", ["different", "equal", "some impossible"])
@pytest.mark.parametrize("width", [2, 9, 300])
@pytest.mark.parametrize("candidates", [CANDIDATES, 5])
def test_rows_with_settings_of_their_own_keep_what_the_readable_form_keeps(
    width: int, form: str, candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logits_processing, "CANDIDATES", candidates)
    logits = logits_of(width, form)
    tempered = torch.stack([(row - row.max()) / (s.temperature or 1) for row, s in zip(logits, SETTINGS, strict=True)])
    together = logits_processing.kept(tempered, RowSettings.of(SETTINGS, torch.device("cpu")))
    for row, one, mine in zip(logits, SETTINGS, together, strict=True):
        expected = probabilities(row.tolist(), one)
        if not one.greedy:
            assert (mine & (row > -INF)).tolist() == [p > 0 for p in expected], one
        alone = warped_log_probs(row.expand(2, 3, -1), one).exp()
        torch.testing.assert_close(alone, torch.tensor(expected, dtype=torch.float64).expand(2, 3, -1))


@pytest.mark.parametrize("temperature", [0.0, 1e-6])
def test_a_temperature_of_almost_nothing_is_greedy_and_does_not_overflow(temperature: float) -> None:
    log_probs = warped_log_probs(torch.tensor([[3e38, -3e38, 1.0]]), Sampling(temperature=temperature))
    assert log_probs.tolist() == [[0.0, -INF, -INF]]


def test_temperature_zero_takes_the_first_of_equal_logits() -> None:
    assert warped_log_probs(torch.tensor([1.0, 5.0, 5.0]), Sampling(temperature=0)).tolist() == [-INF, 0.0, -INF]


def test_warps_apply_one_after_the_other_to_what_is_left() -> None:
    """Of 0.4 0.3 0.2 0.1, top-k 3 leaves 4/9 3/9 2/9, of which two hold 0.72; of all four, three are needed."""
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64).log()
    two = warped_log_probs(logits, Sampling(top_k=3, top_p=0.5)).exp()
    torch.testing.assert_close(two, torch.tensor([4 / 7, 3 / 7, 0, 0], dtype=torch.float64))
    assert left(logits, top_p=0.72) == [0, 1, 2]
    assert left(logits, top_p=0.72, top_k=3) == [0, 1]
    assert left(logits, top_k=3, top_p=0.5, min_p=0.8) == [0]


def test_warping_leaves_the_raw_distribution_alone() -> None:
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64).log()
    torch.testing.assert_close(raw_log_probs(logits), logits)
    assert raw_log_probs(logits.bfloat16()).dtype == torch.float32


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.integers(-3, 3).map(float), st.just(-INF)), min_size=1, max_size=12),
    st.integers(1, 14),
    st.floats(0.01, 1.0),
)
def test_filters_keep_the_most_probable_tokens(values: list[float], k: int, p: float) -> None:
    values[0] = 0.0
    logits = torch.tensor(values, dtype=torch.float64)
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    possible = [i for i in order if values[i] > -INF]
    assert left(logits, top_k=k) == sorted(possible[:k])
    nucleus = left(logits, top_p=p)
    assert nucleus == sorted(possible[: len(nucleus)])
    mass = logits.softmax(-1)
    assert mass[nucleus].sum() >= p - 1e-9
    assert len(nucleus) == 1 or mass[possible[: len(nucleus) - 1]].sum() < p + 1e-9


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), min_size=20, max_size=20), min_size=1, max_size=3), st.integers(1, 20))
def test_largest_sorts_like_python(rows: list[list[int]], k: int) -> None:
    expected = [sorted(range(20), key=lambda i, row=row: (-row[i], i))[:k] for row in rows]
    assert largest(torch.tensor(rows, dtype=torch.float32), k).tolist() == expected


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 1e-9),
        ("temperature", INF),
        ("temperature", math.nan),
        ("top_k", 0),
        ("top_k", -3),
        ("top_k", 2.5),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("top_p", math.nan),
        ("min_p", -0.01),
        ("min_p", 1.5),
        ("min_p", math.nan),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(option: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"^{option} must .* found"):
        Sampling(**{option: value})  # pyright: ignore[reportArgumentType]
