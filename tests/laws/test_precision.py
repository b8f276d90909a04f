"""Texts are generated in half precision and under autocast, from prompts of equal and of unequal length."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from regard.core import registry
from regard.core.model import logits_of
from regard.decoding.beam import beam_search
from regard.decoding.generate import Limits, generate
from regard.decoding.logits_processing import GREEDY, Sampling
from regard.laws.precision import MODES, Mode
from regard.laws.view import view

EOS, V = 0, 7
pytestmark = pytest.mark.usefixtures("unchecked_shapes")
EQUAL = [torch.tensor(tokens) for tokens in ([0, 3, 1], [0, 2, 2], [0, 1, 5])]
UNEQUAL = [torch.tensor(tokens) for tokens in ([0], [0, 3, 1, 2, 2], [0, 2])]
WRITERS = [name for name in registry.names() if registry.entry(name).task in ("text", "pairs", "captions")]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode.rounding > 1e-6], ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", WRITERS)
def test_a_text_is_generated_in_half_precision(name: str, mode: Mode) -> None:
    """What was drawn or searched for has, in float64, nearly the probability that was told with it."""
    entry = registry.entry(name)
    torch.manual_seed(1)
    model: Any = view(entry.config(V, "tiny").build_example().to(mode.dtype).eval())
    exact = copy.deepcopy(model).double()
    told = []
    with mode.running():
        for prompts in (EQUAL, UNEQUAL):
            for settings in (GREEDY, Sampling(1.5, top_k=5, top_p=0.95)):
                drawn = generate(model, prompts, limits=Limits(3, eos_id=EOS), settings=settings, seed=3)
                told += [(p, g.tokens, g.log_probs) for p, g in zip(prompts, drawn, strict=True)]
            beams = beam_search(model, prompts, width=2, max_tokens=3, eos_id=EOS)
            told += [(p, b.best[0].tokens, b.best[0].log_probs) for p, b in zip(prompts, beams, strict=True)]
    for prompt, tokens, log_probs in told:
        whole = torch.cat([prompt, torch.tensor(tokens)])
        expected = logits_of(exact, whole[None, :-1]).log_softmax(-1)[0, len(prompt) - 1 :]
        right = expected[torch.arange(len(tokens)), list(tokens)].tolist()
        assert log_probs == pytest.approx(right, abs=16 * mode.rounding)
