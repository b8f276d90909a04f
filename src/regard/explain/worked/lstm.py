"""The gates of an LSTM and of a GRU over three inputs, and an LSTM whose gates are set by hand to count.

f, i, o = sigmoid(W z + b)    c~ = tanh(W_c z + b_c)    z = [h_(t-1), x_t]
c_t = f * c_(t-1) + i * c~    h_t = o * tanh(c_t)                              Hochreiter and Schmidhuber 1997
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.core.tap import record
from regard.explain.view import Curves, Heat, Panel, View
from regard.explain.worked.sheet import answer, array, formula, numbers, sheet, steps, tensor, text
from regard.mixers.gru import GruConfig
from regard.mixers.lstm import LstmConfig

X = tensor([[1, 0], [0, 1], [0.5, -1]])
# On [h, x], by gate: input, forget, candidate, output.
WEIGHTS = {
    "i": tensor([[0.4, -0.3, 0.2, 0.1], [0.25, 0.15, -0.35, 0.6]]),
    "f": tensor([[0.1, 0.2, 0.3, -0.1], [0.0, -0.2, 0.5, 0.4]]),
    "c": tensor([[0.7, 0.1, -0.6, 0.5], [-0.2, 0.3, 0.9, -0.4]]),
    "o": tensor([[-0.5, 0.2, 0.1, 0.3], [0.6, -0.1, 0.2, 0.2]]),
}
BIASES = {"i": tensor([0.0, 0.1]), "f": tensor([1.0, 1.0]), "c": tensor([0.05, 0.0]), "o": tensor([0.0, -0.2])}
GRU_INPUT = {
    "r": tensor([[0.5, 0.2], [-0.1, 0.3]]),
    "z": tensor([[0.3, -0.1], [0.2, 0.4]]),
    "h": tensor([[0.6, -0.4], [0.1, 0.8]]),
}
GRU_HIDDEN = {
    "r": tensor([[0.2, -0.2], [0.1, 0.4]]),
    "z": tensor([[0.1, 0.2], [-0.3, 0.1]]),
    "h": tensor([[0.3, 0.1], [-0.2, 0.5]]),
}
TIMES, BOTH, PAIR = steps(len(X)), ["1", "2"], ["h 1", "h 2", "x 1", "x 2"]
ROLES = {
    "f": "what of the old state is kept",
    "i": "what is written",
    "c": "what could be written",
    "o": "what is read",
}
# A sigmoid of this is 1 in float64, and of its negative 0.
SURE = 1000.0
STRING = "AABAB"


def view() -> View:
    return sheet("lstm", "The gates of an LSTM and of a GRU", _given(), _gates(), _counting(), _gru())


def gates(weights: dict[str, Tensor], biases: dict[str, Tensor], x: Tensor) -> dict[str, Tensor]:
    """Every gate, the memory c and the output h over time, (T, 2) each, by the package's LSTM."""
    width = len(biases["i"])
    lstm = LstmConfig(width).build().double()
    stacked = torch.cat([weights[gate] for gate in "ifco"])
    lstm.load_state_dict(
        {
            "cell.weight_hh_l0": stacked[:, :width],
            "cell.weight_ih_l0": stacked[:, width:],
            "cell.bias_ih_l0": torch.cat([biases[gate] for gate in "ifco"]),
            "cell.bias_hh_l0": torch.zeros(4 * width),
        }
    )
    with record(lstm) as seen:
        h = lstm(x[None])[0][0]
    taps = {"i": "input_gate", "f": "forget_gate", "c_tilde": "candidate", "o": "output_gate", "c": "memory"}
    return {letter: torch.cat(seen[tap]) for letter, tap in taps.items()} | {"h": h}


def _given() -> Sequence[Panel]:
    panels: list[Panel] = [
        numbers(
            f"W_{gate}",
            torch.cat([WEIGHTS[gate], BIASES[gate][:, None]], 1),
            f"W_{gate}, b_{gate}",
            title=f"Weights for {ROLES[gate]}",
            rows=BOTH,
            columns=[*PAIR, "bias"],
        )
        for gate in "fico"
    ]
    return [
        text(
            "An LSTM tells state and output apart. The state c is a store: first something is forgotten, then "
            "something is written, and what is read of it becomes the output h.",
            "Long short-term memory",
        ),
        formula(
            "z  = [h_(t-1), x_t]",
            "f  = sigmoid(W_f z + b_f)    i = sigmoid(W_i z + b_i)",
            "c~ = tanh(W_c z + b_c)       o = sigmoid(W_o z + b_o)",
            "c_t = f * c_(t-1) + i * c~   h_t = o * tanh(c_t)",
        ),
        numbers("x", X, "x_t", title="Three inputs; h_0 = c_0 = 0", rows=TIMES, columns=BOTH),
        *panels,
    ]


