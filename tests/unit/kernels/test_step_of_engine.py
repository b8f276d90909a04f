"""Texts of the engine whose steps take the kernels are those that it writes without them."""

from __future__ import annotations

import pytest
import torch

from kernels.triton_here import DEVICE, needs_kernel
from regard.core.registry import build
from regard.decoding.ending import Limits
from regard.decoding.engine import Engine
from regard.decoding.logits_processing import GREEDY, Sampling
from regard.kernels import choice

MODELS = {
    "gpt": {"position": "learned", "norm": "layer", "activation": "gelu_tanh", "qk_norm": False, "bias": True},
    "gpt-modern": {},
    "mamba": {},
    "mamba2": {},
    "lstm": {},
}


def written(name: str, settings: Sampling) -> tuple[list[int], list[float]]:
    torch.manual_seed(0)
    model = build(name.partition("-")[0], vocab_size=11, size="tiny", **MODELS[name]).to(DEVICE).eval()
    found: list[tuple[int, int, float]] = []
    with Engine(model, 2, ahead=2) as engine:
        for row, length in enumerate((2, 1)):
            engine.submit(list(range(length)), Limits(3 - row), settings, seed=5, row=row)
        while engine.busy:
            found += [(drawn.request, drawn.token, drawn.log_prob) for drawn in engine.step()]
    found.sort(key=lambda drawn: drawn[0])
    return [token for _, token, _ in found], [log_prob for _, _, log_prob in found]


@needs_kernel
@pytest.mark.parametrize(("name", "settings"), [*((name, GREEDY) for name in MODELS), ("gpt", Sampling(min_p=0.05))])
def test_a_text_is_the_same_with_and_without_kernels(
    name: str, settings: Sampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, log_probs = written(name, settings)
    monkeypatch.setattr(choice, "_has_triton", lambda _device: False)
    expected, expected_log_probs = written(name, settings)
    assert tokens == expected
    assert log_probs == pytest.approx(expected_log_probs, abs=1e-4)
