"""A vanilla RNN over three inputs, and the ways to build more of it: both directions, layers, residuals.

h_t = tanh(W_h h_(t-1) + W_i x_t)        y_t = W_o h_t        Elman 1990
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.core.bidirectional import BidirectionalConfig
from regard.core.mixer import Mixer
from regard.core.stack import MixerConfig, ResidualConfig, StackConfig
from regard.core.tap import record
from regard.explain.view import Curves, Panel, View
from regard.explain.worked.sheet import answer, formula, numbers, sheet, steps, tensor, text
from regard.layers.score import softmax
from regard.mixers.rnn import RnnConfig

X = tensor([[1, 0], [0, 1], [0.5, -1]])
W_H = tensor([[0.5, -0.25], [0.1, 0.3]])
W_I = tensor([[1, 0], [-0.5, 0.75]])
W_O = tensor([[1, 2], [-1, 0.5], [0.25, 0]])
TIMES = steps(len(X))
BOTH, CLASSES = ["1", "2"], ["class 1", "class 2", "class 3"]


def view() -> View:
    return sheet("rnn", "A vanilla RNN, step by step", _given(), _unrolled(), _side_by_side(), _compositions())


def recurrence() -> tuple[Tensor, Tensor]:
    """States (T, 2) and outputs (T, 3) of the package's RNN with the given weights."""
    # Outputs have three entries and inputs two: inputs get a third that no weight reads.
    rnn = RnnConfig(3, 2, bias=False, project=True).build().double()
    rnn.load_state_dict(
        {
            "cell.weight_ih_l0": torch.cat([W_I, torch.zeros(2, 1)], 1),
            "cell.weight_hh_l0": W_H,
            "hidden_to_output.weight": W_O,
        }
    )
    with record(rnn) as seen:
        y = rnn(torch.cat([X, torch.zeros(len(X), 1)], 1)[None])[0][0]
    return torch.cat(seen["hidden"]), y


def composed(config: MixerConfig) -> Mixer:
    """A composition of cells that all have the weights W_h and W_i."""
    mixer = config.build().double()
    weights = {"weight_hh_l0": W_H, "weight_ih_l0": W_I}
    mixer.load_state_dict({name: weights[name.rpartition(".")[2]] for name in mixer.state_dict()})
    return mixer


def _given() -> Sequence[Panel]:
    learned = W_H.numel() + W_I.numel() + W_O.numel()
    return [
        formula(
            "h_t = tanh(W_h h_(t-1) + W_i x_t)    y_t = W_o h_t    h_0 = 0", title="One cell, used again and again"
        ),
        numbers("x", X, "x_t", title="Three inputs", rows=TIMES, columns=BOTH),
        numbers("W_h", W_H, "W_h", title="From state to state", rows=["h 1", "h 2"], columns=["h 1", "h 2"]),
        numbers("W_i", W_I, "W_i", title="From input to state", rows=["h 1", "h 2"], columns=["x 1", "x 2"]),
        numbers("W_o", W_O, "W_o", title="From state to output", rows=CLASSES, columns=["h 1", "h 2"]),
        answer(
            "How many numbers are learned for a sequence of 3? And of 3,000?",
            f"{learned} for both: all steps share the same three matrices.",
        ),
    ]


def _unrolled() -> Sequence[Panel]:
    h, y = recurrence()
    before = torch.cat([torch.zeros(1, 2), h[:-1]])
    panels: list[Panel] = []
    for t, time in enumerate(TIMES):
        step = torch.stack([before[t], X[t], W_H @ before[t] + W_I @ X[t], h[t]])
        rows = [f"h_{t}", f"x_{t + 1}", f"W_h h_{t} + W_i x_{t + 1}", f"h_{t + 1} = tanh"]
        panels.append(
            numbers(
                f"step_{t + 1}",
                step,
                f"h_{t + 1} = tanh(W_h h_{t} + W_i x_{t + 1})",
                title=time,
                rows=rows,
                columns=BOTH,
            )
        )
    lines = {f"h {unit + 1}": [(float(t), float(v)) for t, v in enumerate([0.0, *h[:, unit]])] for unit in range(2)}
    return [
        *panels,
        numbers(
            "pre", before @ W_H.T + X @ W_I.T, "W_h h_(t-1) + W_i x_t", title="Before tanh", rows=TIMES, columns=BOTH
        ),
        numbers("h", h, "h_t = tanh(W_h h_(t-1) + W_i x_t)", title="States", rows=TIMES, columns=BOTH),
        Curves(key="states", title="The state over time", lines=dict(lines), x="t", y="h"),
        numbers("y", y, "y_t = W_o h_t", title="Outputs", rows=TIMES, columns=CLASSES),
        numbers("softmax_y", softmax(y), "softmax(y_t)", title="As probabilities", rows=TIMES, columns=CLASSES),
    ]


def _side_by_side() -> Sequence[Panel]:
    whole = torch.cat([W_H, W_I], 1)
    h, _ = recurrence()
    pair = torch.cat([torch.cat([torch.zeros(1, 2), h[:-1]]), X], 1)
    columns = ["h 1", "h 2", "x 1", "x 2"]
    return [
        numbers(
            "W_concat", whole, "W = [W_h, W_i]", title="The same as one matrix", rows=["h 1", "h 2"], columns=columns
        ),
        numbers("pairs", pair, "[h_(t-1), x_t]", title="State and input side by side", rows=TIMES, columns=columns),
        numbers(
            "h_concat", (pair @ whole.T).tanh(), "tanh(W [h_(t-1), x_t])", title="States", rows=TIMES, columns=BOTH
        ),
    ]


def _compositions() -> Sequence[Panel]:
    cell = RnnConfig(2, bias=False)
    both = composed(BidirectionalConfig(2, cell, project=False))(X[None])[0]
    second = composed(StackConfig(2, (cell,) * 2))(X[None])[0]
    residual = [composed(StackConfig(2, (ResidualConfig(2, cell),) * n))(X[None])[0] for n in (1, 2)]
    return [
        text("All layers and directions here have the same W_h and W_i, so that every number can be checked by hand."),
        numbers(
            "bidirectional",
            both,
            "[forward h_t, backward h_t]",
            title="Bidirectional: past and future",
            rows=TIMES,
            columns=["forward 1", "forward 2", "backward 1", "backward 2"],
            note="The backward half is the forward RNN on the reversed inputs, turned round again.",
        ),
        numbers("stacked", second, "h^2_t = RNN(h^1)_t", title="Stacked: the second layer", rows=TIMES, columns=BOTH),
        numbers(
            "residual_1",
            residual[0],
            "x^1_t = x_t + h^0_t",
            title="Residual: a layer adds to the stream",
            rows=TIMES,
            columns=BOTH,
        ),
        numbers("residual_2", residual[1], "x^2_t = x^1_t + h^1_t", title="After two layers", rows=TIMES, columns=BOTH),
        answer(
            "When do residual connections make sense?",
            "Where layers refine one representation and there are many of them: what a layer does not change is kept.",
        ),
    ]
