"""Many rows with settings of their own equal the readable forms, row by row."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from regard.decoding import drawing
from regard.decoding.drawing import RowSettings, drawn_from, kept, kind_of, next_tokens
from regard.decoding.logits_processing import GREEDY, Sampling, draw, raw_log_probs, warped_log_probs

SETTINGS = [
    GREEDY,
    Sampling(),
    Sampling(0.7),
    Sampling(top_k=1),
    Sampling(top_k=3),
    Sampling(2.0, top_k=1000),
    Sampling(top_p=0.5),
    Sampling(top_p=1e-9),
    Sampling(0.5, top_k=7, top_p=0.8),
    Sampling(min_p=0.3),
    Sampling(min_p=1.0),
    Sampling(1.5, top_k=20, top_p=0.95, min_p=0.01),
]
CPU = torch.device("cpu")


def logits_of(width: int, form: str) -> Tensor:
    generator = torch.Generator().manual_seed(width)
    x = torch.randn(len(SETTINGS), width, generator=generator, dtype=torch.float64) * 2
    # Equal values, so that the order among them counts, and tokens that are impossible.
    return {"different": x, "equal": x.round(), "some impossible": x.masked_fill(x < -1, -math.inf)}[form]


def warped(logits: Tensor, settings: Sampling) -> Tensor:
    return warped_log_probs(logits[None], settings)[0]


@pytest.mark.parametrize("form", ["different", "equal", "some impossible"])
@pytest.mark.parametrize("width", [2, 9, 300])
@pytest.mark.parametrize("candidates", [1024, 5])
def test_what_is_kept_is_what_the_readable_forms_keep(
    width: int, form: str, candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "CANDIDATES", candidates)
    logits = logits_of(width, form)
    tempered = torch.stack([(row - row.max()) / (s.temperature or 1) for row, s in zip(logits, SETTINGS, strict=True)])
    found = kept(tempered, RowSettings.of(SETTINGS, CPU))
    for row, settings, mine in zip(logits, SETTINGS, found, strict=True):
        if not settings.greedy:
            expected = warped(row, settings) > -math.inf
            assert (mine & (row > -math.inf)).tolist() == expected.tolist(), settings


@pytest.mark.parametrize("form", ["different", "equal", "some impossible"])
@pytest.mark.parametrize("width", [2, 9, 300])
def test_a_row_draws_the_same_beside_any_other(width: int, form: str) -> None:
    """Against the readable draw: alone, beside another, and all together."""
    logits = logits_of(width, form)
    uniform = torch.rand(len(SETTINGS), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = [
        int(row.argmax()) if s.greedy else int(draw(warped(row, s)[None], u[None]))
        for row, s, u in zip(logits, SETTINGS, uniform, strict=True)
    ]
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
    assert drawn_from(logits, uniform).tolist() == draw(logits.log_softmax(-1), uniform).tolist()


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


def test_how_much_has_to_be_done() -> None:
    assert kind_of([GREEDY, None, Sampling(top_k=1)]) == "greedy"
    assert kind_of([GREEDY, Sampling()]) == "plain"
    assert kind_of([Sampling(), Sampling(min_p=0.1)]) == "likely"
    assert kind_of([Sampling(min_p=0.1), Sampling(top_p=0.5)]) == "cut"
