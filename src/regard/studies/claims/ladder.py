"""The ladder of language models: from counting words to attention, on one text and at one size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from regard.charts.chart import bar_chart
from regard.core.model import logits_of
from regard.data.worlds import text_world
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.entrant import width_for
from regard.studies.registry import register_study

# Name of a rung: its model, what is set of it, and what its width must be a multiple of. Counted models have no width.
RUNGS: dict[str, tuple[str, dict[str, Any], int]] = {
    "bigram": ("ngram", {"order": 2}, 0),
    "5-gram": ("ngram", {"order": 5}, 0),
    "dan": ("dan", {"d_hidden": 256}, 1),
    "fnn": ("fnn", {"d_hidden": 128}, 1),
    "rnn": ("rnn", {}, 1),
    "lstm": ("lstm", {}, 1),
    "transformer": ("gpt", {"n_layers": 2, "n_heads": 2}, 4),
    "backpack": ("backpack", {"n_layers": 1, "n_heads": 2, "n_senses": 4, "max_length": 256}, 4),
    "mamba": ("mamba", {"n_layers": 2}, 1),
}
COUNTED = ("bigram", "5-gram")
# Step by step on a CPU it takes as long as all others together, and no part of the rule speaks of it.
SLOW = "mamba"


@register_study
class Ladder(Study):
    id: ClassVar[str] = "ladder"
    claim: ClassVar[str] = "Each step of the ladder from counts to attention predicts the next word better."
    source: ClassVar[str] = "lectures; here on world:stories, whose text is generated"
    rule: ClassVar[str] = (
        "perplexity on held-out stories: DAN is the worst of the neural models, FNN is below the bigram, LSTM below "
        "the vanilla RNN, the Transformer not above the LSTM; shuffling the words before changes nothing for DAN"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        data = lab.pick(
            "world:stories?facts=1&events=2&train=1500&valid=100",
            "world:stories?facts=1&events=2&train=3000&valid=200",
            "world:stories?train=10000&valid=200",
        )
        vocab_size = len(text_world(data).vocabulary) + 2
        target = lab.pick(60_000, 60_000, 2_000_000)
        training = {"budget": lab.pick("150steps", "600steps", "300steps"), "batch_size": lab.pick(16, 16, 64)}
        found: dict[str, Any] = {}
        for rung, (model, settings, every) in RUNGS.items():
            if rung == SLOW and lab.scale != "gpu":
                continue
            changes: dict[str, Any] = dict(settings)
            if every:
                changes["d_model"] = width_for(model, vocab_size, target, every, **settings)
                changes |= training | {"evaluate_every": 10**6}
            run = lab.train(model, data, rung, **changes)
            found[rung] = {"perplexity": run.evaluate().scores["perplexity"]}
            if every:
                found[rung] |= {"parameters": sum(one.numel() for one in run.model.parameters())}
                found[rung] |= {"moved": _moved_by_shuffling(run)}
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(f"{rung} {mean(found, rung, 'perplexity'):.3f}" for rung in found[0])
        moved = max(one["dan"]["moved"] for one in found)
        reason = f"perplexity {told}; shuffling moves DAN's logits by {moved:.1e}"
        return judged(found, _is_met, reason)

    def figure(self, found: Sequence[Found]) -> str:
        each = {rung: [one[rung]["perplexity"] for one in found] for rung in found[0]}
        rows = [(rung, mean(found, rung, "perplexity")) for rung in found[0]]
        ends = [(min(values), max(values)) for values in each.values()]
        return bar_chart("Perplexity of the ladder on stories", rows, "perplexity, lowest to highest seed", ends)


@torch.no_grad()
def _moved_by_shuffling(run: Any) -> float:
    """How much the logits after a prefix change when all of it is put into another order, at most."""
    ids = torch.from_numpy(run.dataset.valid.ids[:24].astype("int64"))
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(0))
    logits = logits_of(run.model, torch.stack([ids, ids[order]]).to(run.device))[:, -1]
    return float((logits[0] - logits[1]).abs().max())


def _is_met(one: Found) -> bool:
    perplexity = {rung: told["perplexity"] for rung, told in one.items()}
    return (
        max(set(perplexity) - set(COUNTED), key=perplexity.__getitem__) == "dan"
        and perplexity["fnn"] < perplexity["bigram"]
        and perplexity["lstm"] < perplexity["rnn"]
        and perplexity["transformer"] <= perplexity["lstm"]
        and one["dan"]["moved"] < 1e-3
    )
