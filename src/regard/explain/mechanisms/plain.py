"""Mechanisms without a state of their own: the running mean, the window and senses worked out, nets by their names."""

from __future__ import annotations

import numpy as np

from regard.explain.look import numbered, numbers
from regard.explain.mechanism import Mechanism, register_mechanism
from regard.explain.mechanisms.calculation import READABLE, Calculation, equation, heaviest
from regard.explain.view import Note, Numbers, Panel
from regard.layers.mlp import Mlp
from regard.layers.pooling import Pooling
from regard.mixers.mean import RunningMean
from regard.mixers.senses import Senses
from regard.mixers.window import Window


def mean(given: Calculation) -> list[Panel]:
    """The mean of the vectors so far, whatever their order."""
    first = max(0, given.place + 1 - READABLE)
    vectors = given.input[: given.place + 1]
    columns = [str(number + 1) for number in range(given.short(vectors).shape[1])]
    rows = [*given.labels[first : given.place + 1], "mean of all"]
    values = np.concatenate([given.short(vectors[first:]), given.short(vectors.mean(0))[None]])
    return [
        equation("y_t = (x_1 + .. + x_t) / t"),
        Numbers(
            title=f"Vectors up to {given.label!r}",
            key="mean",
            values=values,
            rows=rows,
            columns=columns,
            note=given.cut(given.input.shape[1]),
        ),
        Note(text="Any other order of the same words gives the same mean.", style="answer"),
    ]


def window(given: Calculation) -> list[Panel]:
    """The last words side by side, and what the weights make of each place."""
    module = given.site.module
    width = module.window
    weight = module.window_to_hidden.weight.detach().cpu().double().numpy()  # (F, W D)
    bias = module.window_to_hidden.bias.detach().cpu().double().numpy()
    parts = weight.reshape(len(weight), width, -1)
    places = [given.place - width + 1 + slot for slot in range(width)]
    vectors = [given.input[place] if place >= 0 else np.zeros(given.input.shape[1]) for place in places]
    each = [parts[:, slot] @ vectors[slot] for slot in range(width)]
    labels = [given.labels[place] if place >= 0 else "(nothing)" for place in places]
    rows = [*(f"W_{slot + 1} {label}" for slot, label in enumerate(labels)), "b", "sum"]
    values = np.stack([given.short(row) for row in [*each, bias, sum(each) + bias]])
    return [
        equation("y_t = g(W [x_(t-W+1) ; .. ; x_t] + b) = g(sum of a part for each place + b)"),
        Numbers(
            title=f"The window that ends at {given.label!r}",
            key="window",
            values=values,
            rows=rows,
            columns=[f"unit {number + 1}" for number in range(values.shape[1])],
            note=given.cut(len(bias)),
        ),
    ]


def senses(given: Calculation) -> list[Panel]:
    """The weights of every sense of every word so far, and the sum that they make."""
    weights = given.seen["sense_weights"][:, given.place]  # (C, S)
    vectors = given.seen["sense_vectors"]  # (S, C, D)
    kept = heaviest(weights.max(0))
    kept = kept[kept <= given.place]
    positions = numbers(given.site.rows)
    names = [numbered(given.labels[j], positions[j]) for j in kept]
    columns = [f"sense {number + 1}" for number in range(len(weights))]
    output = np.einsum("CS,SCD->D", weights, vectors)
    best = np.unravel_index(weights[:, kept].T.argmax(), (len(kept), len(weights)))
    return [
        equation("o_t = sum_j sum_l alpha_ljt C(x_j)_l        the senses C(x) never change with the context"),
        Numbers(
            title=f"Weights alpha of the senses at {given.label!r}",
            key="weights",
            values=weights[:, kept].T,
            rows=names,
            columns=columns,
            marked=[(int(best[0]), int(best[1]))],
            note="each sense has weights of its own, which sum to 1 over the words so far",
        ),
        Numbers(
            title="Their sum",
            key="output",
            equation="o_t",
            values=given.short(output)[None],
            columns=[str(number + 1) for number in range(given.short(output).shape[0])],
            note=given.cut(len(output)),
        ),
    ]


def _order_of_pooling(module: Pooling) -> str:
    return "takes the first or the last vector" if module.form in ("first", "last") else ""


def _order_of_window(module: Window) -> str:
    return "" if module.permutes else "has a slot for each of the last tokens"


register_mechanism(
    Senses,
    Mechanism(
        "senses",
        "a Backpack",
        "Backpack",
        senses,
        order=lambda _: "adds positions and sees only what came before",
        shows=frozenset({"senses"}),
        rank=1,
    ),
)
register_mechanism(
    RunningMean,
    Mechanism(
        "mean", "a mean", "mean", mean, order=lambda _: "sees only what came before", shows=frozenset({"mean"}), rank=9
    ),
)
register_mechanism(
    Window,
    Mechanism("window", "a window", "window", window, order=_order_of_window, shows=frozenset({"window"}), rank=10),
)
register_mechanism(Pooling, Mechanism("pooling", "a pooling", order=_order_of_pooling))
register_mechanism(Mlp, Mechanism("net", "a feed-forward net"))
