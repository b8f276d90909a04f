"""The Transformer beside RNNsearch, and which of its parts it needs (Vaswani et al. 2017)."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch.nn.functional import cross_entropy

from regard.charts.chart import bar_chart
from regard.core.config import Config, from_dict
from regard.core.model import logits_of
from regard.studies.claims.fitting import fit
from regard.studies.claims.recall import Copier, copying, symbol_rows
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.translating import PLAIN, held_out_perplexity, matched, sentences
from regard.studies.registry import register_study
from regard.training import metrics
from regard.training.run_folder import METRICS

VARIANTS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "one head": {"n_heads": 1},
    "eight heads": {"n_heads": 8},
    "learned positions": {"position": "learned"},
    "no positions": {"position": "none"},
    "no smoothing": {"label_smoothing": 0.0},
}
RIVAL = "bahdanau"
NOISE = 5.0  # BLEU points between runs that are taken to be equal
LONG = 64


@register_study
class Attention(Study):
    id: ClassVar[str] = "transformer"
    claim: ClassVar[str] = "Attention alone trains faster than a recurrence that looks and translates no worse."
    source: ClassVar[str] = "Vaswani et al. 2017, tables 2 and 3; here on world:translation"
    rule: ClassVar[str] = (
        "at the same size the Transformer trains on more tokens a second at length 64 and has no lower BLEU after the "
        "same time than RNNsearch; without positions BLEU is at least 5 points lower, learned positions are within 5; "
        "label smoothing raises perplexity and costs at most a point of BLEU; one head is below the best; scaling is "
        "reported and decides nothing"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        data = sentences(3, lab.pick(5, 6, 12), lab.pick(5_000, 8_000, 30_000), 200)
        size: dict[str, Any] = {"d_model": lab.pick(32, 64, 256), "n_layers": lab.pick(1, 2, 4), "n_heads": 4}
        training = PLAIN | {"dropout": 0.0, "lr": lab.pick(5e-3, 2e-3, 1e-3), "batch_size": lab.pick(32, 32, 128)}
        steps = lab.pick("150steps", "300steps", "300steps")
        found: dict[str, Any] = {}
        for name, changes in VARIANTS.items():
            given = size | training | {"label_smoothing": 0.1, "budget": steps} | changes
            run = lab.train("transformer", data, name.replace(" ", "-"), **given)
            found[name] = {"bleu": run.evaluate().to_dict()["bleu"], "perplexity": held_out_perplexity(run)}
            if not changes:
                found["seconds"] = list(metrics.read(run.path / METRICS))[-1]["seconds"]
        rival = matched(data, ("transformer", size), RIVAL)
        given = rival | training | {"lr": lab.pick(5e-3, 5e-3, 2e-3), "budget": f"{max(1, round(found['seconds']))}s"}
        run = lab.train(RIVAL, data, RIVAL, **given)
        found[RIVAL] = {"bleu": run.evaluate().to_dict()["bleu"], "perplexity": held_out_perplexity(run)}
        found["speed"] = {
            "transformer": tokens_a_second(copying("transformer", **size), lab.device),
            RIVAL: tokens_a_second(copying(RIVAL, **rival), lab.device),
        }
        found["scaling"] = _losses_by_scaling(lab)
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        bleu = ", ".join(f"{name} {mean(found, name, 'bleu'):.1f}" for name in (*VARIANTS, RIVAL))
        speed = " and ".join(f"{name} {mean(found, 'speed', name):.0f}" for name in ("transformer", RIVAL))
        parts = [_parts(one) for one in found]
        met = ", ".join(f"{name} {sum(one[name] for one in parts)}" for name in parts[0])
        scaling = " and ".join(f"{mean(found, 'scaling', name):.3f} {name}" for name in found[0]["scaling"])
        reason = f"BLEU {bleu}; tokens a second {speed}; loss {scaling}; seeds that meet each part: {met}"
        return judged(found, lambda one: all(_parts(one).values()), reason)

    def figure(self, found: Sequence[Found]) -> str:
        rows = [(name, mean(found, name, "bleu")) for name in (*VARIANTS, RIVAL)]
        return bar_chart("The Transformer, with and without its parts", rows, "BLEU")


def tokens_a_second(config: Config, device: str) -> float:
    """Tokens that a training step reads in a second, in rows of 64; the best of some steps."""
    model = Copier(config).to(device)
    symbols, targets = symbol_rows(16, LONG, 0, device)
    best = float("inf")
    for _ in range(4):
        began = time.perf_counter()
        loss = cross_entropy(logits_of(model, symbols).flatten(0, 1), targets.flatten())
        loss.backward()
        if device != "cpu":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return symbols.numel() / best


def unscaled(config: Config) -> Config:
    """The same model without the division of scores by sqrt(d_k)."""
    return from_dict(json.loads(json.dumps(config.to_dict()).replace('"scaled_dot"', '"dot"')))


def _losses_by_scaling(lab: Lab) -> dict[str, float]:
    """The last losses of copying with one head of width 256, with scaled scores and without."""
    config = copying("transformer", d_model=256, n_layers=1, n_heads=1)
    found = {}
    for name, one in (("scaled", config), ("unscaled", unscaled(config))):
        torch.manual_seed(lab.seed)
        model = Copier(one).to(lab.device)
        losses = fit(model, lambda step: symbol_rows(16, 4, step, lab.device), lab.pick(60, 200, 600), 3e-3)
        found[name] = sum(losses[-10:]) / 10
    return found


def _parts(one: Found) -> dict[str, bool]:
    """Each part of the rule, and whether a seed meets it."""
    bleu = {name: one[name]["bleu"] for name in (*VARIANTS, RIVAL)}
    return {
        "faster": one["speed"]["transformer"] > one["speed"][RIVAL],
        "no worse in the same time": bleu["transformer"] >= bleu[RIVAL],
        "needs positions": bleu["no positions"] <= bleu["transformer"] - NOISE,
        "learned as good": abs(bleu["learned positions"] - bleu["transformer"]) <= NOISE,
        "smoothing": one["transformer"]["perplexity"] > one["no smoothing"]["perplexity"]
        and bleu["transformer"] >= bleu["no smoothing"] - 1,
        "several heads": bleu["one head"] < max(bleu["transformer"], bleu["eight heads"]),
    }
