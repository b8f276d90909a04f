"""Small probes of single skills, and whether who is good at them is good at text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from regard.charts.chart import bar_chart
from regard.data.worlds import world
from regard.data.worlds.probe import Probe
from regard.studies.claims.fitting import Rows, right, trained
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

# Six tasks of MAD, and three more. Every answer is determined: the best possible share is 1 in all of them.
PROBES: dict[str, dict[str, int]] = {
    "recall": {"pairs": 12, "keys": 4},
    "fuzzy_recall": {"pairs": 8, "keys": 2},
    "noisy_recall": {"pairs": 8, "keys": 3},
    "selective_copy": {"length": 12, "words": 4, "kinds": 4},
    "compression": {"length": 6, "kinds": 8},
    "memorisation": {"pairs": 8, "keys": 32},
    "multi_recall": {"pairs": 4, "keys": 8},
    "parity": {"length": 10},
    "majority": {"length": 11},
}
MODELS: dict[str, dict[str, Any]] = {
    "rnn": {"d_model": 64, "n_layers": 2},
    "lstm": {"d_model": 32, "n_layers": 2},
    "gpt": {"d_model": 32, "n_layers": 2, "n_heads": 2},
    "s4d": {"d_model": 32, "n_layers": 2, "d_state": 16},
    "mamba": {"d_model": 32, "n_layers": 2, "d_state": 8},
}
TEXT = "world:stories?train=4000&valid=100"


@register_study
class Mad(Study):
    id: ClassVar[str] = "mad"
    claim: ClassVar[str] = (
        "The ranking of architectures on small synthetic tasks predicts their ranking on text: the better in the mean "
        "over tasks, the lower the loss."
    )
    source: ClassVar[str] = "Poli et al. 2024, MAD; Arora et al. 2023 for multi-query recall; text is world:stories"
    rule: ClassVar[str] = (
        "Spearman's correlation between the mean share right over the nine tasks and the loss on text, over five "
        "models of about the same size and the same number of steps, is at most -0.6"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        steps = lab.pick(50, 100, 120)
        names = lab.pick(["recall", "compression", "parity"], list(PROBES), list(PROBES))
        grown = lab.pick(1, 1, 2)
        sizes = {
            model: {k: v * grown if k == "d_model" else v for k, v in own.items()} for model, own in MODELS.items()
        }
        found: dict[str, Any] = {"right": {}, "loss": {}}
        for model in MODELS:
            run = lab.train(
                model,
                TEXT,
                model,
                size="tiny",
                budget=f"{lab.pick(80, 160, 300)}steps",
                length=64,
                batch_size=16,
                **sizes[model],
            )
            found["loss"][model] = run.evaluate().scores["loss"]
        for name in names:
            made = world(name, train=lab.pick(1000, 4000, 8000), valid=200, seed=lab.seed, **PROBES[name])
            assert isinstance(made, Probe)
            rows = Rows(made, lab)
            found["right"][name] = {
                model: right(trained(rows, model, lab, steps, sizes[model]), rows.valid) for model in MODELS
            }
        found["mean"] = {model: sum(row[model] for row in found["right"].values()) / len(names) for model in MODELS}
        found["correlation"] = rank_correlation(found["mean"], found["loss"])
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(
            f"{model} {mean(found, 'mean', model):.2f} and {mean(found, 'loss', model):.2f}" for model in MODELS
        )
        over_seeds = rank_correlation(
            {model: mean(found, "mean", model) for model in MODELS},
            {model: mean(found, "loss", model) for model in MODELS},
        )
        by_seed = ", ".join(f"{one['correlation']:.2f}" for one in found)
        return judged(
            found,
            lambda one: one["correlation"] <= -0.6,
            f"mean share right and loss on text: {told}; rank correlation {by_seed}, of the means {over_seeds:.2f}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        rows = [
            (f"{name}, {model}", mean(found, "right", name, model)) for name in found[0]["right"] for model in MODELS
        ]
        return bar_chart("Probes by model", rows, "share right; the best possible is 1")


def rank_correlation(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Spearman's: the correlation of the ranks, those of equals being their mean.

    >>> round(rank_correlation({"a": 1, "b": 2, "c": 3}, {"a": 9, "b": 8, "c": 1}), 9)
    -1.0
    """
    first, second = _ranks(one), _ranks(other)
    middle = (len(first) - 1) / 2
    products = sum((first[key] - middle) * (second[key] - middle) for key in first)
    spread = [sum((rank - middle) ** 2 for rank in ranks.values()) ** 0.5 for ranks in (first, second)]
    return products / (spread[0] * spread[1]) if min(spread) else 0.0


def _ranks(values: Mapping[str, float]) -> dict[str, float]:
    """From 0 on; equals share the mean of theirs."""
    below = {key: sum(other < value for other in values.values()) for key, value in values.items()}
    equal = {key: sum(other == value for other in values.values()) - 1 for key, value in values.items()}
    return {key: below[key] + equal[key] / 2 for key in values}
