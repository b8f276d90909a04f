"""N past hours to M future hours: a forecaster against the same hour of last week."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.data.worlds.electricity import ElectricityMarket
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

NAMES = ("forecaster", "weekly", "daily", "optimum")


@register_study
class Electricity(Study):
    id: ClassVar[str] = "electricity"
    claim: ClassVar[str] = (
        "A sequence model forecasts the hours of tomorrow's electricity market better than last week's."
    )
    source: ClassVar[str] = "lecture on sequence shapes, many to many; a generated market whose best forecast is known"
    rule: ClassVar[str] = "the mean absolute error is below that of the same hour a week before, and of the day before"

    def measure(self, lab: Lab) -> dict[str, Any]:
        days = lab.pick((300, 60), (730, 180), (1460, 360))
        data = f"world:electricity?train={days[0]}&valid={days[1]}&seed={lab.seed}"
        market = ElectricityMarket(train=days[0], valid=days[1], seed=lab.seed)
        run = lab.train("forecaster", data, "market", budget=lab.pick("200steps", "1200steps", "3000steps"))
        report = run.evaluate().to_dict()
        return {
            "forecaster": report["mae"],
            "weekly": report["weekly_naive_mae"],
            "daily": report["daily_naive_mae"],
            "optimum": market.best["mae"],
        }

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(f"{name} {mean(found, name):.2f}" for name in NAMES)
        return judged(
            found, lambda one: one["forecaster"] < min(one["weekly"], one["daily"]), f"mean absolute error: {told}"
        )

    def figure(self, found: Sequence[Found]) -> str:
        lines = [Series(name, [(seed, one[name]) for seed, one in enumerate(found)]) for name in NAMES]
        return line_chart("Error of tomorrow's prices", lines, Axis("seed"), Axis("mean absolute error of the price"))
