"""Induction heads: how a model that has read much goes on with what it has met once before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch

from regard.charts.chart import bar_chart
from regard.core.device import wide
from regard.core.model import logits_of
from regard.errors import UsageError
from regard.explain.habits import HABITS, habits, repeated
from regard.explain.inputs import read
from regard.explain.registry import capabilities
from regard.explain.site import on_side
from regard.run.run import Run
from regard.studies.claims.study import Found, Lab, Verdict, judged, mean
from regard.studies.imported.study import StudyOnRun

SHARE, NATS = 0.4, 5.0


class InContextOnRun(StudyOnRun):
    id: ClassVar[str] = "in_context"
    claim: ClassVar[str] = (
        "A Transformer that has read much has heads that copy what followed the same token before, above heads that "
        "look one token back, and tells tokens better the second time."
    )
    source: ClassVar[str] = (
        "Olsson et al. 2022, In-context learning and induction heads; on random tokens that come twice"
    )
    rule: ClassVar[str] = (
        "a head has at least 0.4 of its weight on the token after the last same one, a head of a lower layer has at "
        "least 0.4 on the token before, and the mean log p of the tokens is at least 5 nats higher the second time"
    )
    asks: ClassVar[str] = "self-attention of a model that says what comes next"

    def fits(self, run: Run) -> bool:
        can = capabilities(run)
        return "attention" in can.shows and can.next and can.answers and not can.source

    def measure(self, lab: Lab) -> dict[str, Any]:
        run = self.run(lab)
        reading = replace(read(run, ""), can=capabilities(run))
        given = repeated(reading, lab.seed)
        if given is None:
            raise UsageError(f"{self.path}: the model has too few tokens or positions for a text that comes twice")
        shares = np.stack([one.max(0) for one in habits(reading, on_side(reading, None), given)])  # (L, habits)
        with torch.no_grad():
            log_probs = wide(logits_of(run.model, given.tokens)[0]).log_softmax(-1)
        said = log_probs[:-1].gather(1, given.tokens[0, 1:, None])[:, 0]
        first, second = (
            float(said[start : start + given.half - 1].mean()) for start in (given.before, given.second[0])
        )
        layer = int(shares[:, 0].argmax())
        below = shares[:layer, HABITS.index("previous token")]
        return {
            "induction": float(shares[layer, 0]),
            "layer": layer + 1,
            "previous": float(below.max(initial=0.0)),
            "first": first,
            "second": second,
        }

    def judge(self, found: Sequence[Found]) -> Verdict:
        return judged(
            found,
            lambda one: one["induction"] >= SHARE and one["previous"] >= SHARE and one["second"] - one["first"] >= NATS,
            f"{mean(found, 'induction'):.2f} of a head's weight on the token after the same one, in layer "
            f"{mean(found, 'layer'):.0f}; {mean(found, 'previous'):.2f} on the token before in a layer below; mean log "
            f"p {mean(found, 'first'):.2f} the first time and {mean(found, 'second'):.2f} the second",
        )

    def figure(self, found: Sequence[Found]) -> str:
        rows = [("induction", mean(found, "induction")), ("previous token, below", mean(found, "previous"))]
        return bar_chart("The best head of each kind", rows, "share of its weight")


FORM = InContextOnRun
