"""One step of a recurrence worked out: vanilla, LSTM and GRU."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from regard.core.tap import Trace
from regard.explain.mechanism import Mechanism, register_mechanism
from regard.explain.mechanisms.calculation import Calculation, equation, rows_of
from regard.explain.site import Site
from regard.explain.view import Panel
from regard.mixers.gru import Gru
from regard.mixers.lstm import Lstm
from regard.mixers.rnn import Rnn, cell_weights

IN_ORDER = "reads one token after the other"


def rnn(given: Calculation) -> list[Panel]:
    """What the input says, what the state says, and their sum through tanh."""
    w = cell_weights(given.site.module.cell)
    hidden = given.seen["hidden"]
    before = _before(hidden, given)
    x = given.input[given.place]
    biases = [bias for bias in (w.input_bias, w.hidden_bias) if bias is not None]
    bias = sum((one.detach().cpu().double().numpy() for one in biases), np.zeros(len(before)))
    from_input = w.input.detach().cpu().double().numpy() @ x
    from_state = w.hidden.detach().cpu().double().numpy() @ before
    return [
        equation("h = tanh(W_i x + W_h h' + b)"),
        _step(
            given,
            {
                "h'": before,
                "W_i x": from_input,
                "W_h h'": from_state,
                "b": bias,
                "sum": from_input + from_state + bias,
                "h": hidden[given.place],
            },
        ),
    ]


def lstm(given: Calculation) -> list[Panel]:
    """What is forgotten, written and shown."""
    t = given.place
    i, f, g, o, c = (
        given.seen[name][t] for name in ("input_gate", "forget_gate", "candidate", "output_gate", "memory")
    )
    before = _before(given.seen["memory"], given)
    return [
        equation("c = f * c' + i * g        h = o * tanh(c)"),
        _step(
            given,
            {
                "c' (memory before)": before,
                "f (keep)": f,
                "f * c'": f * before,
                "i (write)": i,
                "g (candidate)": g,
                "i * g": i * g,
                "c (memory)": c,
                "o (show)": o,
                "h = o * tanh(c)": o * np.tanh(c),
            },
        ),
    ]


def gru(given: Calculation) -> list[Panel]:
    """What is reset, and how much of the past stays."""
    t = given.place
    r, z, n, h = (given.seen[name][t] for name in ("reset_gate", "update_gate", "candidate", "hidden"))
    keeps = "(1 - z) * h' + z * n" if given.site.module.resets_first else "(1 - z) * n + z * h'"
    before = _before(given.seen["hidden"], given)
    return [
        equation(f"h = {keeps}"),
        _step(given, {"h'": before, "r (reset)": r, "z (update)": z, "n (candidate)": n, "h": h}),
    ]


def _before(states: np.ndarray, given: Calculation) -> np.ndarray:
    """The state that the step began with."""
    return states[given.place - 1] if given.place else np.zeros_like(states[0])


def _step(given: Calculation, rows: dict[str, np.ndarray]) -> Panel:
    width = len(next(iter(rows.values())))
    shown = [given.short(row) for row in rows.values()]
    return rows_of(
        list(rows),
        shown,
        title=f"The step at {given.label!r}",
        key="step",
        columns=[f"unit {number + 1}" for number in range(len(shown[0]))],
        note=given.cut(width),
    )


def _kept_by_gru(site: Site, seen: Trace) -> Tensor:
    """z where it keeps the past, 1 - z where it takes the new."""
    update = seen[f"{site.name}.update_gate"][0]
    return 1 - update if site.module.resets_first else update


def _about_gru(module: Gru) -> str:
    return f"z near 1 {'takes the new' if module.resets_first else 'keeps the past'}."


register_mechanism(
    Lstm,
    Mechanism(
        "lstm",
        "an LSTM",
        "LSTM",
        lstm,
        taps={
            "input_gate": "input gate i",
            "forget_gate": "forget gate f",
            "output_gate": "output gate o",
            "memory": "the cell c",
        },
        order=lambda _: IN_ORDER,
        rank=4,
    ),
)
register_mechanism(
    Gru,
    Mechanism(
        "gru",
        "a GRU",
        "GRU",
        gru,
        kept=_kept_by_gru,
        taps={"update_gate": "update gate z", "reset_gate": "reset gate r", "hidden": "the hidden state h"},
        about=_about_gru,
        order=lambda _: IN_ORDER,
        rank=5,
    ),
)
register_mechanism(
    Rnn,
    Mechanism(
        "rnn", "an RNN", "recurrence", rnn, taps={"hidden": "the hidden state h"}, order=lambda _: IN_ORDER, rank=6
    ),
)
