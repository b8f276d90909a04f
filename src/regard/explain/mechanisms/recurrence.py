"""One step of a recurrence worked out: vanilla, LSTM and GRU."""

from __future__ import annotations

import numpy as np

from regard.explain.mechanisms.calculation import Calculation, rows_of
from regard.explain.view import Note, Panel
from regard.mixers.rnn import cell_weights


def rnn(given: Calculation) -> list[Panel]:
    """What the input says, what the state says, and their sum through tanh."""
    w = cell_weights(given.site.module.cell)
    hidden = given.seen["hidden"]
    before = _before(hidden, given)
    x = given.input[given.place]
    biases = [bias for bias in (w.input_bias, w.hidden_bias) if bias is not None]
    bias = sum((one.detach().double().cpu().numpy() for one in biases), np.zeros(len(before)))
    from_input = w.input.detach().double().cpu().numpy() @ x
    from_state = w.hidden.detach().double().cpu().numpy() @ before
    return [
        Note(text="h = tanh(W_i x + W_h h' + b)", style="equation"),
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
        Note(text="c = f * c' + i * g        h = o * tanh(c)", style="equation"),
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
        Note(text=f"h = {keeps}", style="equation"),
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
