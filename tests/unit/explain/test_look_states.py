"""State spaces: the matrix times inputs is the scan, kernels are closed forms, states are those of single steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from exact import load

from look_run import TEXT, class_run, pair_run, seen, tag_run, text_run
from regard.core.tap import Trace
from regard.errors import UsageError
from regard.explain.inputs import read
from regard.explain.looks.states import kernels, moving, selection
from regard.explain.scan import half_lives, scan_matrix, states
from regard.explain.site import Site, sites
from regard.mixers.mamba import MambaConfig
from regard.mixers.s4d import S4dConfig
from regard.mixers.ssd import SsdConfig
from regard.tasks.reading import Side

GOLDEN = load("ssm")


@pytest.mark.parametrize(("kind", "config"), [("mamba", MambaConfig(1, 1, 1)), ("ssd", SsdConfig(1, 1, 1, expand=1))])
def test_the_matrix_is_that_of_the_golden_file(kind: str, config: Any):
    module = config.build().double()
    torch.nn.init.zeros_(module.log_decay)  # A = -1
    steps = GOLDEN["selective_scan"]["steps"]
    side = Side("text", tuple("abcd"))
    taps = {"steps": "delta", "inputs": "B", "readers": "C"}
    arrays = {f"m.{tap}": torch.tensor([[[step[key]] for step in steps]]).double() for tap, key in taps.items()}
    if kind == "ssd":
        arrays |= {name: value[..., None] for name, value in arrays.items() if name != "m.steps"}
    found = scan_matrix(Site("m", kind, module, side, side, 1), Trace(arrays, torch.zeros(1), 0.0), [0])
    assert np.allclose(found[0], GOLDEN["duality_matrix"]["M"], atol=1e-15)


@pytest.mark.parametrize("name", ["mamba", "mamba2"])
@torch.no_grad()
def test_the_matrix_times_the_inputs_is_what_the_scan_reads(name: str):
    run = text_run(name)
    reading = read(run, TEXT)
    site = sites(reading, "selection")[-1]
    trace = reading.trace()
    stream = trace[f"{site.name}.stream"][0]  # (T, E) or (T, H, P)
    count = stream.shape[1]
    found = scan_matrix(site, trace, list(range(count)))
    read_out = trace[f"{site.name}.readers"][0]
    after = states(site, trace)
    if name == "mamba":
        expected = torch.einsum("TEN,TN->TE", after, read_out)
        assert torch.allclose(torch.einsum("ETS,SE->TE", found, stream), expected)
    else:
        share = count // read_out.shape[1]
        expected = torch.einsum("THPN,THN->THP", after, read_out.repeat_interleave(share, 1))
        assert torch.allclose(torch.einsum("HTS,SHP->THP", found, stream), expected)
    assert found.triu(1).abs().max() == 0


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru", "s4d", "mamba", "mamba2"])
@torch.no_grad()
def test_states_are_those_that_the_model_carries_from_token_to_token(name: str):
    run: Any = text_run(name)
    reading = read(run, TEXT)
    site = sites(reading, "state")[-1]
    found = states(site, reading.trace())
    state = run.model.init_state(1)
    for place, token in enumerate(reading.inputs[0][0]):
        _, state = run.model(token.reshape(1, 1), state)
        last = state.parts[-1]
        field = {"lstm": "cell", "s4d": "modes", "mamba": "memory", "mamba2": "memory"}.get(name, "hidden")
        assert torch.allclose(found[place], getattr(last, field)[0])


def test_kernels_are_sums_of_decaying_exponentials():
    module = S4dConfig(3, 4, "real").build().double()
    c = module.state_to_channel[..., 0].detach()
    found = module.weights(6).detach()
    for channel in range(3):
        dt = float(module.log_step[channel].detach().exp())
        for j in range(6):
            terms = [
                float(c[channel, n]) * math.exp(-(n + 1) * dt * j) * (1 - math.exp(-(n + 1) * dt)) / (n + 1)
                for n in range(4)
            ]
            assert float(found[channel, j]) == pytest.approx(sum(terms))
        assert float(half_lives(module)[channel]) == pytest.approx(math.log(2) / dt, rel=1e-6)


def test_shown_kernels_are_those_of_the_model_and_sorted_by_their_half_life():
    run = text_run("s4d")
    reading = read(run, TEXT)
    tapped = reading.trace()["stack.layers.1.mixer.kernel"][0]
    view = seen(run, kernels)
    for name, line in view["kernels"].lines.items():
        channel = int(name.rpartition(" ")[2]) - 1
        shown = np.array([y for _, y in line])
        assert np.abs(shown).max() == pytest.approx(1)
        assert np.allclose(shown[:7] * float(tapped[channel, 0]), shown[0] * tapped[channel].numpy())
    lives = [row[2] for row in view["half_lives"].rows]
    assert lives == sorted(lives, reverse=True)


def test_heads_of_mamba_2_are_shown_one_by_one_and_mamba_has_none():
    run = text_run("mamba2")
    mean, first = (seen(run, selection, head=head)["matrix"].weights for head in (None, 1))
    count = sites(read(run, TEXT), "selection")[0].module.n_heads
    every = [seen(run, selection, head=head)["matrix"].weights for head in range(1, count + 1)]
    assert np.allclose(np.mean(every, 0), mean)
    assert np.allclose(every[0], first)
    with pytest.raises(UsageError, match=f"heads 1 to {count}"):
        seen(run, selection, head=count + 1)
    with pytest.raises(UsageError, match="channels and no heads"):
        seen(text_run("mamba"), selection, head=1)


@pytest.mark.parametrize("encoder", ["mamba", "mamba2"])
def test_a_layer_that_reads_backwards_sees_the_future(encoder: str):
    view = seen(class_run(encoder=encoder), selection, layer=1)
    assert not np.triu(view["matrix"].weights, 1).any()
    assert not np.tril(view["matrix.backward"].weights, -1).any()
    assert view["matrix.backward"].weights[0, 1] > 0


def test_every_layer_and_direction_has_its_state():
    view = seen(tag_run(encoder="lstm"), moving)
    assert list(view["changes"].rows) == ["lstm 1", "lstm 1, backward", "lstm 2", "lstm 2, backward"]
    # The first token that is read comes from nothing, in either direction.
    assert view["changes"].weights[0, 0] == pytest.approx(1)
    assert view["changes"].weights[1, -1] == pytest.approx(1)
    assert seen(pair_run("bahdanau"), moving, TEXT, "a dog", side="source").about["side"] == "source"
