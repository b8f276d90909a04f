"""The three-input self-attention example: every query, key, value, score, weight and output
(three_input_self_attention.json)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from exact import load, same, tensor
from torch import Tensor

from regard.core.tap import record
from regard.layers.score import ScoreName
from regard.mixers.attention import AttentionConfig, SelfAttention

GOLDEN = load("three_input_self_attention")
X = tensor([GOLDEN["inputs"]])  # (1, 3, 4)


def attention(score: ScoreName = "dot", causal: bool = False) -> SelfAttention:
    """One head of width 3 on inputs of width 4; the output map keeps the head and adds a zero."""
    mixer = AttentionConfig(4, 1, d_head=3, score=score, causal=causal, bias=False).build().double()
    weights = {
        "input_to_heads.weight": torch.cat([tensor(GOLDEN[f"W_{letter}"]).T for letter in "QKV"]),
        "heads_to_output.weight": torch.eye(4, 3),
    }
    if score == "cosine":
        weights["score.tau"] = torch.ones(1, 1)
    mixer.load_state_dict(weights)
    return mixer


def readable_and_fast(mixer: SelfAttention, x: Tensor = X) -> tuple[Tensor, dict[str, list[Tensor]]]:
    """The outputs (T, 3), equal on both paths, and what the taps heard."""
    with record(mixer) as seen:
        y = mixer(x)[0][0]
    same(mixer(x)[0][0], y)
    same(y[:, 3], [0, 0, 0])
    return y[:, :3], seen


def check(mixer: SelfAttention, expected: dict[str, Any]) -> None:
    y, seen = readable_and_fast(mixer)
    if "scores" in expected:
        same(seen["scores"][0][0, 0], expected["scores"])
    same(seen["weights"][0][0, 0], expected["weights"])
    same(seen["summary"][0][0, :, 0], expected["outputs"])
    same(y, expected["outputs"])


def test_queries_keys_and_values() -> None:
    _, seen = readable_and_fast(attention())
    for tap, letter in {"queries": "Q", "keys": "K", "values": "V"}.items():
        same(seen[tap][0][0, :, 0], GOLDEN[letter])


def test_unscaled_as_published() -> None:
    check(attention(), GOLDEN)


def test_scaled_by_the_root_of_the_key_width() -> None:
    check(attention("scaled_dot"), GOLDEN["scaled_by_sqrt_3"])


def test_causal() -> None:
    check(attention(causal=True), GOLDEN["causal"])


def test_causal_token_by_token() -> None:
    mixer = attention(causal=True)
    state = mixer.init_state(1)
    for t in range(3):
        y, state = mixer.step(X[:, t], state)
        same(y[0, :3], GOLDEN["causal"]["outputs"][t])


def test_cosine_scores_are_the_cosines() -> None:
    _, seen = readable_and_fast(attention("cosine"))
    same(seen["scores"][0][0, 0], GOLDEN["cosine_similarity_of_queries_and_keys"])


def test_published_weights_are_the_true_ones_rounded_by_hand() -> None:
    published = GOLDEN["published_rounding"]
    y, seen = readable_and_fast(attention())
    weights, values = seen["weights"][0][0, 0], tensor(GOLDEN["V"])
    for row in range(3):
        rounded = tensor(published[f"weights_input_{row + 1}"])
        assert float((weights[row] - rounded).abs().max()) < 0.1
        same(rounded @ values, published[f"output_input_{row + 1}"])
    same((y[0] - tensor(published["output_input_1"])).abs().max(), published["max_abs_error_of_rounded_output_1"])


def test_learned_numbers_are_three_matrices() -> None:
    mixer = attention()
    assert mixer.input_to_heads.weight.numel() == GOLDEN["numbers_learned"]
    rows, columns = GOLDEN["shape_of_each"]
    assert mixer.input_to_heads.weight.shape == (GOLDEN["weight_matrices_learned"] * columns, rows)


@pytest.mark.parametrize("causal", [False, True])
def test_permuting_the_inputs_permutes_the_outputs_unless_causal(causal: bool) -> None:
    golden = GOLDEN["permutation_equivariance"]
    mixer, order = attention(causal=causal), torch.tensor(golden["permutation"])
    assert mixer.permutes is not causal
    plain, shuffled = mixer(X)[0][0, :, :3].detach(), mixer(X[:, order])[0][0, :, :3].detach()
    same(shuffled, golden["with_causal_mask_outputs_of_permuted_input" if causal else "outputs_of_permuted_input"])
    equal = float((shuffled - plain[order]).abs().max()) < 1e-12
    assert equal is golden["with_causal_mask_equal" if causal else "equals_permuted_outputs"]
