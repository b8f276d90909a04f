"""Attention reads any place of its context as well as any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.model import logits_of
from regard.core.registry import build
from regard.data.batch import NOT_COUNTED
from regard.studies.claims.fitting import fit
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

# Tokens: noise, then needles (kind, value), then the question for each kind.
NOISE, FACTS, VALUES = 16, 4, 8
VOCABULARY = NOISE + FACTS * VALUES + FACTS
PLACES = 8
SPREAD, LEARNT = 0.02, 0.95
MODELS: dict[str, dict[str, Any]] = {
    "gpt": {"d_model": 64, "n_layers": 2, "n_heads": 2, "position": "rotary"},
    "lstm": {"d_model": 64, "n_layers": 1},
    "rnn": {"d_model": 64, "n_layers": 1},
}


@register_study
class RandomAccess(Study):
    id: ClassVar[str] = "access"
    claim: ClassVar[str] = "Attention is random access into the context: where a fact stands does not matter."
    source: ClassVar[str] = "lecture notes on attention over As and Bs: random access into the context"
    rule: ClassVar[str] = (
        "of facts hidden in noise, one of which is asked for at the end, attention tells at least 95%, and over "
        "eighths of the text its best and its worst lie less than 2 points apart; recurrences are measured beside it"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        length = lab.pick(48, 64, 256)
        found: dict[str, Any] = {"length": length}
        for name, settings in MODELS.items():
            torch.manual_seed(lab.seed)
            model = build(name, vocab_size=VOCABULARY, size="tiny", **settings).to(lab.device)

            def batch(step: int) -> tuple[Tensor, Tensor]:
                inputs, targets, _ = needle_rows(64, length, 10**6 * (lab.seed + 1) + step)
                return inputs.to(lab.device), targets.to(lab.device)

            fit(model, batch, lab.pick(250, 300, 1500), 3e-3)
            inputs, targets, places = needle_rows(4000, length, -1 - lab.seed)
            with torch.no_grad():
                logits = [logits_of(model, part.to(lab.device))[:, -1].cpu() for part in inputs.split(500)]
                guesses = torch.cat(logits).argmax(-1)
            right = (guesses == targets[:, -1]).float()
            eighths = places * PLACES // length
            by_place = [float(right[eighths == place].mean()) for place in range(PLACES)]
            found[name] = {"by_place": by_place, "mean": float(right.mean()), "spread": max(by_place) - min(by_place)}
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(
            f"{name} {mean(found, name, 'mean'):.1%} with a spread of {100 * mean(found, name, 'spread'):.1f} points"
            for name in MODELS
        )
        return judged(found, lambda one: one["gpt"]["mean"] >= LEARNT and one["gpt"]["spread"] < SPREAD, told)

    def figure(self, found: Sequence[Found]) -> str:
        length = found[0]["length"]
        lines = [
            Series(
                name,
                [
                    ((place + 0.5) * length / PLACES, sum(one[name]["by_place"][place] for one in found) / len(found))
                    for place in range(PLACES)
                ],
            )
            for name in MODELS
        ]
        return line_chart(
            "DataSpec told right, by where they stand", lines, Axis("place of the fact, in tokens"), Axis("share right")
        )


def needle_rows(rows: int, length: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Noise with one fact of each kind, a question for one kind; targets; and where the fact asked for stands."""
    draw = torch.Generator().manual_seed(seed % 2**32)
    tokens = torch.randint(NOISE, (rows, length + 1), generator=draw)
    places = torch.rand(rows, length, generator=draw).argsort(1)[:, :FACTS]  # (B, FACTS), all different
    values = torch.randint(VALUES, (rows, FACTS), generator=draw)
    facts = NOISE + torch.arange(FACTS) * VALUES + values
    tokens.scatter_(1, places, facts)
    asked = torch.randint(FACTS, (rows,), generator=draw)
    tokens[:, -1] = NOISE + FACTS * VALUES + asked
    targets = torch.full_like(tokens, NOT_COUNTED)
    targets[:, -1] = facts.gather(1, asked[:, None])[:, 0]
    return tokens, targets, places.gather(1, asked[:, None])[:, 0]
