"""Looking at the source against remembering it as one vector, by the length of the sentence (Bahdanau et al. 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.translating import GATED, PLAIN, bleu_by_length, matched, sentences
from regard.studies.registry import register_study
from regard.training.estimate import count_parameters

NAMES = ("bahdanau", "seq2seq")


@register_study
class Search(Study):
    id: ClassVar[str] = "looking_back"
    claim: ClassVar[str] = (
        "A decoder that looks at the source keeps its quality on long sentences, one vector does not."
    )
    source: ClassVar[str] = "Bahdanau, Cho, Bengio 2014, figure 2 and section 5.2; here on world:translation"
    rule: ClassVar[str] = (
        "BLEU with attention is above that of one vector at every length; one vector loses over half of its BLEU from "
        "a length to four times that, attention under a fifth up to the longest that was trained; the source word "
        "looked at most is the right one in at least 90% of cases"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        longest = lab.pick(6, 10, 20)
        data = sentences(4, longest, lab.pick(6_000, 20_000, 40_000), 200)
        width = lab.pick(48, 64, 64)
        training = PLAIN | {"budget": lab.pick("250steps", "1200steps", "900steps"), "lr": lab.pick(5e-3, 2e-3, 2e-3)}
        # Hidden words make a decoder look at the source instead of at what it has just written; alike for both.
        training["word_dropout"] = 0.15
        settings = {"bahdanau": {"d_model": width}}
        settings["seq2seq"] = matched(data, ("bahdanau", {"d_model": width}), "seq2seq", **GATED)
        lengths = lab.pick((4, 6, 16), (5, 10, 20), (10, 20, 40, 60))
        found: dict[str, Any] = {"trained": [length for length in lengths if length <= longest][-1]}
        for name in NAMES:
            run = lab.train(name, data, name, **settings[name], **training)
            found[name] = {"bleu": bleu_by_length(run, lengths, 100), "parameters": count_parameters(run.model)}
            if name == "bahdanau":
                found["aligned"] = run.evaluate().to_dict()["alignment_accuracy"]
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = "; ".join(
            f"{name} " + ", ".join(f"{mean(found, name, 'bleu', n):.0f} at {n}" for n in found[0][name]["bleu"])
            for name in NAMES
        )
        return judged(found, _is_met, f"BLEU by words: {told}; aligned {mean(found, 'aligned'):.1%}")

    def figure(self, found: Sequence[Found]) -> str:
        lines = [
            Series(name, [(float(n), mean(found, name, "bleu", n)) for n in found[0][name]["bleu"]]) for name in NAMES
        ]
        return line_chart("BLEU by length", lines, Axis("words of the source"), Axis("BLEU", low=0, high=100))


def _is_met(one: Found) -> bool:
    looking, vector = (one[name]["bleu"] for name in NAMES)
    shortest = next(iter(vector))
    trained, fourfold = str(one["trained"]), str(4 * int(shortest))
    return (
        all(looking[n] > vector[n] for n in vector)
        and vector[fourfold] < vector[shortest] / 2
        and looking[trained] > 0.8 * looking[shortest]
        and one["aligned"] >= 0.9
    )
