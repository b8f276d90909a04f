"""Sinusoids, rotations, linear biases and learned rows (positions.json)."""

from __future__ import annotations

import pytest
import torch
from exact import load, same, tensor
from torch import Tensor

from regard.core.tap import record
from regard.errors import UsageError
from regard.layers.embedding import EmbeddingConfig
from regard.layers.position import PositionConfig, RotaryConfig, alibi_slopes, rotate, sinusoids
from regard.mixers.attention import AttentionConfig

GOLDEN = load("positions")
SINES, ROPE, ALIBI = GOLDEN["sinusoidal"], GOLDEN["rope"], GOLDEN["alibi"]
HALF_SPLIT = torch.tensor([0, 2, 1, 3])  # (x_0, x_2) and (x_1, x_3) side by side


def test_sinusoids() -> None:
    encoding = sinusoids(torch.tensor(SINES["positions"]), SINES["d"])
    same(encoding, SINES["values"])
    same(encoding @ encoding.T, SINES["gram"])


def test_sinusoids_are_added_to_the_embeddings_from_any_position_on() -> None:
    embedding = EmbeddingConfig(1, 8, PositionConfig(8, "sinusoidal")).build().double()
    embedding.load_state_dict({"token_to_vector.weight": torch.zeros(1, 8)})
    same(embedding(torch.zeros(1, 6, dtype=torch.long), torch.tensor([0]))[0], SINES["values"])
    same(embedding(torch.zeros(1, 2, dtype=torch.long), torch.tensor([4]))[0], SINES["values"][4:])


def test_a_shift_of_sinusoids_is_a_rotation_that_forgets_the_position() -> None:
    # (sin a, cos a) turned backwards: rotate works on pairs (x, y), so that cosines come first.
    encoding = sinusoids(torch.arange(6), 8).unflatten(-1, (4, 2)).flip(-1).flatten(-2)
    shifted = rotate(encoding[:4][None, :, None], torch.full((1, 4), 2))[0, :, 0]
    same(shifted, encoding[2:])


def turned(vector: str, position: int) -> Tensor:
    return rotate(
        tensor(ROPE[vector]).reshape(1, 1, 1, 4), torch.tensor([[position]]), RotaryConfig(float(ROPE["base"]))
    )[0, 0, 0]


def test_rotary_positions_interleaved() -> None:
    golden = ROPE["interleaved"]
    same(turned("q", 2), golden["q_at_2"])
    same(turned("k", 5), golden["k_at_5"])
    for m, n in ((2, 5), (0, 3), (7, 10), (5, 2), (0, 0)):
        same(turned("q", m) @ turned("k", n), golden[f"dot_{m}_{n}"])


def test_rotary_half_split_is_the_same_after_a_permutation_of_coordinates() -> None:
    golden = ROPE["half_split"]

    def half_split(vector: str, position: int) -> Tensor:
        x = tensor(ROPE[vector])[HALF_SPLIT].reshape(1, 1, 1, 4)
        return rotate(x, torch.tensor([[position]]), RotaryConfig(float(ROPE["base"])))[0, 0, 0][HALF_SPLIT]

    same(half_split("q", 2), golden["q_at_2"])
    same(half_split("k", 5), golden["k_at_5"])
    for m, n in ((2, 5), (0, 3)):
        same(half_split("q", m) @ half_split("k", n), golden[f"dot_{m}_{n}"])


@pytest.mark.parametrize("n_heads", [4, 8])
def test_alibi_slopes(n_heads: int) -> None:
    same(alibi_slopes(n_heads), ALIBI[f"slopes_{n_heads}_heads"])


@pytest.mark.parametrize("base", [None, 3.0])
def test_alibi_biases_and_weights_inside_attention(base: float | None) -> None:
    mixer = AttentionConfig(8, 8, position="alibi", base=base, bias=False).build().double()
    torch.nn.init.zeros_(mixer.input_to_heads.weight[:8])  # no queries, so that only the biases are left
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    with record(mixer) as seen:
        readable = mixer(x)[0]
    scores, weights = seen["scores"][0][0], seen["weights"][0][0]  # (H, T, S)
    if base is None:
        future = ~torch.ones(4, 4, dtype=torch.bool).tril()
        same(scores[0].masked_fill(future, float("-inf")), ALIBI["bias_4x4_slope_half"])
    same(weights[0, 3], ALIBI["softmax_of_bias_row_4_slope_half"])
    same(weights[7, 3], ALIBI["softmax_with_zero_scores_slope_1/256_row_4"])
    same(mixer(x)[0], readable)


def test_learned_positions_end_with_their_table() -> None:
    embedding = EmbeddingConfig(5, 2, PositionConfig(2, "learned", 4)).build()
    assert embedding.max_length == 4
    tokens = torch.zeros(1, 3, dtype=torch.long)
    assert embedding(tokens, torch.tensor([1])).shape == (1, 3, 2)
    with pytest.raises(UsageError, match="position 4 is past the 4 learned positions"):
        embedding(tokens, torch.tensor([2]))


def test_sinusoids_from_a_table_are_those_made_anew() -> None:
    positions = PositionConfig(6, "sinusoidal").build()
    for start in (0, 63, 64, 1000, (1 << 14) - 1, 1 << 20):
        places = torch.tensor([[start, start + 1], [3, 4]])
        assert torch.equal(positions(places[:, 0], 2), sinusoids(places, 6))
