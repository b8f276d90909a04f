"""Gates by token against the equations written out, in both directions of reading."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from look_run import TEXT, seen, tag_run, text_run
from regard.errors import UsageError
from regard.explain.inputs import read
from regard.explain.looks.gates import gates, half_life, hidden


def _inputs(run: Any, layer: Any) -> torch.Tensor:
    """What the first layer of a language model reads, (T, D)."""
    ids = run.writer.prompt_ids(TEXT)[None]
    start = torch.zeros(1, dtype=torch.long)
    return layer.mixer_norm(run.model.embedding(ids, start))[0]


@torch.no_grad()
def test_gates_of_an_lstm_are_those_of_its_equations():
    run: Any = text_run("lstm")
    block = run.model.stack.layers[0]
    cell = block.mixer.cell
    h = c = torch.zeros(16, dtype=torch.float64)
    rows, cells = [], []
    for x in _inputs(run, block):
        i, f, g, o = (cell.weight_ih_l0 @ x + cell.bias_ih_l0 + cell.weight_hh_l0 @ h + cell.bias_hh_l0).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        rows.append([float(gate.sigmoid().mean()) for gate in (i, f, o)])
        cells.append(float(c.norm()))
    view = seen(run, gates, layer=1)
    assert np.allclose(view["gates"].weights, np.array(rows).T, atol=1e-12)
    assert np.allclose([y for _, y in view["size"].lines["memory"]], cells)


@pytest.mark.parametrize("convention", ["torch", "cho"])
def test_what_a_gru_keeps_makes_its_next_state(convention: str):
    run = text_run("gru", convention=convention)
    reading = read(run, TEXT)
    view = seen(run, gates, layer=2)
    trace = reading.trace("stack.layers.1.*")
    states, new = (trace[f"stack.layers.1.mixer.{tap}"][0] for tap in ("hidden", "candidate"))
    before = torch.cat([torch.zeros_like(states[:1]), states[:-1]])
    for row, name in zip(view["kept"].weights, view["kept"].rows, strict=True):
        unit = int(name.split()[1]) - 1
        made = torch.tensor(row) * before[:, unit] + (1 - torch.tensor(row)) * new[:, unit]
        assert torch.allclose(made, states[:, unit])


def test_units_are_sorted_by_what_they_keep_and_no_more_than_fit_are_shown():
    weights = seen(text_run("lstm", d_model=40), gates)["kept"].weights
    assert weights.shape == (24, 7)
    assert (np.diff(weights.mean(1)) <= 1e-12).all()


def test_the_backward_direction_is_turned_back():
    run = tag_run(encoder="lstm", n_layers=1)
    mixer: Any = run.model.encoder.stack.layers[0].mixer
    mixer.future.load_state_dict(mixer.past.state_dict())
    palindrome, other = seen(run, gates, "dog cat a cat dog"), seen(run, gates, "dog cat a tree the")
    for key in ("gates", "kept"):
        there, back = (palindrome[name].weights for name in (key, f"{key}.backward"))
        # With the same weights both directions read a palindrome alike, one of them from its end.
        assert np.allclose(there, back[:, ::-1])
        assert not np.allclose(there, back)
    assert not np.allclose(other["gates"].weights, other["gates.backward"].weights[:, ::-1])
    assert set(palindrome["size"].lines) == {"forward", "backward"}


def test_the_state_of_a_plain_recurrence_and_its_changes():
    run = text_run("rnn")
    states = read(run, TEXT).trace("*")["stack.layers.0.mixer.hidden"][0].numpy()
    view = seen(run, hidden, layer=1)
    for row, name in zip(view["hidden"].weights, view["hidden"].rows, strict=True):
        assert np.allclose(row, states[:, int(name.split()[1]) - 1])
    third = np.linalg.norm(states[3] - states[2]) / (np.linalg.norm(states[3]) + np.linalg.norm(states[2]))
    assert view["change"].values[3] == pytest.approx(third)
    assert view["change"].values[0] == pytest.approx(1)


def test_a_layer_or_a_side_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="layers 1 to 2 of lstm"):
        seen(text_run("lstm"), gates, layer=3)
    with pytest.raises(UsageError, match="no lstm over the side 'source'; there is over text"):
        seen(text_run("lstm"), gates, side="source")


def test_the_half_life_of_a_half_is_one_token():
    assert half_life(0.5) == 1
    assert half_life(0.5**0.1) == pytest.approx(10)
    assert half_life(0.0) == 0
