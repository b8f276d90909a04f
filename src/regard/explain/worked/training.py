"""Two settings of training in numbers: label smoothing, and the learning rate of the Transformer paper.

loss = - sum_k q_k log p_k                                  q the smoothed target      Szegedy et al. 2016
rate(s) = d^-0.5 min(s^-0.5, s warmup^-1.5)                                            Vaswani et al. 2017, 5.3
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.explain.view import Bars, Curves, Panel, View
from regard.explain.worked.sheet import answer, formula, numbers, sheet, short, tensor, text
from regard.layers.score import softmax
from regard.training.losses import Smoothing, smoothed_loss
from regard.training.schedule import factor

LOGITS, TARGET, EPSILON = tensor([2.0, 1.0, 0.0, -1.0, 0.5]), 0, 0.1
CLASSES = [f"class {n}" for n in range(1, 6)]
CONVENTIONS: dict[str, Smoothing] = {"all classes": "all", "other classes": "others"}
SETTINGS = {
    (512, 4000): (1, 10, 100, 1000, 2000, 4000, 8000, 10000, 16000, 100000),
    (1024, 4000): (1, 4000, 16000, 300000),
    (128, 400): (1, 100, 400, 1600, 6400),
}


def view() -> View:
    return sheet("training", "Smoothed labels and a rate that warms up", _predicted(), _smoothed(), _rate())


def loss(logits: Tensor, epsilon: float, smoothing: Smoothing = "all") -> Tensor:
    return smoothed_loss(logits[None], torch.tensor([TARGET]), epsilon, smoothing)


def target(smoothing: Smoothing) -> Tensor:
    """q: what the loss weighs each -log p_k with, read off the loss itself.

    At logits of 0 the gradient of the loss is p - q, and p is the same for all classes.
    """
    with torch.enable_grad():
        even = torch.zeros_like(LOGITS, requires_grad=True)
        (gradient,) = torch.autograd.grad(loss(even, EPSILON, smoothing), even)
    return softmax(torch.zeros_like(LOGITS)) - gradient


def _predicted() -> Sequence[Panel]:
    p = softmax(LOGITS)
    return [
        numbers("logits", LOGITS, "z", title="What a model says", rows=["logit"], columns=CLASSES),
        numbers("probabilities", p, "p = softmax(z)", title="As probabilities", rows=["p"], columns=CLASSES),
        numbers(
            "no_smoothing_loss",
            loss(LOGITS, 0.0)[None],
            "-log p_1",
            title="The loss where class 1 is true",
            rows=["loss"],
            columns=["plain"],
        ),
    ]


def _smoothed() -> Sequence[Panel]:
    targets = torch.stack([target(smoothing) for smoothing in CONVENTIONS.values()])
    losses = torch.stack([loss(LOGITS, EPSILON, smoothing) for smoothing in CONVENTIONS.values()])
    least = torch.stack([loss(q.log(), EPSILON, s) for q, s in zip(targets, CONVENTIONS.values(), strict=True)])
    return [
        text(
            "With label smoothing the target is no longer one class. A tenth of it goes elsewhere, by one of two "
            "conventions: to all classes alike, the true one included, or to the others only.",
            "Label smoothing",
        ),
        formula("loss = - sum_k q_k log p_k    epsilon = 0.1"),
        numbers("targets", targets, "q", title="The smoothed targets", rows=list(CONVENTIONS), columns=CLASSES),
        numbers(
            "losses",
            torch.stack([losses, least], 1),
            "- sum_k q_k log p_k        - sum_k q_k log q_k",
            title="The loss, and the least there can be",
            rows=list(CONVENTIONS),
            columns=["loss", "least"],
        ),
        Bars(
            key="loss_bars",
            title="The loss",
            names=["plain", *CONVENTIONS],
            values=[float(loss(LOGITS, 0.0)), *losses.tolist()],
            unit="nats",
        ),
        answer(
            "Can the loss become 0?",
            f"No longer. The best prediction is q itself, with a loss of {short(least[0])} or {short(least[1])}. Being "
            "surer than that costs: perplexity gets worse, and accuracy often better.",
        ),
    ]


def rate(step: int, d_model: int, warmup: int) -> float:
    """The learning rate at a step, counted from 1, by the package's inverse-root schedule."""
    # This schedule counts steps and does not look at the progress of the budget.
    peak = 1 / math.sqrt(d_model * warmup)
    return peak * factor("inverse_root", step=step - 1, progress=0.0, warmup=warmup)


def _rate() -> Sequence[Panel]:
    panels: list[Panel] = []
    lines: dict[str, Sequence[tuple[float, float]]] = {}
    for (d_model, warmup), at in SETTINGS.items():
        found = tensor([rate(step, d_model, warmup) for step in at])
        panels.append(
            numbers(
                f"rate_{d_model}_{warmup}",
                found[:, None],
                "rate(s) = d^-0.5 min(s^-0.5, s warmup^-1.5)",
                title=f"d = {d_model}, warm-up over {warmup:,} steps",
                rows=[f"step {step:,}" for step in at],
                columns=["rate"],
            )
        )
        grid = sorted({round(warmup * 10 ** (n / 20)) for n in range(-40, 41)})
        lines[f"d {d_model}, warm-up {warmup}"] = [(float(s), rate(s, d_model, warmup)) for s in grid]
    return [
        text("The rate grows evenly during the warm-up and then falls with the root of the step.", "The learning rate"),
        *panels,
        Curves(key="rates", title="The rate over training", lines=lines, x="step", y="rate", x_log=True, y_log=True),
        answer(
            "Where is the peak?",
            f"At the end of the warm-up, and it is 1 / sqrt(d x warmup): {short(rate(4000, 512, 4000))} for d = 512 "
            "and 4,000 steps. A wider model gets a smaller rate.",
        ),
    ]
