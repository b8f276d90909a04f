"""Four ways of giving the encoder to the decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from regard.charts.chart import bar_chart
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.translating import GATED, PLAIN, held_out_perplexity, matched, sentences
from regard.studies.registry import register_study
from regard.training.estimate import count_parameters

VECTOR = ("first", "every", "both")
WAYS = (*VECTOR, "attention")


@register_study
class Passing(Study):
    id: ClassVar[str] = "passing"
    claim: ClassVar[str] = "Of the ways to give the encoder to the decoder, attention is the best."
    source: ClassVar[str] = "lecture on sequence shapes, where it is put as a question; here on world:translation"
    rule: ClassVar[str] = (
        "at the same number of parameters and steps attention has a higher BLEU and a lower held-out perplexity than "
        "the vector as first state, at every step, or both"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        data = sentences(4, lab.pick(6, 8, 20), lab.pick(6_000, 10_000, 40_000), 200)
        width = lab.pick(48, 64, 256)
        training = PLAIN | {
            "dropout": 0.0,
            "budget": lab.pick("150steps", "700steps", "700steps"),
            "lr": lab.pick(5e-3, 5e-3, 2e-3),
        }
        found: dict[str, Any] = {}
        for way in WAYS:
            name, settings = "bahdanau", {"d_model": width}
            if way in VECTOR:
                name, settings = "seq2seq", matched(data, ("bahdanau", settings), "seq2seq", give=way, **GATED)
            run = lab.train(name, data, way, **settings, **training)
            scores = run.evaluate().to_dict()
            found[way] = {key: scores[key] for key in ("bleu", "chrf", "exact_match")}
            found[way] |= {"perplexity": held_out_perplexity(run), "parameters": count_parameters(run.model)}
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(
            f"{way} {mean(found, way, 'bleu'):.1f} and {mean(found, way, 'perplexity'):.2f}" for way in WAYS
        )
        return judged(found, _is_met, f"BLEU and perplexity by way: {told}")

    def figure(self, found: Sequence[Found]) -> str:
        each = [[one[way]["bleu"] for one in found] for way in WAYS]
        rows = [(way, mean(found, way, "bleu")) for way in WAYS]
        ends = [(min(values), max(values)) for values in each]
        return bar_chart("How the encoder reaches the decoder", rows, "BLEU, lowest to highest seed", ends)


def _is_met(one: Found) -> bool:
    looking = one["attention"]
    return all(looking["bleu"] > one[way]["bleu"] and looking["perplexity"] < one[way]["perplexity"] for way in VECTOR)
