"""Reading the source backwards (Sutskever et al. 2014, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from regard.charts.chart import bar_chart
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.translating import PLAIN, held_out_perplexity, sentences
from regard.studies.registry import register_study

ORDERS = {"forward": False, "reversed": True}
BEAMS = (1, 2, 12)


@register_study
class Reversed(Study):
    id: ClassVar[str] = "reversal"
    claim: ClassVar[str] = "A fixed vector translates better when the source is read from its end to its beginning."
    source: ClassVar[str] = "Sutskever, Vinyals, Le 2014, section 3.3; here on world:translation"
    rule: ClassVar[str] = (
        "with the source reversed the held-out perplexity is lower and BLEU is higher; beams of 1, 2 and 12 are "
        "reported and decide nothing"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        data = sentences(4, lab.pick(6, 8, 12), lab.pick(10_000, 20_000, 30_000), 200)
        training = PLAIN | {
            "dropout": 0.0,
            "budget": lab.pick("400steps", "1500steps", "2500steps"),
            "lr": lab.pick(5e-3, 3e-3, 2e-3),
        }
        found: dict[str, Any] = {}
        for name, reverse in ORDERS.items():
            size = {"d_model": lab.pick(64, 64, 256), "n_layers": 2, "give": "first", "model.reverse": reverse}
            run = lab.train("seq2seq", data, name, **size, **training)
            found[name] = {"perplexity": held_out_perplexity(run), "bleu": run.evaluate().to_dict()["bleu"]}
            beams = {beam: run.evaluate(beam=beam, limit=lab.pick(40, 60, 200)) for beam in BEAMS}
            found[name]["beams"] = {str(beam): report.to_dict()["bleu"] for beam, report in beams.items()}
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = "; ".join(
            f"{name}: perplexity {mean(found, name, 'perplexity'):.2f}, BLEU {mean(found, name, 'bleu'):.1f}, by beam "
            + ", ".join(f"{mean(found, name, 'beams', str(beam)):.1f} ({beam})" for beam in BEAMS)
            for name in ORDERS
        )
        return judged(
            found,
            lambda one: (
                one["reversed"]["perplexity"] < one["forward"]["perplexity"]
                and one["reversed"]["bleu"] > one["forward"]["bleu"]
            ),
            told,
        )

    def figure(self, found: Sequence[Found]) -> str:
        rows = [(f"{name}, beam {beam}", mean(found, name, "beams", str(beam))) for name in ORDERS for beam in BEAMS]
        return bar_chart("Forward and reversed source", rows, "BLEU")
