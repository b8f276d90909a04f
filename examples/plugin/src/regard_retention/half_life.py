"""A study: half of what a head was told is left after its half-life."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged
from regard.studies.registry import register_study
from regard_retention.decay import half_life, log_decays
from regard_retention.retention import RetentionConfig, RetentionState

LONGEST = 200  # tokens, more than the half-life of the slowest of four heads


@register_study
class HalfLife(Study):
    id: ClassVar[str] = "half_life"
    claim: ClassVar[str] = "A head of retention has forgotten half of a token after ln 2 / -ln gamma more."
    source: ClassVar[str] = "Sun et al. 2023, section 2.1"
    rule: ClassVar[str] = "for every head more than half of the memory is left before its half-life, and not after it"

    @torch.no_grad()
    def measure(self, lab: Lab) -> dict[str, Any]:
        torch.manual_seed(lab.seed)
        mixer = RetentionConfig(16).build().double()
        state = mixer.init_state(1)
        sizes = []
        for t in range(LONGEST):
            token = torch.randn(1, 16).double() if t == 0 else torch.zeros(1, 16).double()  # zeros write nothing
            _, state = mixer.step(token, state)
            assert isinstance(state, RetentionState)
            sizes.append(state.memory[0].flatten(1).norm(dim=1))
        left = torch.stack(sizes) / sizes[0]  # (T, H)
        return {"half_lives": [half_life(log) for log in log_decays(mixer)], "left": left.T.tolist()}

    def judge(self, found: Sequence[Found]) -> Verdict:
        lives = ", ".join(f"{life:.1f}" for life in found[0]["half_lives"])
        return judged(found, _halved, f"half-lives of {lives} tokens")

    def figure(self, found: Sequence[Found]) -> str:
        one = found[0]
        lines = [
            Series(f"{life:.0f} tokens", [(float(t), share) for t, share in enumerate(left)])
            for life, left in zip(one["half_lives"], one["left"], strict=True)
        ]
        return line_chart("What is left of a token, by half-life", lines, Axis("tokens ago"), Axis("share"))


def _halved(one: Found) -> bool:
    """The rule, for the heads of one seed."""
    pairs = zip(one["half_lives"], one["left"], strict=True)
    return all(left[math.floor(life)] > 0.5 >= left[math.ceil(life)] for life, left in pairs)
