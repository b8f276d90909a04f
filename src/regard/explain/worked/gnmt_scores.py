"""How a beam ranks finished texts: log p, normalised by length, with a penalty for what was not covered.

s(Y, X) = log P(Y | X) / lp(Y) + cp(X; Y)                            Wu et al. 2016, equation 14
lp(Y) = ((5 + |Y|) / 6)^alpha      cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1))
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decoding.beam import BeamResult, Hypothesis, rescored
from regard.decoding.penalty import CoveragePenalty, LengthPenalty
from regard.explain.view import Bars, Curves, Panel, View
from regard.explain.worked.sheet import answer, formula, heat, numbers, sheet, short, tensor, text

LENGTHS, ALPHAS = (1, 5, 10, 20, 50), (0.0, 0.2, 0.6, 1.0)
ALPHA = BETA = 0.2
# Rows are target words, columns source words.
GOOD = tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]])
BAD = tensor([[0.9, 0.1, 0.0], [0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.6, 0.1, 0.3]])
TARGET, SOURCE = [f"y_{n}" for n in range(1, 5)], ["x_1", "x_2", "x_3"]


def view() -> View:
    return sheet(
        "gnmt-scores", "How a beam ranks its texts", _given(), _length(), _short_and_long(), _coverage(), _both()
    )


def hypothesis(log_p: float, length: int) -> Hypothesis:
    """A finished text of that log-probability and length, shared evenly by its words."""
    return Hypothesis((1,) * length, (log_p / length,) * length, log_p, 1.0, log_p, "eos")


def _given() -> Sequence[Panel]:
    return [
        text(
            "A beam search ends with several finished texts. By log p alone the shortest tends to win, since every "
            "word costs probability; and nothing asks whether all of the source was translated.",
            "The problem",
        ),
        formula(
            "s(Y, X) = log P(Y | X) / lp(Y) + cp(X; Y)",
            "lp(Y) = (5 + |Y|)^alpha / (5 + 1)^alpha",
            "cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1))    i over source, j over target",
            title="The score of GNMT",
        ),
    ]


def _length() -> Sequence[Panel]:
    table = tensor([[LengthPenalty("gnmt", alpha)(length) for alpha in ALPHAS] for length in LENGTHS])
    lines = {
        f"alpha {alpha:g}": [(float(n), LengthPenalty("gnmt", alpha)(n)) for n in range(1, 51)] for alpha in ALPHAS
    }
    return [
        numbers(
            "lp",
            table,
            "lp = ((5 + |Y|) / 6)^alpha",
            title="Length normalisation",
            rows=[f"|Y| = {n}" for n in LENGTHS],
            columns=[f"alpha {alpha:g}" for alpha in ALPHAS],
        ),
        Curves(key="lp_curves", title="lp by length", lines=dict(lines), x="|Y|", y="lp"),
        answer(
            "What does alpha do?",
            "At 0 nothing is divided. At 1 the score is nearly that of one word. In between, long texts are helped.",
        ),
    ]


def _short_and_long() -> Sequence[Panel]:
    texts = {"short": hypothesis(-3.0, 3), "long": hypothesis(-3.3, 8)}
    alphas = (0.0, 0.2, 1.0)
    scores = tensor(
        [
            [text.log_prob / LengthPenalty("gnmt", alpha)(len(text.tokens)) for alpha in alphas]
            for text in texts.values()
        ]
    )
    winners = [list(texts)[int(column.argmax())] for column in scores.T]
    given = tensor([[text.log_prob, len(text.tokens)] for text in texts.values()])
    columns = [f"alpha {alpha:g}" for alpha in alphas]
    return [
        numbers(
            "short_and_long",
            given,
            "log P(Y | X), |Y|",
            title="Two texts",
            rows=list(texts),
            columns=["log p", "length"],
        ),
        numbers("length_scores", scores, "log p / lp", title="Their scores", rows=list(texts), columns=columns),
        answer(
            "Which one wins?", "; ".join(f"the {w} one at {a}" for w, a in zip(winners, columns, strict=True)) + "."
        ),
    ]


def _coverage() -> Sequence[Panel]:
    panels: list[Panel] = []
    for name, attention in (("good", GOOD), ("bad", BAD)):
        mass = attention.sum(0)
        cp = tensor([CoveragePenalty(BETA)(attention)])
        panels += [
            heat(f"{name}_attention", attention, f"p_ij of a {name} alignment", TARGET, SOURCE),
            numbers(
                f"{name}_mass", mass, "sum_j p_ij", title="What each source word got", rows=["sum"], columns=SOURCE
            ),
            numbers(
                f"{name}_cp",
                torch.stack([mass.clamp(max=1).log().sum(), cp[0]]),
                "cp = 0.2 sum_i log(min(sum_j p_ij, 1))",
                title=f"Coverage of the {name} one",
                columns=["sum of logs", "cp"],
            ),
        ]
    return [
        text("Attention tells how much of each source word was used. A whole unit or more is covered.", "Coverage"),
        *panels,
    ]


def _both() -> Sequence[Panel]:
    texts = {"text 1": (hypothesis(-4.0, 4), GOOD), "text 2": (hypothesis(-3.9, 4), BAD)}
    ranked = rescored(
        BeamResult(tuple(text for text, _ in texts.values())),
        [attention for _, attention in texts.values()],
        LengthPenalty("gnmt", ALPHA),
        CoveragePenalty(BETA),
    ).best
    # Both have four words and differ in log p, by which they are told apart after the ranking.
    found = {name: next(best for best in ranked if best.log_prob == text.log_prob) for name, (text, _) in texts.items()}
    table = tensor([[best.log_prob, best.penalty, best.coverage, best.score] for best in found.values()])
    return [
        numbers(
            "ranking",
            table,
            "s = log p / lp + cp",
            title="Two texts of four words, the first with the good alignment",
            rows=list(found),
            columns=["log p", "lp", "cp", "score"],
        ),
        Bars(
            key="scores",
            title="By log p and by score",
            names=[f"{name}, {by}" for by in ("log p", "score") for name in found],
            values=[*table[:, 0].tolist(), *table[:, 3].tolist()],
        ),
        answer("Which one wins?", _winners(table)),
    ]


def _winners(table: Tensor) -> str:
    by_log_p, by_score = int(table[:, 0].argmax()) + 1, int(table[:, 3].argmax()) + 1
    return (
        f"By log p text {by_log_p}, by score text {by_score}: its words are a little less probable, but it leaves out "
        f"nothing, while the other one pays {short(table[by_log_p - 1, 2])} for what it did not cover."
    )