def _gates() -> Sequence[Panel]:
    found = gates(WEIGHTS, BIASES, X)
    equations = {
        "f": ("Forget: what of the old state is kept", "f = sigmoid(W_f z + b_f)"),
        "i": ("Write: how much", "i = sigmoid(W_i z + b_i)"),
        "c_tilde": ("Write: what", "c~ = tanh(W_c z + b_c)"),
        "c": ("The state", "c_t = f * c_(t-1) + i * c~"),
        "o": ("Read: how much", "o = sigmoid(W_o z + b_o)"),
        "h": ("The output", "h_t = o * tanh(c_t)"),
    }
    lines = {
        f"{letter} {unit + 1}": [(float(t), float(v)) for t, v in enumerate([0.0, *found[letter][:, unit]])]
        for letter in "ch"
        for unit in range(2)
    }
    shades = torch.cat([found[gate] for gate in "fio"], 1).T
    return [
        *(
            numbers(letter, found[letter], equation, title=title, rows=TIMES, columns=BOTH)
            for letter, (title, equation) in equations.items()
        ),
        Heat(
            key="gates",
            title="How far each gate is open",
            weights=array(shades),
            rows=[f"{gate} {unit}" for gate in ("forget", "input", "output") for unit in BOTH],
            columns=TIMES,
            scale="gate",
        ),
        Curves(key="memory", title="State c and output h over time", lines=dict(lines), x="t", y="value"),
    ]


def _counting() -> Sequence[Panel]:
    onehot = tensor([[1, 0] if letter == "A" else [0, 1] for letter in STRING])
    nothing, open_gate = torch.zeros(2, 4), torch.full((2,), SURE)
    weights = dict.fromkeys("ifco", nothing.double())
    biases = dict.fromkeys("ifco", open_gate.double())
    # Unit 1 writes at every letter. The input gate of unit 2 opens at a B only.
    weights["i"] = tensor([[0, 0, 0, 0], [0, 0, -SURE, SURE]])
    biases["i"] = tensor([SURE, 0])
    memory = gates(weights, biases, onehot)["c"]
    return [
        numbers(
            "counting",
            memory.T,
            "c_t = 1 * c_(t-1) + i * 1",
            title="The state after each letter",
            rows=["every letter", "every B"],
            columns=[f"{t} {letter}" for t, letter in enumerate(STRING, 1)],
            note="Unit 1 writes at every letter, unit 2 at a B only. Gates are set by hand, fully open or shut.",
        ),
        answer(
            "What can such a model do?",
            "It can add every word into its state, and it can add a word only if it has a certain value.",
        ),
    ]


def _gru() -> Sequence[Panel]:
    gru = GruConfig(2, bias=False, convention="cho").build().double()
    gru.load_state_dict(
        {
            "cell.weight_ih_l0": torch.cat(list(GRU_INPUT.values())),
            "cell.weight_hh_l0": torch.cat(list(GRU_HIDDEN.values())),
        }
    )
    with record(gru) as seen:
        h = gru(X[None])[0][0]
    equations = {
        "update_gate": ("z", "Update: how much is replaced", "z = sigmoid(W_z x + U_z h)"),
        "reset_gate": ("r", "Reset: how much of the past the candidate sees", "r = sigmoid(W_r x + U_r h)"),
        "candidate": ("h_tilde", "Candidate", "h~ = tanh(W x + U (r * h))"),
    }
    letters = {"z": "z", "r": "r", "h": ""}
    panels: list[Panel] = [
        numbers(
            f"gru_W_{gate}",
            torch.cat([GRU_HIDDEN[gate], GRU_INPUT[gate]], 1),
            f"U_{letter}, W_{letter}" if letter else "U, W",
            title=f"Weights of {'the candidate' if gate == 'h' else gate}",
            rows=BOTH,
            columns=PAIR,
        )
        for gate, letter in letters.items()
    ]
    return [
        text("A GRU has two gates and no separate store: what is forgotten makes room for what is written.", "GRU"),
        *panels,
        *(
            numbers(f"gru_{letter}", torch.cat(seen[tap]), equation, title=title, rows=TIMES, columns=BOTH)
            for tap, (letter, title, equation) in equations.items()
        ),
        numbers("gru_h", h, "h_t = (1 - z) * h_(t-1) + z * h~", title="The state", rows=TIMES, columns=BOTH),
        answer(
            "Is z the share of the new or of the old?",
            "Of the new here, as in Bahdanau et al. 2014 (A.1.1) and Chung et al. 2014. In Cho et al. 2014 (equation "
            "7) and in many libraries it is the share of the old; libraries also reset after the product with U.",
        ),
    ]
