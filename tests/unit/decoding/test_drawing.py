"""Many rows with settings of their own equal the readable form, row by row."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from decoding.readable import SETTINGS, drawn, drawn_with, logits_of
from regard.decoding.drawing import drawn_from, next_tokens
from regard.decoding.logits_processing import GREEDY, RowSettings, Sampling, kind_of, raw_log_probs

CPU = torch.device("cpu")


@pytest.mark.parametrize("form", ["different", "equal", "some impossible"])
@pytest.mark.parametrize("width", [2, 9, 300])
def test_a_row_draws_the_same_beside_any_other(width: int, form: str) -> None:
    """Against the readable form: alone, beside another, and all together."""
    logits = logits_of(width, form)
    uniform = torch.rand(len(SETTINGS), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = [drawn_with(row, s, u) for row, s, u in zip(logits.tolist(), SETTINGS, uniform.tolist(), strict=True)]
    every = range(len(SETTINGS))
    for rows in [*([i] for i in every), *map(list, itertools.combinations(every, 2)), list(every)]:
        settings = [SETTINGS[i] for i in rows]
        tokens, log_probs = next_tokens(logits[rows], RowSettings.of(settings, CPU), uniform[rows], kind_of(settings))
        assert tokens.tolist() == [expected[i] for i in rows]
        raw = raw_log_probs(logits[rows]).gather(1, tokens[:, None])[:, 0]
        assert torch.equal(log_probs, raw)


@pytest.mark.parametrize("width", [1, 5, 4096, 4097, 20_000])
def test_a_draw_in_two_storeys_is_the_plain_draw(width: int) -> None:
    logits = torch.randn(64, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logits[:, 1::3] = -math.inf
    logits -= logits.amax(-1, keepdim=True)
    uniform = torch.rand(64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    uniform[:3] = torch.tensor([0.0, 1 - 2**-53, 1 - 2**-53])
    expected = [drawn(p, u) for p, u in zip(logits.softmax(-1).tolist(), uniform.tolist(), strict=True)]
    assert drawn_from(logits, uniform).tolist() == expected
    assert drawn_from(logits.log_softmax(-1), uniform).tolist() == expected


def test_a_draw_gives_each_token_its_share_of_the_unit_interval() -> None:
    probabilities = [0.0, 0.5, 0.0, 0.3, 0.2, 0.0]
    n = 1000
    uniform = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    log_probs = torch.tensor(probabilities, dtype=torch.float64).log().expand(n, -1)
    assert drawn_from(log_probs, uniform).bincount(minlength=6).tolist() == [0, 500, 0, 300, 200, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_draw_at_the_ends_of_the_interval_never_takes_an_impossible_token(dtype: torch.dtype) -> None:
    log_probs = torch.tensor([[0.0, 0.1, 0.9, 0.0]] * 2, dtype=dtype).log()
    uniform = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    assert drawn_from(log_probs, uniform).tolist() == [1, 2]


def test_no_impossible_token_is_drawn_at_either_end() -> None:
    logits = torch.full((2, 10_000), -math.inf)
    logits[:, [300, 7000]] = 0.0
    ends = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    assert drawn_from(logits, ends).tolist() == [300, 7000]


@pytest.mark.parametrize("bad", [[math.nan, 0.0, 1.0], [math.inf, 0.0, 1.0], [-math.inf] * 3])
@pytest.mark.parametrize("settings", [GREEDY, Sampling(), Sampling(top_p=0.9, min_p=0.1)])
def test_a_row_without_a_distribution_is_told_and_spoils_no_other(bad: list[float], settings: Sampling) -> None:
    logits = torch.tensor([bad, [0.0, 2.0, 1.0]])
    both = [settings] * 2
    tokens, log_probs = next_tokens(logits, RowSettings.of(both, CPU), torch.tensor([0.5, 0.5]), kind_of(both))
    assert log_probs.isnan().tolist() == [True, False]
    assert all(0 <= token < 3 for token in tokens.tolist())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("settings", [Sampling(), Sampling(top_p=0.9), Sampling(top_k=100), Sampling(top_k=5)])
def test_a_row_without_a_distribution_spoils_no_other_in_a_large_vocabulary(bad: float, settings: Sampling) -> None:
    logits = torch.randn(2, 9000, generator=torch.Generator().manual_seed(0))
    both, half = [settings] * 2, torch.tensor([0.5, 0.5])
    _, expected = next_tokens(logits, RowSettings.of(both, CPU), half, kind_of(both))
    logits[0] = bad
    tokens, log_probs = next_tokens(logits, RowSettings.of(both, CPU), half, kind_of(both))
    assert log_probs[0].isnan()
    assert log_probs[1] == expected[1]
    assert all(0 <= token < 9000 for token in tokens.tolist())


def test_how_much_has_to_be_done() -> None:
    assert kind_of([GREEDY, None, Sampling(top_k=1)]) == "greedy"
    assert kind_of([GREEDY, Sampling()]) == "plain"
    assert kind_of([Sampling(), Sampling(min_p=0.1)]) == "likely"
    assert kind_of([Sampling(min_p=0.1), Sampling(top_p=0.5)]) == "cut"
