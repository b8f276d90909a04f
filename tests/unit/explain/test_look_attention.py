"""Maps, summaries, rollout and alignments against the equations, computed here from queries and keys."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from look_run import TEXT, TOKENIZER, masked_run, pair_run, seen, text_run
from regard.errors import UsageError
from regard.explain.inputs import read
from regard.explain.look import numbers
from regard.explain.looks.alignment import aligned, alignment
from regard.explain.looks.attention import attention, heads, measures, rolled, rollout, row
from regard.explain.weights import Weights, without_sink
from regard.tasks.reading import labels_of
from regard.tasks.word import groups, merged, word_numbers

N = 1 + len(TEXT.split())


def weights_by_hand(run: Any, layer: int) -> np.ndarray:
    """softmax(q k / sqrt(K)) with the causal mask, head by head, (H, T, T)."""
    trace = read(run, TEXT).trace()
    q, k = (trace[f"stack.layers.{layer - 1}.mixer.{name}"][0].numpy() for name in ("queries", "keys"))
    found = []
    for head in range(q.shape[1]):
        scores = q[:, head] @ k[:, head].T / np.sqrt(q.shape[2])
        rows = [np.exp(row[: t + 1] - row[: t + 1].max()) for t, row in enumerate(scores)]
        found.append([np.pad(row / row.sum(), (0, N - len(row))) for row in rows])
    return np.array(found)


@pytest.mark.parametrize("head", [None, 1, 2])
def test_a_map_is_the_softmax_of_queries_and_keys(head: int | None) -> None:
    run = text_run("gpt")
    every = weights_by_hand(run, 1)
    view = seen(run, attention, layer=1, head=head)
    wanted = every.mean(0) if head is None else every[head - 1]
    np.testing.assert_allclose(view["weights"].weights, wanted, atol=1e-12)
    assert list(view["weights"].rows) == ["<s>", *TEXT.split()]
    assert "outputs differ by at most" in view["weights"].note
    assert sum(view["row"].values) == pytest.approx(1)


def test_the_row_of_a_position_is_that_of_its_token() -> None:
    run = text_run("gpt")
    view = seen(run, attention, layer=2, position=3)
    row = view["weights"].weights[3]
    assert view["row"].title == "What 'dog' looks at"
    assert dict(zip(view["row"].names, view["row"].values, strict=True))["the (1)"] == pytest.approx(row[1])


def test_without_the_sink_rows_keep_their_sum_and_a_row_with_nothing_else_is_empty() -> None:
    found = without_sink(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.2, 0.6]]))
    np.testing.assert_allclose(found, [[0, 0], [1, 0], [0.25, 0.75]])


def test_weights_by_values_are_weights_times_the_length_of_values() -> None:
    run = text_run("gpt")
    values = read(run, TEXT).trace()["stack.layers.1.mixer.values"][0].numpy()  # (S, H, K)
    wanted = weights_by_hand(run, 2)[0] * np.linalg.norm(values[:, 0], axis=1)
    np.testing.assert_allclose(seen(run, attention, layer=2, head=1, by_values=True)["weights"].weights, wanted)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"layer": 3}, "layer 3: the model has layers 1 to 2 of attention"),
        ({"head": 3}, "head 3: the layer has heads 1 to 2"),
        ({"position": 9}, "position 9: the text has positions 1 to 6, and 0, its start"),
        ({"side": "source"}, "there is over text"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        seen(text_run("gpt"), attention, **asked)


def test_heads_are_measured_by_what_they_do() -> None:
    uniform = np.full((4, 4), 0.25)
    first = np.eye(4)[[0, 0, 0, 0]]
    own = np.eye(4)
    before = np.eye(4)[[0, 0, 1, 2]]
    entropy, distance, sink, diagonal, previous = measures(np.stack([uniform, first, own, before])).T
    assert entropy == pytest.approx([2, 0, 0, 0])
    assert distance == pytest.approx([1.25, 1.5, 0, 0.75])
    assert sink == pytest.approx([0.25, 1, 0.25, 0.5])
    assert diagonal == pytest.approx([0.25, 0.25, 1, 0.25])
    assert previous == pytest.approx([0.1875, 0.25, 0, 0.75])


def test_every_head_of_every_layer_has_a_row_and_the_sharpest_comes_first() -> None:
    view = seen(text_run("gpt"), heads)
    rows = view["heads"].rows
    assert sorted((row[0], row[1]) for row in rows) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)


def test_rollout_is_the_product_of_the_layers_with_their_residuals() -> None:
    run = text_run("gpt")
    first, second = (weights_by_hand(run, layer).mean(0) for layer in (1, 2))
    wanted = (0.5 * second + 0.5 * np.eye(N)) @ (0.5 * first + 0.5 * np.eye(N))
    np.testing.assert_allclose(seen(run, rollout)["weights"].weights, wanted, atol=1e-12)
    np.testing.assert_allclose(rolled([first]).sum(1), np.ones(N))


@pytest.mark.parametrize("name", ["bahdanau", "transformer", "gnmt"])
def test_an_alignment_has_a_row_for_every_written_word_and_its_pairs_are_the_largest(name: str) -> None:
    view = seen(pair_run(name), alignment, target="the cat runs")
    matrix = view["weights"].weights
    assert list(view["weights"].rows) == ["the", "cat", "runs", "</s>"]
    assert list(view["weights"].columns) == [*TEXT.split(), "</s>"]
    np.testing.assert_allclose(matrix.sum(1), np.ones(4), atol=1e-9)
    pairs = [tuple(map(int, pair.split("-"))) for pair in view.about["pharaoh"].split()]
    assert {(j, i) for i, j in pairs} == {(i, int(matrix[i, :-1].argmax())) for i in range(3)}


def test_pairs_leave_out_the_ends() -> None:
    assert aligned(np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]])) == [(0, 1), (1, 0)]


def test_a_masked_model_has_a_map_over_its_frame() -> None:
    view = seen(masked_run(), attention, text="the [MASK] dog")
    assert list(view["weights"].rows) == ["<s>", "the", "[MASK]", "dog", "</s>"]
    assert numbers(read(masked_run(), "the [MASK] dog").main) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["bytes", "chars", "bpe"])
def test_tokens_belong_to_the_word_that_they_spell(kind: str) -> None:
    from regard.data.tokenizer import train_tokenizer

    text = "the unhappy dog\n sees  it"
    tokenizer = train_tokenizer(kind, [text, "the happy cat"], vocab_size=280 if kind == "bpe" else None)
    ids = tokenizer.encode(text).tolist()
    words = word_numbers(tokenizer, ids)
    told: dict[int, str] = {}
    for token, word in zip(ids, words, strict=True):
        if word is not None:
            told[word] = told.get(word, "") + tokenizer.piece(token, None).decode()
    assert [part.strip() for part in told.values()] == text.split()


def test_merged_weights_sum_what_words_get_and_average_what_they_give() -> None:
    weights = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]])
    parts = groups(["un", "happy", "dog"], [0, 0, 1], ["unhappy", "dog"])
    np.testing.assert_allclose(merged(weights, parts, parts), [[1.0, 0.0], [0.5, 0.5]])


def test_a_word_without_a_token_is_shown_as_it_was_typed() -> None:
    assert list(seen(text_run("gpt"), attention, text="the zebra runs")["weights"].rows) == [
        "<s>",
        "the",
        "zebra?",
        "runs",
    ]


def test_a_word_without_a_token_is_shown_so_beside_a_mask_and_in_a_target() -> None:
    beside = read(masked_run(), "the zebra[MASK] runs")
    assert beside.main.labels == ("<s>", "the", "zebra?", "[MASK]", "runs", "</s>")
    assert read(masked_run(), "a zebra").main.labels == ("<s>", "a", "zebra?", "</s>")
    assert read(pair_run("transformer"), "the dog", "a zebra").main.labels == ("<s>", "a", "zebra?")


def test_a_text_in_a_frame_begins_with_the_start() -> None:
    labels = labels_of(TOKENIZER, [TOKENIZER.eos_id, *TOKENIZER.encode("the dog"), TOKENIZER.eos_id], "the dog")
    assert labels == ["<s>", "the", "dog", "</s>"]
    assert labels_of(TOKENIZER, [TOKENIZER.eos_id], "") == ["</s>"]


def test_controls_tell_what_there_is() -> None:
    view = seen(text_run("gpt"), attention)
    named = {control.name: control for control in view.controls}
    assert list(named["layer"].values) == [1, 2]
    assert named["head"].values[0] is None
    assert {"merge", "hide_sink", "by_values"} <= named.keys()
    assert dataclasses.asdict(named["layer"])["value"] == 2


def test_a_text_beyond_the_positions_of_the_model_is_refused() -> None:
    with pytest.raises(UsageError, match="the text has 71 tokens and the model has positions for 64: give less"):
        seen(text_run("gpt", position="learned"), attention, text="the " * 70)


@pytest.mark.parametrize("side", ["source", "target"])
def test_heads_of_a_model_that_also_looks_elsewhere_are_those_of_one_side(side: str) -> None:
    view = seen(pair_run("transformer"), heads, target="the cat", side=side)
    assert {row[0] for row in view["heads"].rows} == {1, 2}
    assert all(row[2] >= 0 for row in view["heads"].rows)


@pytest.mark.parametrize("look", [heads, rollout])
def test_a_side_that_does_not_exist_is_refused(look: Any) -> None:
    with pytest.raises(UsageError, match="there is over text"):
        seen(text_run("gpt"), look, side="source")


def test_hiding_the_first_column_changes_no_pair() -> None:
    run = pair_run("bahdanau")
    plain, hidden = (seen(run, alignment, target="the cat runs", hide_sink=hide) for hide in (False, True))
    assert plain.about["pharaoh"] == hidden.about["pharaoh"]
    for i, j in hidden["links"].pairs:
        assert hidden["links"].upper[j] == plain["links"].upper[j + 1]
        assert (i, j + 1) in plain["links"].pairs


def test_rollout_over_what_is_written_has_its_length() -> None:
    assert seen(pair_run("transformer"), rollout, target="the cat")["weights"].weights.shape == (3, 3)


def test_blanks_beside_a_number_are_seen() -> None:
    site: Any = None
    found = Weights(np.array([[0.2, 0.5, 0.3]]), ("b",), (" ", "a", " b"), (1, 2, 3), site, 1, 0.0)
    assert row(found, 0, "weight").names == ["a (2)", "␣b (3)", "␣ (1)"]
