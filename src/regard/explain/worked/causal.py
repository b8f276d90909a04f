"""A language model's loss, and self-attention that may not look ahead: one triangular matrix, all states at once.

L = mean over tokens of -log P(w_t | w_1 .. w_(t-1))
h_i = sum over j <= i of a_ij v_j,   a_i = softmax over j <= i of q_i . k_j
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.batch import NOT_COUNTED
from regard.decoding.score import perplexity
from regard.explain.view import Panel, View
from regard.explain.worked.head import ask, head, look
from regard.explain.worked.sheet import (
    answer,
    formula,
    fractions,
    heat,
    listed,
    numbers,
    sheet,
    short,
    tensor,
    text,
)
from regard.kernels.cross_entropy import linear_cross_entropy
from regard.layers.embedding import EmbeddingConfig
from regard.layers.position import PositionConfig

WORDS = ["students", "opened", "their", "books"]
PROBABILITIES = tensor([1 / 2, 1 / 4, 1 / 8])
VALUES = tensor([[1, 0, 2], [0, 1, -1], [2, 2, 0]])
WEIGHTS = tensor([[1, 0, 0], [0.3, 0.7, 0], [0.1, 0.5, 0.4]])
STATES = ["h_1", "h_2", "h_3"]
PLACES = ["1", "2", "3"]
IDENTITY = torch.eye(3, dtype=torch.float64)


def view() -> View:
    parts = (_loss, _batch, _steps, _matrix, _cheating, _order, _positions)
    return sheet("causal", "Causal self-attention", *(part() for part in parts))


def loss_of(probabilities: Tensor, counted: Tensor) -> Tensor:
    """-log p summed over the words that count: the loss of a head whose first word has the given probabilities."""
    hidden = torch.stack([probabilities, 1 - probabilities], -1).log()
    return linear_cross_entropy(hidden, tensor([[1, 0], [0, 1]]), None, torch.where(counted, 0, NOT_COUNTED))


def _loss() -> Sequence[Panel]:
    each = torch.stack([loss_of(p[None], torch.tensor([True])) for p in PROBABILITIES])
    total = loss_of(PROBABILITIES, torch.ones(3, dtype=torch.bool))
    mean = total / 3
    return [
        text(
            "The model reads 'students opened their books' and says at every word how probable the next one is. The "
            "true next word is then given, whatever the model said.",
            "The loss of a language model",
        ),
        numbers(
            "probabilities",
            PROBABILITIES,
            "P(w_t | w_1 .. w_(t-1))",
            title="What the model gives the true words",
            rows=["P"],
            columns=WORDS[1:],
            note=fractions(PROBABILITIES),
        ),
        numbers("nll", each, "L_t = -log P", title="The loss of each word", rows=["L"], columns=WORDS[1:]),
        numbers(
            "loss",
            torch.stack([total, mean, tensor(perplexity(float(mean)))]),
            "L = (L_1 + L_2 + L_3) / 3        perplexity = e^L",
            title="The loss of the sentence",
            columns=["sum", "mean", "perplexity"],
            note="The mean is 2 ln 2: as unsure as an even choice among four words.",
        ),
    ]


def _batch() -> Sequence[Panel]:
    # The first word of the model's vocabulary gets e^-loss; the last two places of row 2 are padding.
    losses = tensor([[1, 2, 3], [4, 0.5, 0.5]])
    counted = torch.tensor([[True, True, True], [True, False, False]])
    by_token = loss_of((-losses).exp(), counted) / counted.sum()
    rows = [loss_of((-row).exp(), here) / here.sum() for row, here in zip(losses, counted, strict=True)]
    shown = losses.masked_fill(~counted, torch.nan)
    return [
        numbers(
            "batch", shown, "L_t", title="Two sentences in a batch", rows=["sentence 1", "sentence 2"], columns=PLACES
        ),
        numbers(
            "batch_means",
            torch.stack([by_token, torch.stack(rows).mean()]),
            "sum of all L_t / number of words",
            title="Two ways to take the mean",
            columns=["over words", "over sentences"],
        ),
        answer(
            "Which mean is the loss?",
            f"That over all words of the batch, {short(by_token)}. Padding never counts, and a long sentence counts "
            "for as many words as it has.",
        ),
    ]


def _steps() -> Sequence[Panel]:
    panels: list[Panel] = []
    for name, weights, word in (("h_3", [0.3, 0.5, 0.2], "books"), ("h_2", [0.7, 0.3], "their")):
        size = len(weights)
        # With one-hot keys the query is the list of scores: the logarithms of the weights that are wanted.
        scores, found, state = ask(tensor(weights).log(), IDENTITY[:size, :size], VALUES[:size])
        terms = " + ".join(f"{weight} v_{j}" for j, weight in enumerate(weights, 1))
        panels += [
            numbers(
                f"step_{name}_weights",
                torch.stack([scores, found]),
                f"a = softmax({', '.join(f'q_{size}.k_{j}' for j in range(1, size + 1))})",
                title=f"Weights of {name}",
                rows=["score", "weight"],
                columns=[f"v_{j}" for j in range(1, size + 1)],
            ),
            numbers(
                f"step_{name}",
                state,
                f"{name} = {terms}",
                title=f"{name} predicts '{word}'",
                rows=[name],
                columns=PLACES,
                note=fractions(state),
            ),
        ]
    return [
        text(
            "In an RNN h_3 has to hold all that is useful of the words before: a bottleneck. And it has to wait for "
            "h_2. Self-attention takes what it needs from every word directly.",
            "From states to attention",
        ),
        formula("q_i = f(W_q c_i)    k_i = f(W_k c_i)    v_i = f(W_v c_i)", title="c_i is the vector of word i"),
        text("The notes leave f open. The Transformer has none: f is the identity."),
        numbers("V", VALUES, "v_i = W_v c_i", title="Values", rows=["v_1", "v_2", "v_3"], columns=PLACES),
        *panels,
        answer("Why is there no q_2 . k_3?", "It would be cheating: word 3 is what h_2 has to predict."),
    ]


def causal_queries() -> Tensor:
    """Queries whose dot products with one-hot keys are the logarithms of the wanted weights, 0 where not allowed."""
    return torch.where(WEIGHTS > 0, WEIGHTS, 1.0).log()


def _matrix() -> Sequence[Panel]:
    seen = look(head(causal_queries(), IDENTITY, VALUES, causal=True), IDENTITY)
    ahead = ~torch.ones(3, 3, dtype=torch.bool).tril()
    return [
        text(
            "No state waits for another one. All scores are one matrix product; what lies ahead is struck out before "
            "the softmax, and a second product makes all states.",
            "Three states at once",
        ),
        numbers(
            "scores",
            seen.scores.masked_fill(ahead, torch.nan),
            "S = Q K^T, only j <= i",
            title="Scores",
            rows=["q_1", "q_2", "q_3"],
            columns=["k_1", "k_2", "k_3"],
            note="Row 1 has one score, row 2 two, row 3 all three.",
        ),
        numbers("weights", seen.weights, "A = softmax(S)", title="Weights", rows=STATES, columns=["v_1", "v_2", "v_3"]),
        heat("heat", seen.weights, "The triangle", STATES, ["v_1", "v_2", "v_3"]),
        numbers(
            "H",
            seen.outputs,
            "H = A V",
            title="All three states in one product",
            rows=STATES,
            columns=PLACES,
            note=f"h_2 is {fractions(seen.outputs[1])} and h_3 is {fractions(seen.outputs[2])}.",
        ),
        answer(
            "Why are these not the weights of the steps before?",
            "The notes use two sets of numbers: 0.7, 0.3 and 0.3, 0.5, 0.2 in the steps, 0.3, 0.7 and 0.1, 0.5, 0.4 in "
            "the matrix. Both are illustrations; neither follows from the other.",
        ),
    ]


def _cheating() -> Sequence[Panel]:
    seen = look(head(causal_queries(), IDENTITY, VALUES), IDENTITY)
    return [
        numbers(
            "unmasked_weights",
            seen.weights,
            "A = softmax(Q K^T), nothing struck out",
            title="Without the mask",
            rows=STATES,
            columns=["v_1", "v_2", "v_3"],
            marked=[(0, 1), (0, 2), (1, 2)],
            note="The marked weights look at words that are still to be predicted.",
        )
    ]


def _order() -> Sequence[Panel]:
    mixer = head(causal_queries(), IDENTITY, VALUES, causal=True)
    swapped = look(mixer, IDENTITY[[1, 0, 2]]).outputs[-1]
    return [
        numbers(
            "swapped_prefix",
            swapped,
            "h_3 of words 2, 1, 3",
            title="The first two words change places",
            rows=["h_3"],
            columns=PLACES,
        ),
        answer(
            "Does h_3 notice the order of the words before it?",
            f"No: it is {listed(swapped)} as before. One layer of attention sees a bag of words.",
        ),
    ]


def _positions() -> Sequence[Panel]:
    words, places = tensor([[1, 0], [0, 1]]), tensor([[0.5, 0.25], [-0.5, 0.75], [0.0, -1.0]])
    embedding = EmbeddingConfig(2, 2, PositionConfig(2, "learned", 3)).build().double()
    embedding.load_state_dict({"token_to_vector.weight": words, "position.table.weight": places})
    tokens = torch.tensor([[0, 1, 0]])
    labels = ["word 1", "word 2", "word 3"]
    sides = ["1", "2"]
    return [
        text("So each place gets a vector of its own, learned like any other weight.", "Positions"),
        numbers("c", words[tokens[0]], "c_i", title="Words; the third is the first again", rows=labels, columns=sides),
        numbers("p", places, "p_i", title="Places, the same in every sentence", rows=labels, columns=sides),
        numbers(
            "emb",
            embedding(tokens, torch.tensor([0]))[0],
            "emb_i = c_i + p_i",
            title="What attention reads",
            rows=labels,
            columns=sides,
            note="The same word at two places now has two vectors.",
        ),
    ]
