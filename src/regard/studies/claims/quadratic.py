"""Attention's cost grows with the square of the length; a recurrence's with the length, and its step not at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.mixer import Mixer
from regard.core.stack import MixerConfig
from regard.core.state import State
from regard.core.tap import record
from regard.mixers.attention import AttentionConfig
from regard.mixers.mamba import MambaConfig
from regard.mixers.rnn import RnnConfig
from regard.mixers.s4d import S4dConfig
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.timing import exponent, kept_bytes, seconds_of_each
from regard.studies.registry import register_study

WIDTH = 32
MIXERS: dict[str, MixerConfig] = {
    "attention": AttentionConfig(WIDTH, 2),
    "rnn": RnnConfig(WIDTH),
    "s4d": S4dConfig(WIDTH, 8),
    "mamba": MambaConfig(WIDTH, 8),
}
CONSTANT = ("rnn", "s4d", "mamba")
STEPS = 8


@register_study
class Quadratic(Study):
    id: ClassVar[str] = "quadratic"
    claim: ClassVar[str] = (
        "The cost of attention grows with the square of the length; that of a recurrence and of a state space with the "
        "length, and one step of theirs costs the same after any number of tokens."
    )
    source: ClassVar[str] = "lecture notes on self-attention: its cost is quadratic"
    rule: ClassVar[str] = (
        "memory with the scores written out grows with a power of 2 within 0.1, that of the others with 1 within 0.1; "
        "time over the last doubling of the length grows with a power above 1.6 for attention and below 1.4 for the "
        "others; their states have the same size after any number of tokens, and a step takes at most 1.5 times as long"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        lengths = lab.pick([512, 1024, 2048], [512, 1024, 2048, 4096], [2048, 4096, 8192, 16384])
        found: dict[str, Any] = {"lengths": lengths}
        for name, config in MIXERS.items():
            torch.manual_seed(lab.seed)
            mixer = config.build().to(lab.device)
            inputs = [torch.randn(1, length, WIDTH).to(lab.device) for length in lengths]
            costs = _costs(mixer, inputs)
            found[name] = costs | {
                "memory_exponent": exponent(lengths, costs["memory"]),
                "fused_memory_exponent": exponent(lengths, costs["fused_memory"]),
                "time_exponent": exponent(lengths[-2:], costs["time"][-2:]),
                "state_growth": costs["state"][-1] / costs["state"][0],
                "step_growth": costs["step"][-1] / costs["step"][0],
            }
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        attention = ", ".join(f"{mean(found, 'attention', key):.2f}" for key in ("memory_exponent", "time_exponent"))
        others = "; ".join(
            f"{name} {mean(found, name, 'memory_exponent'):.2f}, {mean(found, name, 'time_exponent'):.2f}, step "
            f"{mean(found, name, 'step_growth'):.2f} times"
            for name in CONSTANT
        )
        return judged(
            found,
            _met,
            f"powers of the length in memory and time: attention {attention} (memory by the fused kernel "
            f"{mean(found, 'attention', 'fused_memory_exponent'):.2f}; its state grows "
            f"{mean(found, 'attention', 'state_growth'):.0f} times); {others}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        lengths = found[0]["lengths"]
        lines = [
            Series(
                name, [(n, mean([{"v": one[name]["time"][i]} for one in found], "v")) for i, n in enumerate(lengths)]
            )
            for name in MIXERS
        ]
        axes = Axis("tokens", log=True), Axis("seconds", log=True)
        return line_chart("Time of one layer by length", lines, *axes)


def _met(one: Found) -> bool:
    attention = one["attention"]
    return (
        abs(attention["memory_exponent"] - 2) <= 0.1
        and attention["time_exponent"] > 1.6
        and all(abs(one[name]["memory_exponent"] - 1) <= 0.1 for name in CONSTANT)
        and all(one[name]["time_exponent"] < 1.4 for name in CONSTANT)
        and all(one[name]["state_growth"] == 1 and one[name]["step_growth"] <= 1.5 for name in CONSTANT)
    )


def _costs(mixer: Mixer, inputs: Sequence[Tensor]) -> dict[str, Sequence[float]]:
    """By length: seconds of a forward pass, bytes kept for a backward one, bytes and seconds of going on from there."""

    def read(x: Tensor) -> Tensor:
        with record(mixer, "weights"):
            return mixer(x)[0]

    fused = [kept_bytes(partial(mixer, x)) for x in inputs]
    memory = [kept_bytes(partial(read, x)) for x in inputs]
    with torch.no_grad():
        states = [mixer(x, mixer.init_state(1))[1] for x in inputs]
        return {
            "time": seconds_of_each([partial(mixer, x) for x in inputs], 5),
            "memory": memory,
            "fused_memory": fused,
            "state": [state.nbytes for state in states],
            "step": seconds_of_each([partial(_go_on, mixer, x, s) for x, s in zip(inputs, states, strict=True)], 30),
        }


def _go_on(mixer: Mixer, x: Tensor, state: State) -> None:
    """Some steps from a state."""
    for _ in range(STEPS):
        _, state = mixer.step(x[:, 0], state)
