"""How the vectors of a text become one: its last state, or something better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from regard.charts.chart import bar_chart
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

POOLINGS = ("last", "first", "mean", "max", "attention")
POINTS = 0.1


@register_study
class Poolings(Study):
    id: ClassVar[str] = "pooling"
    claim: ClassVar[str] = (
        "The last state of a recurrence is a naive summary of a long text; attention makes a better one."
    )
    source: ClassVar[str] = (
        "lecture on sequence shapes, many to one; here on world:reviews, where one sentence of many counts"
    )
    rule: ClassVar[str] = (
        "over the states of a vanilla RNN that reads left to right, attention with a learned query is at least 10 "
        "points above the last state in accuracy on long reviews; the others are reported"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        sentences = lab.pick(6, 12, 28)
        data = f"world:reviews?min_sentences={sentences}&max_sentences={sentences}&train=20000&valid=300"
        found = {}
        for form in POOLINGS:
            run = lab.train(
                "classifier",
                data,
                form,
                encoder="rnn",
                bidirectional=False,
                pooling=form,
                d_model=lab.pick(48, 64, 128),
                dropout=0.0,
                lr=lab.pick(3e-3, 3e-3, 1e-3),
                budget=lab.pick("500steps", "800steps", "1200steps"),
                evaluate_every=10**6,
            )
            found[form] = run.evaluate().to_dict()["accuracy"]
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(f"{form} {mean(found, form):.1%}" for form in POOLINGS)
        return judged(found, lambda one: one["attention"] >= one["last"] + POINTS, f"accuracy: {told}")

    def figure(self, found: Sequence[Found]) -> str:
        rows = [(form, mean(found, form)) for form in POOLINGS]
        ends = [(min(one[form] for one in found), max(one[form] for one in found)) for form in POOLINGS]
        return bar_chart("Accuracy by pooling", rows, "accuracy, lowest to highest seed", ends)
