"""Drawing without sorting equals the readable forms, on a CUDA device or in Triton's interpreter."""

from __future__ import annotations

import math

import pytest
import torch
from decoding.readable import SETTINGS

from kernels.triton_here import DEVICE, INTERPRETED, needs_kernel
from regard.decoding.drawing import drawn_from, next_tokens
from regard.decoding.logits_processing import RowSettings, Sampling, kind_of, raw_log_probs, warped_log_probs


@needs_kernel
@pytest.mark.parametrize("form", ["different", "equal", "some impossible"])
@pytest.mark.parametrize("width", [2, 300, 2500])
def test_the_kernel_draws_what_the_readable_forms_draw(width: int, form: str) -> None:
    generator = torch.Generator().manual_seed(width)
    x = torch.randn(len(SETTINGS), width, generator=generator) * 2
    some = x.masked_fill(x < x.amax(1, keepdim=True) - 1, -math.inf)
    x = {"different": x, "equal": x.round(), "some impossible": some}[form]
    for turn in (0, 2) if INTERPRETED else range(3):  # the interpreter needs seconds for one
        uniform = torch.rand(len(SETTINGS), generator=generator, dtype=torch.float64)
        uniform[1:3] = torch.tensor([0.0, 1 - 2**-53]) if turn == 2 else uniform[1:3]
        expected = [
            int(row.argmax()) if s.greedy else int(drawn_from(warped_log_probs(row[None], s), u[None]))
            for row, s, u in zip(x, SETTINGS, uniform, strict=True)
        ]
        settings = RowSettings.of(SETTINGS, torch.device(DEVICE))
        tokens, log_probs = next_tokens(x.to(DEVICE), settings, uniform.to(DEVICE), kind_of(SETTINGS))
        assert tokens.tolist() == expected
        raw = raw_log_probs(x).gather(1, tokens.cpu()[:, None])[:, 0]
        torch.testing.assert_close(log_probs.cpu(), raw, rtol=1e-5, atol=1e-5)


@needs_kernel
@pytest.mark.parametrize("settings", [Sampling(), Sampling(top_k=2, top_p=0.9, min_p=0.1)])
@pytest.mark.parametrize("bad", [[math.nan, 0.0, 1.0], [math.inf, 0.0, 1.0], [-math.inf] * 3])
def test_a_row_without_a_distribution_is_told_and_spoils_no_other(bad: list[float], settings: Sampling) -> None:
    logits, both = torch.tensor([bad, [0.0, 2.0, 1.0]], device=DEVICE), [settings] * 2
    uniform = torch.full((2,), 0.5, dtype=torch.float64, device=DEVICE)
    tokens, log_probs = next_tokens(logits, RowSettings.of(both, logits.device), uniform, kind_of(both))
    assert log_probs.isnan().tolist() == [True, False]
    assert all(0 <= token < 3 for token in tokens.tolist())
