"""Deep LSTMs and residual connections, and the two penalties of the beam (Wu et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.decoding.text import options_from
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.translating import PLAIN, sentences
from regard.studies.registry import register_study

WIRINGS = {"plain": False, "residual": True}
ALPHA, BETA = 0.6, 0.2
SEARCHES = {"none": (0.0, 0.0), "alpha": (ALPHA, 0.0), "beta": (0.0, BETA), "both": (ALPHA, BETA)}
COVERED = 0.5  # attention that a source word must have got in all
NOISE = 0.01


@register_study
class Depth(Study):
    id: ClassVar[str] = "deep_lstm"
    claim: ClassVar[str] = (
        "Residual connections let LSTMs be eight layers deep, and a beam wants to be told of length and cover."
    )
    source: ClassVar[str] = (
        "Wu et al. 2016, sections 3.1 and 7; depth here on world:stories, beams on world:translation"
    )
    rule: ClassVar[str] = (
        "held-out loss of eight plain layers is above that of four, of eight residual ones at most 1% above that of "
        "four; a length penalty brings the ratio of lengths closer to 1, and a coverage penalty lowers the share of "
        "source words that got less than half a unit of attention"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        data = lab.pick(
            "world:stories?facts=1&events=1&train=1500&valid=60",
            "world:stories?facts=1&events=1&train=3000&valid=100",
            "world:stories?facts=1&events=4&train=10000&valid=200",
        )
        training = {"budget": lab.pick("120steps", "300steps", "300steps"), "batch_size": lab.pick(8, 8, 64)}
        training |= {"evaluate_every": 10**6, "d_model": lab.pick(32, 32, 256), "norm": "none"}
        found: dict[str, Any] = {}
        for kind, residual in WIRINGS.items():
            found[kind] = {}
            for depth in lab.pick((4, 8), (4, 8), (2, 4, 8)):
                given = training | {"n_layers": depth, "residual": residual}
                run = lab.train("lstm", data, f"{kind}-{depth}", **given)
                found[kind][str(depth)] = run.evaluate().scores["loss"]
        return found | {"beams": self._beams(lab)}

    def _beams(self, lab: Lab) -> dict[str, dict[str, float]]:
        """Ratio of lengths and share of words not covered, by search, of a small GNMT that has still much to learn."""
        data = sentences(4, lab.pick(6, 8, 12), lab.pick(4_000, 8_000, 30_000), 200)
        size = {"d_model": lab.pick(32, 48, 128), "n_layers": lab.pick(2, 3, 8), "dropout": 0.0}
        budget = lab.pick("150steps", "300steps", "400steps")
        run = lab.train("gnmt", data, "gnmt", budget=budget, lr=lab.pick(5e-3, 5e-3, 2e-3), **size, **PLAIN)
        pairs = run.dataset.examples[: lab.pick(40, 60, 200)]
        return {name: _searched(run, pairs, *penalties) for name, penalties in SEARCHES.items()}

    def judge(self, found: Sequence[Found]) -> Verdict:
        losses = "; ".join(
            f"{kind} " + ", ".join(f"{mean(found, kind, depth):.3f} at {depth}" for depth in found[0][kind])
            for kind in WIRINGS
        )
        ratio = " and ".join(f"{mean(found, 'beams', name, 'ratio'):.3f}" for name in ("none", "alpha"))
        missed = " and ".join(f"{mean(found, 'beams', name, 'uncovered'):.1%}" for name in ("none", "beta"))
        parts = [_parts(one) for one in found]
        met = ", ".join(f"{name} {sum(one[name] for one in parts)}" for name in parts[0])
        reason = (
            f"loss by depth: {losses}; ratio of lengths without and with alpha {ratio}; uncovered without and with "
            f"beta {missed}; seeds that meet each part: {met}"
        )
        return judged(found, lambda one: all(_parts(one).values()), reason)

    def figure(self, found: Sequence[Found]) -> str:
        lines = [Series(kind, [(float(n), mean(found, kind, n)) for n in found[0][kind]]) for kind in WIRINGS]
        return line_chart("Loss by depth", lines, Axis("layers"), Axis("nats a word"))


def _searched(run: Any, pairs: Sequence[Any], alpha: float, beta: float) -> dict[str, float]:
    """What a beam with these penalties writes, against what was to be written."""
    options = options_from({"beam": 6, "length_penalty": "gnmt", "alpha": alpha, "coverage": beta})
    written = run.task.written(run.model, run.processor, [pair.source for pair in pairs], options, attention=True)
    lengths = sum(len(one.text.split()) for one in written)
    # The end of a source is no word of it.
    looked = [one.attention.sum(0)[:-1] for one in written]
    missed = sum(int((mass < COVERED).sum()) for mass in looked)
    return {
        "ratio": lengths / sum(len(pair.target.split()) for pair in pairs),
        "uncovered": missed / sum(len(mass) for mass in looked),
    }


def _parts(one: Found) -> dict[str, bool]:
    """Each part of the rule, and whether a seed meets it."""
    plain, residual, beams = one["plain"], one["residual"], one["beams"]
    return {
        "plain depth hurts": plain["8"] > plain["4"],
        "residual depth does not": residual["8"] <= residual["4"] * (1 + NOISE),
        "alpha": abs(beams["alpha"]["ratio"] - 1) < abs(beams["none"]["ratio"] - 1),
        "beta": beams["beta"]["uncovered"] < beams["none"]["uncovered"],
    }
