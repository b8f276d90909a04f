"""Fitted models as matrices: what their answers are made of, for the diagram of their numbers.

orders     p_n = alpha_n + gamma_n p_(n-1)      counts of each order, the shortest first
evidence   z = b + sum_f x_f w_f                n-grams of a text and what each adds to every class
lags       y_h = sum_l w_hl x_l                 what each time ahead takes from the days before and from the known
lookup     y = sum_i a_i y_i                    examples of training and how much each counts
"""

from __future__ import annotations

import numpy as np

from regard.explain.mechanism import Worked
from regard.explain.ngram import explain_ngram
from regard.explain.ngram_lines import OrderStep, TokenExplanation
from regard.fitting.evidence import HasEvidence
from regard.fitting.lag_weights import LooksBack
from regard.fitting.lookup import LooksUp
from regard.tasks.reading import Reading

COUNTED = ("count c", "divisor N", "discount D", "alpha", "gamma", "p of the shorter", "p")


def orders(reading: Reading) -> list[Worked]:
    """Of each order what it counts for the token that came at each place, and the probability so far."""
    can = reading.owner.task.can
    if not can.next or can.source:
        return []
    found = explain_ngram(reading.owner.model, reading.owner.tokenizer, reading.given)
    rows = [f"{token.position}: {token.text}" for token in found.tokens]
    worked: list[Worked] = []
    for order in range(1, found.order + 1):
        values = np.array([_counted(token, order) for token in found.tokens])
        made_of = [worked[-1].name] if worked else []
        note = "of the token that came at each place; a dot where the order takes no part"
        worked.append(Worked(f"order {order}", values, COUNTED, rows, made_of, note))
    return worked


def _counted(token: TokenExplanation, order: int) -> list[float]:
    step = next((one for one in token.orders if one.order == order), None)
    if step is None:
        return [np.nan] * len(COUNTED)
    return [np.nan if value is None else float(value) for value in _values(step)]


def _values(step: OrderStep) -> list[float | None]:
    return [step.count, step.divisor, step.discount, step.alpha, step.gamma, step.lower, step.probability]


def evidence(reading: Reading) -> list[Worked]:
    """The n-grams that were found, what each adds to every class, and their sum."""
    model = reading.owner.model
    if not isinstance(model, HasEvidence) or not reading.given:
        return []
    found = model.evidence(reading.given)
    classes = [reading.named(number) for number in range(len(found.base))]
    total = (found.base + found.parts.sum(0))[None]
    added = "what each adds beyond what it adds to all classes on average"
    sums = Worked("sum", total, classes, ["all together"], ["parts"] if len(found.names) else [])
    if not found.names:
        return [sums]
    return [
        Worked(
            "n-grams", found.values[:, None], ["count"], found.names, note="how much each n-gram of the text counts"
        ),
        Worked("parts", found.parts, classes, found.names, ["n-grams"], added),
        sums,
    ]


def lags(reading: Reading) -> list[Worked]:
    """Weights of each group of columns for every time ahead."""
    model = reading.owner.model
    if not isinstance(model, LooksBack):
        return []
    note = "by how much the forecast moves with one deviation of a column, at every time ahead"
    found = model.lag_weights(reading.owner.processor.number_names)
    return [Worked(group.name, part, group.columns, _ahead(part), note=note) for group, part in found]


def _ahead(part: np.ndarray) -> list[str]:
    return [f"{step + 1} ahead" for step in range(len(part))]


def lookup(reading: Reading) -> list[Worked]:
    """Examples of training that were found, and how much each counts."""
    model = reading.owner.model
    if not isinstance(model, LooksUp):
        return []
    found = model.looked_up(reading.inputs[0])
    rows = [f"example {one.row + 1}" for one in found]
    weights = np.array([[one.weight] for one in found])
    return [Worked("examples found", weights, ["weight"], rows, note="how much each counts; they sum to 1")]
