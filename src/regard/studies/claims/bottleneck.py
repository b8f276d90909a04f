"""One vector holds only so many symbols; attention does not have to put them all into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.studies.claims.fitting import accuracy, fit
from regard.studies.claims.recall import Copier, copying, symbol_rows
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

HELD_OUT = 10**6
RECALLED = 0.95
MODELS: dict[str, dict[str, Any]] = {
    "seq2seq": {"cell": "gru", "encoder": "gru", "give": "both", "n_layers": 1},
    "bahdanau": {},
}


@register_study
class Bottleneck(Study):
    id: ClassVar[str] = "bottleneck"
    claim: ClassVar[str] = "One vector is a bottleneck: how much can be copied through it is bound by its width."
    source: ClassVar[str] = (
        "lecture notes on recurrent language models: one state must hold all of the prefix; attention gets around it"
    )
    rule: ClassVar[str] = (
        "the longest string of random symbols of which one vector recalls 95% grows from the narrowest vector to the "
        "widest and stays below the longest tried; with attention it is longer at every width, and at the widest it is "
        "the longest tried"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        lengths = lab.pick((1, 2, 4, 8), (1, 2, 3, 4, 6, 8), (1, 2, 3, 4, 6, 8, 12, 16))
        steps = lab.pick(400, 800, 800)

        def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
            return symbol_rows(
                lab.pick(32, 64, 128), lengths[step % len(lengths)], HELD_OUT * (lab.seed + 1) + step, lab.device
            )

        found: dict[str, Any] = {}
        for name, settings in MODELS.items():
            found[name] = {}
            for width in lab.pick((8, 32), (8, 16, 32), (8, 16, 32)):
                torch.manual_seed(lab.seed)
                model = Copier(copying(name, d_model=width, **settings)).to(lab.device)
                fit(model, batch, steps, 1e-2)
                found[name][str(width)] = {
                    str(length): accuracy(model, *symbol_rows(300, length, lab.seed, lab.device)) for length in lengths
                }
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = [
            f"{name} {', '.join(f'{_mean_reach(found, name, width):.1f} at {width}' for width in found[0][name])}"
            for name in MODELS
        ]
        longest = list(found[0]["seq2seq"]["8"])[-1]
        return judged(found, _is_met, f"longest string copied, of up to {longest}, by width: {'; '.join(told)}")

    def figure(self, found: Sequence[Found]) -> str:
        lines = [
            Series(f"{name}, {width}", [(float(k), mean(found, name, width, k)) for k in found[0][name][width]])
            for name in MODELS
            for width in found[0][name]
        ]
        return line_chart(
            "Copying through one vector and with attention",
            lines,
            Axis("symbols to copy"),
            Axis("share recalled", low=0),
        )


def reach(recalled: Mapping[str, float]) -> int:
    """The longest string up to which every length is recalled."""
    longest = 0
    for length, share in recalled.items():
        if share < RECALLED:
            break
        longest = int(length)
    return longest


def _mean_reach(found: Sequence[Found], name: str, width: str) -> float:
    return sum(reach(one[name][width]) for one in found) / len(found)


def _is_met(one: Found) -> bool:
    vector, looking = ([reach(recalled) for recalled in one[name].values()] for name in MODELS)
    longest = int(list(one["seq2seq"]["8"])[-1])
    return (
        vector[0] < vector[-1] < longest
        and all(far > near for near, far in zip(vector, looking, strict=True))
        and looking[-1] == longest
    )
