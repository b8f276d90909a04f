"""Larger models, lower losses: on the text that was read and on one that was not (Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study
from regard.studies.scaling import power_law
from regard.training.estimate import count_parameters

DOMAINS = ("own", "other")
STRAIGHT = 0.95


@register_study
class Sizes(Study):
    id: ClassVar[str] = "larger"
    claim: ClassVar[str] = "Loss falls with the size of the model along a power law, also on text of another kind."
    source: ClassVar[str] = (
        "Radford et al. 2019, figures 1 and 4; here on world:stories, and without further training on stories that "
        "tell more and go on for longer"
    )
    rule: ClassVar[str] = (
        "at the same number of tokens both losses fall with every step in size, and a straight line through their "
        "logarithms has R^2 of at least 0.95; the line through what is above the best possible loss is reported"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        own, other = lab.pick(
            ("facts=1&events=2&train=3000&valid=150", "facts=3&events=6&valid=60"),
            ("facts=1&events=2&train=6000&valid=200", "facts=3&events=6&valid=100"),
            ("train=20000&valid=200", "facts=4&events=30&valid=100"),
        )
        found: dict[str, Any] = {"parameters": [], "own": [], "other": [], "excess": []}
        for width in lab.pick((8, 16, 32, 64), (8, 16, 32, 64), (64, 128, 256, 512)):
            run = lab.train(
                "gpt",
                f"world:stories?{own}",
                f"gpt-{width}",
                d_model=width,
                n_layers=2,
                n_heads=2,
                budget=lab.pick("150steps", "300steps", "600steps"),
                batch_size=lab.pick(16, 16, 64),
                evaluate_every=10**6,
            )
            found["parameters"].append(count_parameters(run.model))
            report = run.evaluate()
            found["own"].append(report.scores["loss"])
            found["excess"].append(report.scores["excess"])
            found["other"].append(run.evaluate(f"world:stories?{other}").scores["loss"])
        return found | {"fit": {name: fit_of(found["parameters"], found[name]) for name in (*DOMAINS, "excess")}}

    def judge(self, found: Sequence[Found]) -> Verdict:
        sizes = [f"{count:,}" for count in found[0]["parameters"]]
        losses = {name: np.mean([one[name] for one in found], axis=0) for name in DOMAINS}
        told = "; ".join(
            f"{name} {', '.join(f'{loss:.3f}' for loss in losses[name])}, R^2 {mean(found, 'fit', name, 'r2'):.3f}, "
            f"exponent {mean(found, 'fit', name, 'slope'):.3f}"
            for name in DOMAINS
        )
        above = f"of what own is above the best possible loss R^2 {mean(found, 'fit', 'excess', 'r2'):.3f}"
        return judged(found, _is_met, f"loss at {', '.join(sizes)} parameters: {told}; {above}")

    def figure(self, found: Sequence[Found]) -> str:
        sizes = found[0]["parameters"]
        losses = {name: np.mean([one[name] for one in found], axis=0).tolist() for name in DOMAINS}
        lines = [Series(name, list(zip(sizes, losses[name], strict=True))) for name in DOMAINS]
        return line_chart("Loss by size", lines, Axis("parameters", log=True), Axis("nats a word", log=True))


def fit_of(sizes: Sequence[float], losses: Sequence[float]) -> dict[str, float]:
    """Slope and R^2 of the straight line through the logarithms."""
    law = power_law(list(zip(sizes, losses, strict=True)))
    assert law is not None
    return {"slope": -law.b, "r2": law.r2}


def _is_met(one: Found) -> bool:
    return all(
        all(larger < smaller for smaller, larger in pairwise(one[name])) and one["fit"][name]["r2"] >= STRAIGHT
        for name in DOMAINS
    )
