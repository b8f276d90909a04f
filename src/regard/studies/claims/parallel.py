"""In training the time steps of attention and of scans are computed together; those of an RNN one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.mixer import Mixer
from regard.core.stack import MixerConfig
from regard.mixers.attention import AttentionConfig
from regard.mixers.lstm import LstmConfig
from regard.mixers.mamba import MambaConfig
from regard.mixers.rnn import RnnConfig
from regard.mixers.s4d import S4dConfig
from regard.mixers.ssd import SsdConfig
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.timing import seconds
from regard.studies.registry import register_study

# Mamba's scan on a CPU walks from token to token and is shown beside them; its form that does not is SSD.
TOGETHER = ("attention", "s4d", "ssd")


@register_study
class Parallel(Study):
    id: ClassVar[str] = "parallel"
    claim: ClassVar[str] = (
        "In training, attention and scans compute all time steps in parallel; an RNN cannot, and slows down as the "
        "same tokens come in longer sequences."
    )
    source: ClassVar[str] = (
        "lecture notes on recurrent language models and causal self-attention: time steps in parallel"
    )
    rule: ClassVar[str] = (
        "at an equal number of tokens in a training step, the RNN's tokens a second at the longest length are at most "
        "those at the shortest; attention, S4D and SSD keep a larger share of their speed than the RNN does; and at "
        "the longest length attention trains more tokens a second than the RNN"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        width = lab.pick(64, 128, 512)
        tokens = lab.pick(2048, 4096, 65536)
        lengths = lab.pick([8, 32, 128, 512], [8, 32, 128, 512], [32, 128, 512, 2048])
        found: dict[str, Any] = {"lengths": lengths}
        for name, config in _mixers(width).items():
            torch.manual_seed(lab.seed)
            mixer = config.build().to(lab.device)
            speeds = []
            for length in lengths:
                x = torch.randn(tokens // length, length, width).to(lab.device)
                speeds.append(tokens / seconds(lambda x=x, mixer=mixer: _train_step(mixer, x)))
            found[name] = {"speeds": speeds, "longest": speeds[-1], "share": speeds[-1] / speeds[0]}
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(
            f"{name} {mean(found, name, 'share'):.2f} of its speed and {mean(found, name, 'longest'):,.0f} tokens/s"
            for name in _mixers(64)
        )
        return judged(
            found,
            lambda one: (
                one["rnn"]["share"] <= 1
                and all(one[name]["share"] > one["rnn"]["share"] for name in TOGETHER)
                and one["attention"]["longest"] > one["rnn"]["longest"]
            ),
            f"left at the longest length: {told}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        lengths = found[0]["lengths"]
        lines = [
            Series(
                name, [(n, sum(one[name]["speeds"][i] for one in found) / len(found)) for i, n in enumerate(lengths)]
            )
            for name in _mixers(64)
        ]
        axes = Axis("length of a sequence", log=True), Axis("tokens a second", log=True)
        return line_chart("Training speed at an equal number of tokens", lines, *axes)


def _mixers(width: int) -> dict[str, MixerConfig]:
    """One layer of each kind."""
    return {
        "attention": AttentionConfig(width, width // 32),
        "s4d": S4dConfig(width, 16),
        "ssd": SsdConfig(width, 16, 32, chunk=32),
        "mamba": MambaConfig(width, 16),
        "rnn": RnnConfig(width),
        "lstm": LstmConfig(width),
    }


def _train_step(mixer: Mixer, x: Tensor) -> None:
    mixer.zero_grad(set_to_none=True)
    mixer(x)[0].square().mean().backward()
