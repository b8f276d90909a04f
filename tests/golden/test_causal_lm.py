"""The mean loss of a language model, the causal weight matrix and the positional sum (causal_lm.json)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from exact import load, same, tensor
from torch import Tensor

from regard.core.tap import record
from regard.kernels import cross_entropy
from regard.kernels.cross_entropy import linear_cross_entropy
from regard.layers.embedding import EmbeddingConfig
from regard.layers.position import PositionConfig
from regard.mixers.attention import AttentionConfig, SelfAttention

GOLDEN = load("causal_lm")
LOSS, MATRIX = GOLDEN["rnn_lm_loss"], GOLDEN["causal_matrix"]
IGNORED = -100


@pytest.fixture(params=["whole", "chunked"])
def _loss_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms of the loss: all logits at once, and one row at a time."""
    if request.param == "chunked":
        monkeypatch.setattr(cross_entropy, "WORTH_CHUNKING", 0)
        monkeypatch.setitem(cross_entropy.LOGITS_AT_A_TIME, "cpu", 2)


def summed_loss(probabilities: Tensor, targets: Tensor) -> Tensor:
    """The loss of a head of two words whose first has the given probability at each position."""
    hidden = torch.stack([probabilities, 1 - probabilities], -1).log()
    return linear_cross_entropy(hidden, tensor([[1, 0], [0, 1]]), None, targets)


@pytest.mark.usefixtures("_loss_form")
def test_loss_is_the_mean_of_three_negative_log_likelihoods() -> None:
    probabilities, targets = tensor(LOSS["own_probabilities"]), torch.zeros(3, dtype=torch.long)
    for t, expected in enumerate(LOSS["nll"]):
        same(summed_loss(probabilities[t : t + 1], targets[:1]), expected)
    total = summed_loss(probabilities, targets)
    same(total, LOSS["sum"])
    same(total / 3, LOSS["mean"])
    same((total / 3).exp(), LOSS["perplexity"])


@pytest.mark.usefixtures("_loss_form")
def test_a_padded_batch_averages_over_tokens_and_not_over_sentences() -> None:
    golden = LOSS["batch_of_two_lengths"]
    (long, short) = golden["nll_rows"]
    losses = tensor([long, short + [0.5] * (len(long) - len(short))])
    targets = torch.tensor([[0] * len(long), [0] * len(short) + [IGNORED] * (len(long) - len(short))])
    mean = summed_loss((-losses).exp(), targets) / (targets != IGNORED).sum()
    same(mean, golden["mean_over_tokens"])
    assert abs(float(mean) - golden["mean_of_sentence_means"]) > 0.1


def attention(queries: Any, causal: bool = True) -> SelfAttention:
    """A head whose keys are one-hot and whose queries and values are given rows, on one-hot inputs of width 3."""
    mixer = AttentionConfig(3, 1, causal=causal, score="dot", bias=False).build().double()
    identity = torch.eye(3, dtype=torch.float64)
    stacked = torch.cat([tensor(queries).T, identity, tensor(MATRIX["V_own"]).T])
    mixer.load_state_dict({"input_to_heads.weight": stacked, "heads_to_output.weight": identity})
    return mixer


def weights_and_outputs(mixer: SelfAttention, length: int = 3) -> tuple[Tensor, Tensor]:
    x = torch.eye(3, dtype=torch.float64)[None, :length]
    with record(mixer, "weights") as seen:
        y = mixer(x)[0]
    same(mixer(x)[0], y)
    return seen["weights"][0][0, 0], y[0]


def test_causal_weights_and_hidden_states() -> None:
    realisation = MATRIX["realisation"]
    weights, h = weights_and_outputs(attention(realisation["Q"]))
    same(weights, MATRIX["weights_exact"])
    same(weights.sum(-1), MATRIX["row_sums"])
    same(h, MATRIX["H_exact"])
    same(weights_and_outputs(attention(realisation["Q"], causal=False))[0], realisation["unmasked_weights"])


def test_causal_scores_are_those_of_the_matrix() -> None:
    mixer = attention(MATRIX["realisation"]["Q"])
    with record(mixer, "scores") as seen:
        mixer(torch.eye(3, dtype=torch.float64)[None])
    masked = seen["scores"][0][0, 0].masked_fill(~torch.ones(3, 3, dtype=torch.bool).tril(), float("-inf"))
    same(masked, MATRIX["scores_that_give_these_weights"])


@pytest.mark.parametrize(("step", "length"), [("h2", 2), ("h3", 3)])
def test_step_illustrations(step: str, length: int) -> None:
    golden = GOLDEN["step_illustrations"][step]
    scores = tensor(golden["weights"]).log().tolist() + [0.0] * (3 - length)
    queries = [[0.0] * 3 for _ in range(3)]
    queries[length - 1] = scores
    weights, h = weights_and_outputs(attention(queries), length)
    same(weights[-1], golden["weights"])
    same(h[-1], golden["exact"])


def test_same_word_at_two_positions_has_two_embeddings() -> None:
    golden = GOLDEN["positions"]["own_example"]
    embedding = EmbeddingConfig(2, 2, PositionConfig(2, "learned", 3)).build().double()
    embedding.load_state_dict(
        {"token_to_vector.weight": tensor(golden["c"][:2]), "position.table.weight": tensor(golden["p"])}
    )
    same(embedding(torch.tensor([[0, 1, 0]]), torch.tensor([0]))[0], golden["emb"])
    # From a state that has seen two tokens, the third row of the table.
    same(embedding(torch.tensor([[0]]), torch.tensor([2]))[0, 0], golden["emb"][2])
