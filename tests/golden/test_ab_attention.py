"""Attention over strings of A and B, in base 3 where every weight is a fraction and in base e (ab_attention.json)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from exact import load, same, tensor
from torch import Tensor

from regard.core.tap import record
from regard.layers.score import build_score, softmax
from regard.mixers.attention import AttentionConfig, SelfAttention
from regard.mixers.mean import MeanConfig

GOLDEN = load("ab_attention")
E = tensor(GOLDEN["E"])
ROWS = GOLDEN["next_char_task"]["rows"]
BASES = {"base_3": 3.0, "base_e": None}


def best(numbers: dict[str, Any], key: str) -> Any:
    """The exact fractions where the file has them, else the floats."""
    return numbers.get(f"{key}_exact", numbers[key])


def embedded(string: str) -> Tensor:
    return tensor([[GOLDEN["embeddings"][letter] for letter in string]])  # (1, T, 2)


def attention(w_q: Any, w_k: Any, w_v: Any, base: float | None) -> SelfAttention:
    """One full head with unscaled dot products; the matrices multiply rows from the right."""
    mixer = AttentionConfig(2, 1, causal=False, score="dot", base=base, bias=False).build().double()
    stacked = torch.cat([tensor(w).T for w in (w_q, w_k, w_v)])
    mixer.load_state_dict({"input_to_heads.weight": stacked, "heads_to_output.weight": tensor([[1, 0], [0, 1]])})
    return mixer


def one_query(q: Any, keys: Tensor, base: float | None) -> tuple[Tensor, Tensor, Tensor]:
    """Scores (S,), weights (S,) and output (2,) of a single query, with the keys as values."""
    scores = build_score("dot", 1, 2)(tensor(q).reshape(1, 1, 1, 2), keys[None, :, None])[0, 0, 0]
    weights = softmax(scores, base=base)
    return scores, weights, weights @ keys


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("part", ["query_single", "query_times_ten"])
def test_one_query_over_aaba(part: str, base: str) -> None:
    expected = GOLDEN[part][base]
    scores, weights, output = one_query(GOLDEN[part]["q"], E, BASES[base])
    same(scores, expected["scores"])
    same(weights, best(expected, "weights"))
    same(output, best(expected, "output"))


def test_ten_times_the_query_rounds_to_a_hard_choice() -> None:
    published = GOLDEN["query_times_ten"]["published_rounding"]
    _, weights, output = one_query([0, 10], E, None)
    same(weights.round(), published["weights"])
    same(output.round(), published["output"])


def test_keys_and_query_have_their_own_matrices() -> None:
    golden = GOLDEN["decoupled"]
    keys, query = E @ tensor(golden["W_K"]), tensor(golden["W_Q"]) @ tensor(golden["target"])
    same(keys, golden["E_W_K"])
    same(query, golden["W_Q_target"])
    same(one_query(query.tolist(), keys, None)[0], golden["scores"])


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("part", ["self_attention_v1", "self_attention_v2"])
def test_self_attention_over_aaba(part: str, base: str) -> None:
    golden, expected = GOLDEN[part], GOLDEN[part][base]
    mixer = attention(golden["W_Q"], golden["W_K"], [[1, 0], [0, 1]], BASES[base])
    with record(mixer) as seen:
        same(mixer(E[None])[0][0], best(expected, "output"))
    for tap, letter in {"queries": "Q", "keys": "K", "values": "V"}.items():
        same(seen[tap][0][0, :, 0], golden[letter])
    same(seen["scores"][0][0, 0], golden["S"])
    same(seen["weights"][0][0, 0], best(expected, "weights"))
    # Nobody listens: the fused kernel, which never forms the weights.
    same(mixer(E[None])[0][0], best(expected, "output"))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("sharpness", [1, 10])
def test_mass_on_b_for_all_strings(sharpness: int, base: str) -> None:
    # Both letters ask the same question, so that the last position reads the whole string.
    mixer = attention([[0, sharpness]] * 2, [[1, 0], [0, 1]], [[1, 0], [0, 1]], BASES[base])
    x = torch.cat([embedded(row["string"]) for row in ROWS])
    masses = mixer(x)[0][:, -1, 1]
    same(masses, [best(row, f"attention_q{sharpness}_{base}_B_mass") for row in ROWS])


def test_constructed_solution_reads_every_string_right() -> None:
    golden = GOLDEN["constructed_self_attention_solution"]
    mixer = attention(golden["W_Q"], golden["W_K"], golden["W_V"], None)
    for row in golden["rows"]:
        same(mixer(embedded(row["string"]))[0][0, -1], row["last_token_output"])


def test_running_mean_is_the_average_of_all_strings() -> None:
    mean = MeanConfig(2).build().double()
    same(mean(E[None])[0][0, -1], GOLDEN["dan_average"]["exact"])
    for row in ROWS:
        same(mean(embedded(row["string"]))[0][0, -1], row["dan_average_exact"])


def test_sharper_attention_answers_more_strings_than_the_mean() -> None:
    x = torch.cat([embedded(row["string"]) for row in ROWS])
    wanted = torch.tensor([row["label"] == "B" for row in ROWS])
    assert int(wanted.sum()) == GOLDEN["next_char_task"]["n_label_B"]
    identity = [[1, 0], [0, 1]]
    readers = {
        "dan_average": MeanConfig(2).build().double(),
        "attention_q_0_1_base_e": attention([[0, 1]] * 2, identity, identity, None),
        "attention_q_0_10_base_e": attention([[0, 10]] * 2, identity, identity, None),
    }
    for name, reader in readers.items():
        a, b = reader(x)[0][:, -1].unbind(-1)
        right = torch.where(wanted, b > a, a > b)  # a tie is wrong
        assert f"{int(right.sum())}/{len(ROWS)}" == GOLDEN["next_char_task"]["argmax_accuracy"][name]


@pytest.mark.parametrize("row", GOLDEN["single_B_mass_by_length"], ids=lambda row: f"length-{row['n']}")
def test_mass_of_a_single_b_fades_with_length(row: dict[str, Any]) -> None:
    x = embedded("A" * (row["n"] - 1) + "B")
    same(MeanConfig(2).build().double()(x)[0][0, -1, 1], row["dan"])
    same(one_query([0, 1], x[0], None)[2][1], row["attention_q1_base_e"])
    same(one_query([0, 10], x[0], None)[2][1], row["attention_q10_base_e"])


def test_length_at_which_the_single_b_loses_its_majority() -> None:
    first = GOLDEN["first_length_where_q10_base_e_loses_majority"]
    for n, has_majority in ((first - 1, True), (first, False)):
        mass = one_query([0, 10], embedded("A" * (n - 1) + "B")[0], None)[2][1]
        assert bool(mass > 0.5) is has_majority
