"""All hidden states of attention in a couple of matrix products, with or without the causal mask."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.timing import seconds_of_each
from regard.studies.registry import register_study

WIDTH = 64
SAME, FASTER = 1e-12, 10.0


@register_study
class MatrixForm(Study):
    id: ClassVar[str] = "matrix"
    claim: ClassVar[str] = "All hidden states of attention come out of a couple of matrix products at once."
    source: ClassVar[str] = "lectures on self-attention: all rows at once, as matrices"
    rule: ClassVar[str] = (
        "row by row and as matrices the states are equal to 1e-12 in float64, with and without the causal mask; at 512 "
        "tokens the matrices are at least 10 times as fast on a CPU, and on a GPU at the longest length"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        lengths = lab.pick([32, 128, 512], [32, 128, 512, 2048], [32, 128, 512, 2048])
        found: dict[str, Any] = {"lengths": lengths, "judged": 512 if lab.device == "cpu" else lengths[-1]}
        for name, causal in (("full", False), ("causal", True)):
            loops, products, errors = [], [], []
            for length in lengths:
                draw = torch.Generator().manual_seed(lab.seed)
                q, k, v = torch.randn(3, length, WIDTH, generator=draw, dtype=torch.float64).to(lab.device)
                errors.append(float((row_by_row(q, k, v, causal) - at_once(q, k, v, causal)).abs().max()))
                q, k, v = q.float(), k.float(), v.float()
                works = [partial(form, q, k, v, causal) for form in (row_by_row, at_once)]
                loop, product = seconds_of_each(works, 5)
                loops.append(loop)
                products.append(product)
            place = lengths.index(found["judged"])
            found[name] = {"loop": loops, "matrix": products, "error": max(errors)}
            found[name]["faster"] = loops[place] / products[place]
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        told = ", ".join(
            f"{name} {mean(found, name, 'faster'):.0f} times as fast, apart by {mean(found, name, 'error'):.1e}"
            for name in ("full", "causal")
        )
        return judged(
            found,
            lambda one: all(
                one[name]["error"] <= SAME and one[name]["faster"] >= FASTER for name in ("full", "causal")
            ),
            f"at {found[0]['judged']} tokens {told}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        lengths = found[0]["lengths"]
        lines = [
            Series(
                f"{form}, {name}",
                [(n, sum(o[name][form][i] for o in found) / len(found)) for i, n in enumerate(lengths)],
            )
            for name in ("full", "causal")
            for form in ("loop", "matrix")
        ]
        axes = Axis("tokens", log=True), Axis("seconds", log=True)
        return line_chart("Attention row by row and as matrices", lines, *axes)


def row_by_row(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """The states one after the other: scores, softmax and weighted sum of one query at a time."""
    rows = []
    for t, query in enumerate(q):
        end = t + 1 if causal else len(k)
        weights = torch.softmax(k[:end] @ query / WIDTH**0.5, 0)
        rows.append(weights @ v[:end])
    return torch.stack(rows)


def at_once(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """softmax(Q K^T / sqrt(d) + mask) V."""
    scores = q @ k.T / WIDTH**0.5
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    return torch.softmax(scores, -1) @ v
