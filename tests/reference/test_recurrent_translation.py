"""RNNsearch and GNMT against the equations of their papers, written as plain loops in float64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from answers import answered
from regard.core import registry
from regard.core.data_spec import EXAMPLE
from regard.core.model import logits_of
from regard.core.tap import record
from regard.training.estimate import on_meta

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "gnmt.json").read_text())
VOCABULARY = 11
WIDTHS = {"d_model": 6, "d_hidden": 5, "d_readout": 4}
SOURCE, TOKENS = torch.tensor([3, 1, 4, 1, 5]), torch.tensor([0, 9, 2, 6])


def random_weights(model: Any) -> Any:
    model = model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return model


def affine(linear: Any, x: Tensor) -> Tensor:
    return linear.weight @ x + (0 if linear.bias is None else linear.bias)


def gru_of_cho(cell: Any, x: Tensor, s: Tensor) -> Tensor:
    """Bahdanau et al. 2014, A.1.1; torch keeps reset, update and candidate one below the other."""
    (w_r, w_z, w), (u_r, u_z, u) = cell.weight_ih_l0.chunk(3), cell.weight_hh_l0.chunk(3)
    (b_r, b_z, b), (d_r, d_z, d) = cell.bias_ih_l0.chunk(3), cell.bias_hh_l0.chunk(3)
    r = torch.sigmoid(w_r @ x + u_r @ s + b_r + d_r)
    z = torch.sigmoid(w_z @ x + u_z @ s + b_z + d_z)
    candidate = torch.tanh(w @ x + u @ (r * s) + b + d)
    return (1 - z) * s + z * candidate


def lstm(cell: Any, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    gates = cell.weight_ih_l0 @ x + cell.weight_hh_l0 @ h + cell.bias_ih_l0 + cell.bias_hh_l0
    i, f, g, o = gates.chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def looked(attention: Any, query: Tensor, memory: list[Tensor]) -> tuple[Tensor, Tensor]:
    """alpha = softmax_j v . tanh(W_a s + U_a h_j), and the sum of alpha_j h_j."""
    asked = affine(attention.input_to_queries, query)
    v = attention.score.sum_to_score[0]
    e = torch.stack([v @ torch.tanh(asked + attention.memory_to_keys.weight @ h) for h in memory])
    alpha = e.exp() / e.exp().sum()
    return alpha, sum((a * h for a, h in zip(alpha, memory, strict=True)), torch.zeros_like(memory[0]))


@torch.no_grad()
def test_rnnsearch_is_the_loop_of_its_paper() -> None:
    model = random_weights(registry.build("bahdanau", vocab_size=VOCABULARY, size="paper", **WIDTHS))
    embed = model.encoder.embedding.token_to_vector.weight
    both = model.encoder.stack.layers[0]
    ahead, back, s = [], [], torch.zeros(5).double()
    for token in SOURCE.tolist():
        s = gru_of_cho(both.past.cell, embed[token], s)
        ahead.append(s)
    s = torch.zeros(5).double()
    for token in SOURCE.flip(0).tolist():
        s = gru_of_cho(both.future.cell, embed[token], s)
        back.append(s)
    memory = [torch.cat(pair) for pair in zip(ahead, reversed(back), strict=True)]
    decoder = model.decoder.stack
    # s_0 = tanh(W_s h_1) with the backward state of the first word alone (A.2.2).
    s, rows, alphas = torch.tanh(affine(decoder.aligned.first_state.vector_to_state, memory[0][5:])), [], []
    for token in TOKENS.tolist():
        x = model.decoder.embedding.token_to_vector.weight[token]
        alpha, c = looked(decoder.aligned.attention, s, memory)
        wide = affine(decoder.seen_to_output, torch.cat([s, x, c]))  # with s of the step before
        t = torch.stack([torch.maximum(wide[2 * i], wide[2 * i + 1]) for i in range(4)])
        rows.append(affine(model.decoder.head, t))
        alphas.append(alpha)
        s = gru_of_cho(decoder.aligned.cell.cell, torch.cat([x, c]), s)
    given = model.given(SOURCE[None])
    torch.testing.assert_close(logits_of(given, TOKENS[None])[0], torch.stack(rows), rtol=1e-12, atol=1e-12)
    found = model.alignment(TOKENS[None], model.start(SOURCE[None]))
    torch.testing.assert_close(found[0], torch.stack(alphas), rtol=1e-12, atol=1e-12)


@torch.no_grad()
def encoded(model: Any) -> list[Tensor]:
    """GNMT's encoder: both directions at the bottom, residual from the third layer on."""
    layers = model.encoder.stack.layers
    words = [model.encoder.embedding.token_to_vector.weight[token] for token in SOURCE.tolist()]
    width = len(words[0])

    def scan(cell: Any, xs: list[Tensor]) -> list[Tensor]:
        h, c, found = torch.zeros(width).double(), torch.zeros(width).double(), []
        for x in xs:
            h, c = lstm(cell, x, h, c)
            found.append(h)
        return found

    bottom = layers[0].mixer
    back = scan(bottom.future.cell, words[::-1])[::-1]
    xs = [torch.cat(pair) for pair in zip(scan(bottom.past.cell, words), back, strict=True)]
    for number, layer in enumerate(layers[1:], start=2):
        ys = scan(layer.mixer.cell, xs)
        xs = [y + x for y, x in zip(ys, xs, strict=True)] if number >= 3 else ys
    return xs


