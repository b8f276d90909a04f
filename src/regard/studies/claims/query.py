"""A learned query asks for what is needed, where a word that asks for itself finds itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.charts.chart import bar_chart
from regard.data.worlds.ab import answer
from regard.studies.claims.fitting import fit
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

SCALE = 10.0
EXAMPLE = "AABA"


@register_study
class Query(Study):
    id: ClassVar[str] = "query"
    claim: ClassVar[str] = (
        "With E = K = Q every letter looks at its own kind and the A/B task is not solved; a learned query makes A ask "
        "for B and solves it."
    )
    source: ClassVar[str] = "lecture notes on self-attention over As and Bs: a worked example with E = K = Q"
    rule: ClassVar[str] = (
        "what the last letter looks at answers AABA wrongly with scores 10 E E^T, and every string of four letters "
        "rightly with a learned W_Q, with which the query of A scores B above A"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        letters, answers = strings(len(EXAMPLE))
        letters, answers = letters.to(lab.device), answers.to(lab.device)
        steps = lab.pick(400, 1000, 1000)
        found: dict[str, Any] = {"strings": len(letters)}
        forms = {"fixed": (False, False), "fixed, read by a learned map": (False, True), "learned": (True, False)}
        for name, (learned, reads) in forms.items():
            torch.manual_seed(lab.seed)
            model = Looking(learned, reads).to(lab.device)
            if learned or reads:
                fit(model, lambda _: (letters, answers), steps, 0.05)
            with torch.no_grad():
                told = model(letters).argmax(-1)
            example = next(
                i for i, string in enumerate(product("AB", repeat=len(EXAMPLE))) if "".join(string) == EXAMPLE
            )
            found[name] = {"right": int((told == answers).sum()), "example": "AB"[int(told[example])]}
            if learned:
                query = model.query.detach()[0].tolist()
                found[name]["query_of_a"] = query
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        own, other = (sum(one["learned"]["query_of_a"][i] for one in found) / len(found) for i in (0, 1))
        return judged(
            found,
            lambda one: (
                one["fixed"]["example"] != answer(EXAMPLE)
                and one["learned"]["right"] == one["strings"]
                and one["learned"]["query_of_a"][1] > one["learned"]["query_of_a"][0]
            ),
            f"of {found[0]['strings']} strings {mean(found, 'fixed', 'right'):.0f} are answered rightly with E = K = Q "
            f"({mean(found, 'fixed, read by a learned map', 'right'):.0f} when a learned map reads the result) and "
            f"{mean(found, 'learned', 'right'):.0f} with a learned query, which scores A {own:.1f} and B {other:.1f} "
            f"when A asks",
        )

    def figure(self, found: Sequence[Found]) -> str:
        names = ("fixed", "fixed, read by a learned map", "learned")
        rows = [(name, mean(found, name, "right")) for name in names]
        return bar_chart("The A/B task by kind of query", rows, "strings answered rightly, of 16")


class Looking(nn.Module):
    """One attention from the last letter, over one-hot vectors E: scores E W_Q E^T, values E.

    Without a learned query W_Q is 10 I. Logits are logarithms of how much of the weight lies on A and on B; or, where
    it `reads`, a linear map of the two.
    """

    def __init__(self, learned: bool, reads: bool) -> None:
        super().__init__()
        start = torch.randn(2, 2) if learned else SCALE * torch.eye(2)
        self.query = nn.Parameter(start, requires_grad=learned)
        self.summary_to_answer = nn.Linear(2, 2) if reads else None

    def forward(self, letters: Tensor) -> Tensor:
        """(B, T) of 0 for A and 1 for B, to logits (B, 2)."""
        vectors = nn.functional.one_hot(letters, 2).to(self.query.dtype)  # (B, T, 2)
        scores = torch.einsum("BD,BTD->BT", vectors[:, -1] @ self.query, vectors)
        summary = torch.einsum("BT,BTD->BD", scores.softmax(1), vectors)
        if self.summary_to_answer is not None:
            return self.summary_to_answer(summary)
        return summary.clamp(min=1e-9).log()


def strings(length: int) -> tuple[Tensor, Tensor]:
    """All strings of that length, and for each whether there is a B."""
    letters = torch.tensor(list(product((0, 1), repeat=length)))
    return letters, letters.amax(1)
