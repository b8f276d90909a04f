"""The worked examples show the golden numbers: every file in this folder against the panels of its example.

`kneser_ney_wikitext2.json` is no worked example: test_ngram.py holds it against the counted models themselves.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from exact import load, same, tensor
from torch import Tensor

from regard.explain.worked import example

Case = tuple[str, Any, Any]


@functools.cache
def panels(name: str) -> dict[str, Any]:
    """The panels of an example by key, as a program gets them."""
    told = json.loads(json.dumps(example(name).to_dict()))
    return {panel["key"]: panel for panel in told["panels"] if "key" in panel}


def shown(name: str, key: str) -> Tensor:
    """The matrix of a panel; what is masked there is None, as in the golden files."""
    panel = panels(name)[key]
    return tensor(panel["weights"] if panel["kind"] in ("heat", "links") else panel["values"])


def best(numbers: dict[str, Any], key: str) -> Any:
    """The exact fractions where the file has them, else the floats."""
    return numbers.get(f"{key}_exact", numbers[key])


def ab() -> Iterator[Case]:
    golden = load("ab_attention")
    yield "E", golden["E"], ...
    yield "dan_average", golden["dan_average"]["exact"], 0
    for part, suffix in (("query_single", ""), ("query_times_ten", "_q10")):
        yield f"q{suffix.removeprefix('_q')}", golden[part]["q"], 0
        for row, base in enumerate(("base_3", "base_e")):
            yield f"scores{suffix}", golden[part][base]["scores"], 0
            yield f"weights{suffix}", best(golden[part][base], "weights"), row
            yield f"output{suffix}", best(golden[part][base], "output"), row
    decoupled = golden["decoupled"]
    yield "W_K", decoupled["W_K"], ...
    yield "W_Q", decoupled["W_Q"], ...
    yield "decoupled_keys", decoupled["E_W_K"], ...
    yield "decoupled_query", decoupled["W_Q_target"], 0
    yield "decoupled_scores", decoupled["scores"], 0
    for part, prefix in (("self_attention_v1", "self"), ("self_attention_v2", "ten")):
        for base in ("base_3", "base_e"):
            yield f"{prefix}_weights_{base}", best(golden[part][base], "weights"), ...
            yield f"{prefix}_outputs_{base}", best(golden[part][base], "output"), ...
    yield "self_heat", golden["self_attention_v1"]["base_e"]["weights"], ...
    yield "S", golden["self_attention_v1"]["S"], ...
    yield "ten_W_K", golden["self_attention_v2"]["W_K"], ...
    yield "ten_K", golden["self_attention_v2"]["K"], ...
    yield "ten_S", golden["self_attention_v2"]["S"], ...
    yield "column_S", golden["self_attention_v2"]["S_literal_column_reading"], ...
    solution = golden["constructed_self_attention_solution"]
    yield "solution_W_Q", solution["W_Q"], ...
    yield "solution", [row["last_token_output"] for row in solution["rows"]], ...
    rows = golden["next_char_task"]["rows"]
    yield "masses", [row["dan_average_exact"][1] for row in rows], (..., 0)
    readers = [f"attention_q{length}_{base}_B_mass" for length in (1, 10) for base in ("base_3", "base_e")]
    for column, reader in enumerate(readers, 1):
        yield "masses", [best(row, reader) for row in rows], (..., column)
    right = golden["next_char_task"]["argmax_accuracy"].values()
    yield "right", [int(count.split("/")[0]) for count in right], ...
    yield "majority_lost", [golden["first_length_where_q10_base_e_loses_majority"]], 0
    yield "cost", [golden["cost"][f"n_{n}"] for n in (4, 8, 16)], 0


def three_inputs() -> Iterator[Case]:
    golden = load("three_input_self_attention")
    yield "X", golden["inputs"], ...
    for key in ("W_Q", "W_K", "W_V", "Q", "K", "V", "scores", "weights", "outputs"):
        yield key, golden[key], ...
    yield "heat", golden["weights"], ...
    yield "learned", [golden["weight_matrices_learned"], golden["numbers_learned"]], 0
    published = golden["published_rounding"]
    for row in range(3):
        yield f"scores_{row + 1}", golden["scores"][row], 0
        yield f"weights_{row + 1}", golden["weights"][row], 0
        yield f"output_{row + 1}", golden["outputs"][row], 0
        yield "published_weights", published[f"weights_input_{row + 1}"], row
        yield "published_outputs", published[f"output_input_{row + 1}"], row
    yield "published_weighted", published["weighted_values_input_1"], ...
    yield "published_gap", published["max_abs_error_of_rounded_output_1"], (0, 0)
    for key in ("scores", "weights", "outputs"):
        yield f"scaled_{key}", golden["scaled_by_sqrt_3"][key], ...
    yield "cosines", golden["cosine_similarity_of_queries_and_keys"], ...
    yield "cosine_cases", [1, 0, -1], 0
    yield "causal_weights", golden["causal"]["weights"], ...
    yield "causal_outputs", golden["causal"]["outputs"], ...
    yield "shuffled", golden["permutation_equivariance"]["outputs_of_permuted_input"], ...
    yield "causal_shuffled", golden["permutation_equivariance"]["with_causal_mask_outputs_of_permuted_input"], ...


def sick() -> Iterator[Case]:
    golden = load("backpack_sick")
    words = golden["sentence"].split()

    def by_word(values: dict[str, Any]) -> list[Any]:
        return [values[word] for word in words]

    yield "senses", [sense for word in by_word(golden["given"]["sense_vectors"]) for sense in word], ...
    yield "queries", by_word(golden["context_sum_u_i"]["values"]), ...
    yield "matches", by_word(golden["match_scores"]["values"]), ...
    linear = golden["reading_1_linear"]
    yield "linear_outputs", by_word(linear["output_by_word"]), ...
    yield "linear_outputs", golden["expected_selection"]["output"], 3
    yield "linear_sum", linear["sum_over_words"], 0
    yield "linear_sentiment", linear["sentiment_of_sick"], (3, 0)
    shares = golden["reading_2_normalised"]
    yield "shares", by_word(shares["alpha_by_word"]), ...
    yield "shares_outputs", by_word(shares["output_by_word"]), ...
    for n, reading in enumerate(golden["reading_3_softmax_over_senses"]["by_beta"].values()):
        rows = slice(4 * n, 4 * n + 4)
        yield "softmax_alpha", reading["alpha_by_word"], rows
        yield "softmax_outputs", reading["output_by_word"], rows
        yield "softmax_sentiment", reading["sentiment_of_sick"], (0, n)
    for b, reading in golden["reading_4_per_sense_softmax_over_positions"]["by_B"].items():
        alpha = reading["alpha[sense][i][j]"]
        yield f"positions_alpha_{b}", alpha[0] + alpha[1], ...
        yield f"positions_outputs_{b}", reading["output_by_word"], ...
        if b == "10":
            yield "positions_heat_1", alpha[0], ...
            yield "positions_heat_2", alpha[1], ...
    joint = golden["reading_5_joint_softmax_without_mask"]
    for n, beta in enumerate(("beta_1", "beta_10")):
        yield "joint_alpha", joint[beta]["alpha"], (..., n)
        yield "joint_outputs", joint[beta]["output"], n
    contrast = golden["contrast_own_example"]
    yield "nurse_query", contrast["u_sick"], 0
    yield "nurse_matches", contrast["match_scores_sick"], 0
    yield "nurse_output", contrast["output_linear"], 0


def causal() -> Iterator[Case]:
    golden = load("causal_lm")
    loss, matrix, steps = golden["rnn_lm_loss"], golden["causal_matrix"], golden["step_illustrations"]
    yield "probabilities", loss["own_probabilities"], 0
    yield "nll", loss["nll"], 0
    yield "loss", [loss["sum"], loss["mean"], loss["perplexity"]], 0
    batch = loss["batch_of_two_lengths"]
    yield "batch", batch["nll_rows"][0], 0
    yield "batch", [*batch["nll_rows"][1], None, None], 1
    yield "batch_means", [batch["mean_over_tokens"], batch["mean_of_sentence_means"]], 0
    for step in ("h2", "h3"):
        key = f"step_h_{step[1]}"
        yield f"{key}_weights", steps[step]["weights"], 1
        yield key, steps[step]["exact"], 0
    yield "V", matrix["V_own"], ...
    yield "scores", matrix["scores_that_give_these_weights"], ...
    yield "weights", matrix["weights_exact"], ...
    yield "heat", matrix["weights_exact"], ...
    yield "H", matrix["H_exact"], ...
    yield "swapped_prefix", matrix["H_exact"][2], 0
    yield "unmasked_weights", matrix["realisation"]["unmasked_weights"], ...
    for key in ("c", "p", "emb"):
        yield key, golden["positions"]["own_example"][key], ...


def chain_rule() -> Iterator[Case]:
    golden = load("chain_rule")
    yield "factors", golden["own_probabilities"], 0
    yield "joint", golden["joint_without_eos"]["exact"], (0, 1)
    yield "joint", golden["joint_with_eos"]["exact"], (0, 2)
    yield "log_joint", golden["log_joint_without_eos"], (0, 1)
    yield "log_joint", golden["log_joint_with_eos"], (0, 2)
    counted = golden["ngram"]["own_count_example"]
    contexts, words = ["A", "B", "<s>"], ["A", "B", "</s>"]
    pairs = [(v, w) for v in contexts for w in words]
    yield "counts", [counted["bigram_counts"].get(f"{v} {w}", 0) for v, w in pairs], "flat"
    yield "mle", [counted["bigram_mle"].get(f"P({w}|{v})", 0) for v, w in pairs], "flat"
    yield "add_one", [counted["bigram_add_one"][f"P({w}|{v})"] for v, w in pairs], "flat"
    yield "sentence", counted["probability_of"]["<s> A B </s>"], (0, 0)


def feed_forward() -> Iterator[Case]:
    net, descent = (load("rnn_lstm")[part]["own_example"] for part in ("feed_forward", "gradient_descent"))
    for key in ("W1", "W2"):
        yield key, net[key], ...
    for key in ("x", "b1", "b2", "h1_pre", "h1", "y"):
        yield key, net[key], 0
    yield "theta", [descent[f"theta_{t}"] for t in range(4)], 0


def rnn() -> Iterator[Case]:
    golden = load("rnn_lstm")
    vanilla = golden["vanilla_rnn"]
    for key in ("W_h", "W_i", "W_o", "W_concat"):
        yield key, vanilla[key], ...
    for key in ("x", "pre", "h", "y", "softmax_y"):
        yield key, [step[key] for step in vanilla["steps"]], ...
    yield "h_concat", [step["h"] for step in vanilla["steps"]], ...
    for t, step in enumerate(vanilla["steps"], 1):
        yield f"step_{t}", [step["x"], step["pre"], step["h"]], slice(1, None)
    yield "bidirectional", golden["bidirectional"]["values"], ...
    yield "stacked", golden["stacked"]["second_layer_h"], ...
    yield "residual_1", golden["residual"]["after_one_layer"], ...
    yield "residual_2", golden["residual"]["after_two_layers"], ...


def lstm() -> Iterator[Case]:
    golden, gru = load("rnn_lstm")["lstm"], load("rnn_lstm")["gru"]
    for gate in "fico":
        yield f"W_{gate}", golden[f"W_{gate}"], (..., slice(4))
        yield f"W_{gate}", golden[f"b_{gate}"], (..., 4)
    for key in ("x", "f", "i", "c_tilde", "o", "c", "h"):
        yield key, [step[key] for step in golden["steps"]], ...
    yield "counting", [[1, 2, 3, 4, 5], [0, 0, 1, 1, 2]], ...
    for gate, letter in (("z", "_z"), ("r", "_r"), ("h", "")):
        yield f"gru_W_{gate}", gru[f"U{letter}"], (..., slice(2))
        yield f"gru_W_{gate}", gru[f"W{letter}"], (..., slice(2, 4))
    for key in ("z", "r", "h_tilde", "h"):
        yield f"gru_{key}", [step[key] for step in gru["steps"]], ...


def bahdanau() -> Iterator[Case]:
    golden = load("bahdanau")
    for key in ("annotations", "W_a", "U_a", "tanh"):
        yield key, golden[key], ...
    yield "s", golden["s_prev"], 0
    for key in ("v_a", "W_a_s", "scores", "alpha", "context"):
        yield key, golden[key], 0
    yield "alpha_bars", golden["alpha"], ...
    yield "dot_query", golden["dot_product_variant"]["q"], 0
    for key in ("scores", "alpha", "context"):
        yield f"dot_{key}", golden["dot_product_variant"][key], 0


def gnmt_scores() -> Iterator[Case]:
    golden = load("gnmt")
    for n, case in enumerate(golden["numeric_lp"]):
        yield "lp", case["lp"], (n % 5, n // 5)
    for name in ("good", "bad"):
        case = golden["numeric_cp"][f"{name}_alignment"]
        yield f"{name}_attention", case["attention_target_by_source"], ...
        yield f"{name}_mass", case["source_mass"], 0
        yield f"{name}_cp", case["cp"], (0, 1)
    for row, name in enumerate(("short", "long")):
        case = golden["numeric_length"][name]
        yield "short_and_long", [case["log_p"], case["len"]], row
        yield "length_scores", [case[f"score_alpha_{alpha}"] for alpha in ("0", "0.2", "1")], row
    for row, name in enumerate(("hyp_1", "hyp_2")):
        case = golden["numeric_score"][name]
        yield "ranking", case["log_p"], (row, 0)
        yield "ranking", golden["numeric_cp"][case["alignment"]]["cp"], (row, 2)
        yield "ranking", case["score"], (row, 3)


def positions() -> Iterator[Case]:
    golden = load("positions")
    sines, rope, alibi = golden["sinusoidal"], golden["rope"], golden["alibi"]
    yield "sinusoids", sines["values"], ...
    yield "divisors", sines["angle_divisors"], 0
    yield "gram", sines["gram"], ...
    yield "rope_qk", [rope["q"], rope["k"]], ...
    pairs = ("2_5", "0_3", "7_10", "5_2", "0_0")
    for form, suffix, count in (("interleaved", "", 5), ("half_split", "_halves", 2)):
        yield f"rope{suffix or '_turned'}", [rope[form]["q_at_2"], rope[form]["k_at_5"]], ...
        yield f"rope{suffix}_dots", [rope[form][f"dot_{pair}"] for pair in pairs[:count]], 0
    for n_heads in (4, 8):
        yield f"alibi_slopes_{n_heads}", alibi[f"slopes_{n_heads}_heads"], 0
    yield "alibi_bias", alibi["bias_4x4_slope_half"], ...
    yield "alibi_row_4", alibi["softmax_of_bias_row_4_slope_half"], 0
    yield "alibi_row_4", alibi["softmax_with_zero_scores_slope_1/256_row_4"], 1


def ssm() -> Iterator[Case]:
    golden = load("ssm")
    system, scan = golden["diagonal_ssm"], golden["selective_scan"]["steps"]
    yield "modes", [system["A_diag"], system["B"], system["C"]], ...
    yield "u", system["u"], 0
    for rule in ("zoh", "bilinear"):
        yield rule, [system[rule]["A_bar"], system[rule]["B_bar"]], ...
    yield "states", system["states_zoh"], ...
    yield "kernel", system["kernel_zoh"], 0
    yield "y_recurrent", system["y_recurrent_zoh"], 0
    yield "y_convolution", system["y_convolution_zoh"], 0
    yield "chosen", [[step[key] for step in scan] for key in ("u", "delta", "B", "C")], ...
    for key, part in (("selective_decay", "A_bar"), ("selective_states", "h"), ("selective_y", "y")):
        yield key, [step[part] for step in scan], 0
    yield "M", golden["duality_matrix"]["M"], ...
    yield "M_heat", golden["duality_matrix"]["M"], ...
    yield "y_matrix", golden["duality_matrix"]["y"], 0
    for n in range(4):
        yield "start_lin", golden["s4d_lin_first_4"]["values_re_im"][n], (..., n)
        yield "start_inv", golden["s4d_inv_first_4_N_8"]["values_re_im"][n], (..., n)
    yield "start_real", golden["s4d_real"]["first_4"], 0


def training() -> Iterator[Case]:
    golden, rates = load("label_smoothing"), load("noam")
    yield "logits", golden["logits"], 0
    yield "probabilities", golden["probabilities"], 0
    yield "no_smoothing_loss", golden["no_smoothing_loss"], (0, 0)
    for row, name in enumerate(("convention_all_classes", "convention_other_classes")):
        yield "targets", golden[name]["q"], row
        yield "losses", [golden[name]["loss"], golden[name]["minimum_possible_loss"]], row
    for setting in ("d_512_warmup_4000", "d_1024_warmup_4000", "d_128_warmup_400"):
        _, d_model, _, warmup = setting.split("_")
        yield f"rate_{d_model}_{warmup}", list(rates[setting].values()), (..., 0)


EXAMPLES = (
    *(ab, three_inputs, sick, causal, chain_rule, feed_forward, rnn, lstm),
    *(bahdanau, gnmt_scores, positions, ssm, training),
)
CASES = [(cases.__name__.replace("_", "-"), *case) for cases in EXAMPLES for case in cases()]


@pytest.mark.parametrize(("name", "key", "golden", "part"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
def test_numbers(name: str, key: str, golden: Any, part: Any) -> None:
    values = shown(name, key)
    same(values.flatten() if part == "flat" else values[part], golden)


def as_fractions(text: str) -> list[Fraction]:
    """All fractions and whole numbers of a note."""
    words = text.replace(",", " ").replace(".", " ").replace(";", " ").split()
    return [Fraction(word) for word in words if word.lstrip("-").replace("/", "").isdigit()]


@pytest.mark.parametrize(("part", "suffix"), [("query_single", ""), ("query_times_ten", "_q10")])
def test_fractions_of_one_query_are_exact(part: str, suffix: str) -> None:
    golden = load("ab_attention")[part]["base_3"]
    # The note begins "In base 3": that 3 comes first.
    for key in ("weights", "output"):
        found = as_fractions(panels("ab")[f"{key}{suffix}"]["note"].removeprefix("In base 3:"))
        assert found == [Fraction(value) for value in golden[f"{key}_exact"]]


@pytest.mark.parametrize(("part", "prefix"), [("self_attention_v1", "self"), ("self_attention_v2", "ten")])
def test_fractions_of_self_attention_are_exact(part: str, prefix: str) -> None:
    golden = load("ab_attention")[part]["base_3"]
    for key, name in (("weights", "weights"), ("output", "outputs")):
        rows = [*golden[f"{key}_exact"][0], *golden[f"{key}_exact"][2]]
        assert as_fractions(panels("ab")[f"{prefix}_{name}_base_3"]["note"]) == [Fraction(value) for value in rows]


def test_fractions_of_the_bigrams_are_exact() -> None:
    counted = load("chain_rule")["ngram"]["own_count_example"]
    pairs = [(v, w) for v in ("A", "B", "<s>") for w in ("A", "B", "</s>")]
    mle = [Fraction(counted["bigram_mle"].get(f"P({w}|{v})", 0)) for v, w in pairs]
    add_one = [Fraction(counted["bigram_add_one"][f"P({w}|{v})"]) for v, w in pairs]
    assert as_fractions(panels("chain-rule")["mle"]["note"].replace(":", "")) == mle
    assert as_fractions(panels("chain-rule")["add_one"]["note"].replace(":", "")) == add_one


def test_one_b_by_length() -> None:
    lines = panels("ab")["mass_by_length"]["lines"]
    rows = load("ab_attention")["single_B_mass_by_length"]
    readers = {"average": "dan", "q = [0, 1]": "attention_q1_base_e", "q = [0, 10]": "attention_q10_base_e"}
    for name, reader in readers.items():
        same(tensor(lines[name]), [[row["n"], row[reader]] for row in rows])


def test_the_sentiment_of_sick_by_reading() -> None:
    golden = load("backpack_sick")
    bars = dict(zip(panels("sick")["sentiments"]["names"], panels("sick")["sentiments"]["values"], strict=True))
    softmax = golden["reading_3_softmax_over_senses"]["by_beta"]
    same(tensor(bars["1 the match"]), golden["expected_selection"]["sentiment_positive_minus_negative"])
    same(tensor(bars["3 softmax, beta 1"]), softmax["1"]["sentiment_of_sick"])
    same(tensor(bars["3 softmax, beta 10"]), softmax["10"]["sentiment_of_sick"])
    by_b = golden["reading_4_per_sense_softmax_over_positions"]["by_B"]
    same(tensor(bars["4 over positions, B 10"]), by_b["10"]["sentiment_of_sick"])


def answers(name: str) -> dict[str, str]:
    told = example(name).to_dict()["panels"]
    return {panel["title"]: panel["text"] for panel in told if panel.get("style") == "answer"}


def test_the_questions_of_the_lectures_are_answered() -> None:
    three = load("three_input_self_attention")
    assert answers("three-inputs")["How many weight matrices are learned here?"].startswith("3, each of 4 x 3: 36 ")
    for n, said in ((1, "inputs 2 and 3, which tie"), (2, "input 2, itself"), (3, "input 2")):
        assert answers("three-inputs")[f"To which input is input {n} most related?"] == f"To {said}."
        assert [int(digit) for digit in said if digit.isdigit()] == three["most_related"][f"input_{n}"]
    assert answers("three-inputs")["Does the order of the inputs matter?"].startswith("No.")
    assert answers("three-inputs")["And with the mask?"].startswith("Yes")
    assert "19683/19684" in answers("ab")["What if q = [0, 10]?"]
    assert answers("sick")["Where does the sentiment come from?"].startswith("100% ")
    assert answers("bahdanau")["How large is it?"].startswith("5 steps by 4 words: 20 scores.")
    assert answers("gnmt-scores")["Which one wins?"].startswith("By log p text 2, by score text 1")
    assert "the 4 learned positions" in answers("positions")["What happens beyond the last row?"]


def test_published_rounding_of_the_sharp_query() -> None:
    published = load("ab_attention")["query_times_ten"]["published_rounding"]
    same(shown("ab", "weights_q10")[1].round(), published["weights"])
    same(shown("ab", "output_q10")[1].round(), published["output"])


def test_the_table_of_scores_has_a_row_for_each_step() -> None:
    assert list(shown("bahdanau", "table").shape) == load("bahdanau")["key_value_table_shape"]["score_matrix"]