@torch.no_grad()
def test_gnmt_is_wired_as_in_its_paper() -> None:
    n_layers, width = GOLDEN["architecture"]["decoder_layers"], 4
    model = random_weights(registry.build("gnmt", vocab_size=VOCABULARY, size="paper", d_model=width, dropout=0.0))
    memory = encoded(model)
    found, _ = model.encode(SOURCE[None])
    torch.testing.assert_close(found[0], torch.stack(memory), rtol=1e-12, atol=1e-12)
    stack = model.decoder.stack
    first = torch.tanh(affine(stack.bottom.first_state.vector_to_state, memory[-1]))
    states = [tuple(first.chunk(2))] + [(torch.zeros(width).double(),) * 2] * (n_layers - 1)
    cells = [stack.bottom.cell.cell, *(layer.cell for layer in stack.upper)]
    assert len(cells) == n_layers == 8
    rows, alphas = [], []
    for token in TOKENS.tolist():
        x = model.decoder.embedding.token_to_vector.weight[token]
        # The query is the output of the bottom layer at the step before, and all layers get the context of this one.
        alpha, context = looked(stack.bottom.attention, states[0][0], memory)
        for number, cell in enumerate(cells, start=1):
            h, c = lstm(cell, torch.cat([x, context]), *states[number - 1])
            states[number - 1] = (h, c)
            x = h + x if number >= 3 else h
        rows.append(affine(model.decoder.head, x))
        alphas.append(alpha)
    given = model.given(SOURCE[None])
    torch.testing.assert_close(logits_of(given, TOKENS[None])[0], torch.stack(rows), rtol=1e-12, atol=1e-12)
    with record(model.decoder, "stack.bottom.attention.weights") as seen:
        answered(given, TOKENS[None], given.init_state(1))
    heard = torch.cat(seen["stack.bottom.attention.weights"], 2)[0, 0]
    torch.testing.assert_close(heard, torch.stack(alphas), rtol=1e-12, atol=1e-12)


def test_the_sizes_of_the_papers_are_those_of_the_papers() -> None:
    gnmt: Any = on_meta(registry.entry("gnmt").config(EXAMPLE, "paper"))
    told = GOLDEN["architecture"]
    assert len(gnmt.encoder.stack.layers) == told["encoder_layers"]
    assert gnmt.decoder.stack.upper[0].d_hidden == told["units_per_layer"]
    search: Any = on_meta(registry.entry("bahdanau").config(EXAMPLE, "paper"))
    assert search.encoder.embedding.token_to_vector.weight.shape[1] == 620
    assert search.decoder.stack.aligned.cell.d_hidden == 1000
    assert not [part for part in search.modules() if isinstance(part, (torch.nn.LayerNorm, torch.nn.Dropout))]


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_deep_encoder_in_both_directions_equals_torch_packed(kind: str) -> None:
    """Residual layers in both directions, each pair brought back to the width by a linear map, on padded rows."""
    width, lengths = 6, torch.tensor([5, 1, 3])
    model = registry.build("classifier", vocab_size=VOCABULARY, size="tiny", d_model=width, encoder=kind, n_layers=3)
    model = random_weights(model)
    cell = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind]
    x = model.encoder.embedding.token_to_vector(torch.arange(15).reshape(3, 5) % VOCABULARY)
    for number, block in enumerate(model.encoder.stack.layers):
        theirs = cell(width, width, bidirectional=True, batch_first=True).double()
        weights = block.mixer.past.cell.state_dict()
        weights |= {f"{name}_reverse": value for name, value in block.mixer.future.cell.state_dict().items()}
        theirs.load_state_dict(weights)
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
        x = block.mixer.pair_to_output(y) + (x if number else 0)
    found, _ = model.encoder(torch.arange(15).reshape(3, 5) % VOCABULARY, lengths)
    for row, count in enumerate(lengths.tolist()):
        torch.testing.assert_close(found[row, :count], x[row, :count], rtol=1e-12, atol=1e-12)
