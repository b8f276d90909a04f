"""A recurrence reads a long sequence at the price of a short one, token by token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import torch

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.stack import MixerConfig
from regard.mixers.gru import GruConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.rnn import RnnConfig
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.timing import seconds_of_each
from regard.studies.registry import register_study

WIDTH = 64
LENGTHS = [2**power for power in range(7, 15)]
MIXERS: dict[str, MixerConfig] = {"rnn": RnnConfig(WIDTH), "lstm": LstmConfig(WIDTH), "gru": GruConfig(WIDTH)}
APART = 1.3


@register_study
class Scale(Study):
    id: ClassVar[str] = "scale"
    claim: ClassVar[str] = "RNNs scale to long sequences: time a token and the size of the state stay the same."
    source: ClassVar[str] = "lecture notes on RNNs: they scale to long sequences"
    rule: ClassVar[str] = (
        "from 128 to 16,384 tokens the slowest time a token is at most 30% above the fastest, and the state has the "
        "same number of bytes, for RNN, LSTM and GRU"
    )

    @torch.no_grad()
    def measure(self, lab: Lab) -> dict[str, Any]:
        found: dict[str, Any] = {"lengths": LENGTHS}
        for name, config in MIXERS.items():
            torch.manual_seed(lab.seed)
            mixer = config.build().to(lab.device)
            inputs = [torch.randn(1, length, WIDTH).to(lab.device) for length in LENGTHS]
            spent = seconds_of_each([partial(mixer, x) for x in inputs], lab.pick(3, 9, 9))
            each = [1e6 * seconds / length for seconds, length in zip(spent, LENGTHS, strict=True)]
            states = {mixer(x, mixer.init_state(1))[1].nbytes for x in inputs}
            found[name] = {"microseconds": each, "apart": max(each) / min(each), "states": sorted(states)}
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(
            f"{name} {mean(found, name, 'apart'):.2f} times between slowest and fastest, "
            f"state {found[0][name]['states']} bytes"
            for name in MIXERS
        )
        return judged(
            found,
            lambda one: all(one[name]["apart"] <= APART and len(one[name]["states"]) == 1 for name in MIXERS),
            told,
        )

    def figure(self, found: Sequence[Found]) -> str:
        lines = [
            Series(
                name, [(n, sum(o[name]["microseconds"][i] for o in found) / len(found)) for i, n in enumerate(LENGTHS)]
            )
            for name in MIXERS
        ]
        axes = Axis("tokens", log=True), Axis("microseconds a token")
        return line_chart("Time a token by length", lines, *axes)
