from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
import torch

from decoding.table import TableModel, bigram_table, prompt, random_table
from regard.core.registry import build
from regard.decoding.score import TextSize, score
from regard.errors import UsageError

GOLDEN = Path(__file__).parents[2] / "golden"
CHAIN = json.loads((GOLDEN / "chain_rule.json").read_text())
CAUSAL = json.loads((GOLDEN / "causal_lm.json").read_text())


def ngram_table() -> tuple[TableModel, list[str]]:
    """The golden bigram model of A, B, <s> and </s>."""
    words = ["<s>", "A", "B", "</s>"]
    probability = CHAIN["ngram"]["own_count_example"]["bigram_mle"]
    rows = [[float(Fraction(probability.get(f"P({w}|{v})", "0"))) for w in words] for v in words[:3]]
    return bigram_table([*rows, [0.25] * 4]), words


def test_the_chain_rule_product_of_the_golden_sentence() -> None:
    words = ["<s>", *CHAIN["prefix"], *CHAIN["continuation"]]
    rows = [[1 / 7] * 7 for _ in words]
    for i, exact in enumerate(CHAIN["own_probabilities"], start=3):
        p = float(Fraction(exact))
        rows[i] = [(1 - p) / 6] * 7
        rows[i][i + 1] = p
    [result] = score(bigram_table(rows), [prompt(1, 2, 3, 4, 5, 6)], start_id=0)
    continuation = result.log_probs[3:]
    assert math.fsum(continuation) == pytest.approx(CHAIN["log_joint_with_eos"], abs=1e-12)
    assert math.fsum(continuation[:2]) == pytest.approx(CHAIN["log_joint_without_eos"], abs=1e-12)
    assert math.exp(math.fsum(continuation)) == pytest.approx(CHAIN["joint_with_eos"]["float"], abs=1e-12)


def test_the_golden_bigram_model_gives_its_sentence_the_counted_probability() -> None:
    model, words = ngram_table()
    for sentence, exact in CHAIN["ngram"]["own_count_example"]["probability_of"].items():
        start, *rest = [words.index(word) for word in sentence.split()]
        [result] = score(model, [prompt(*rest)], start_id=start)
        assert result.probability == pytest.approx(float(Fraction(exact)), abs=1e-15)


def test_loss_and_perplexity_of_the_golden_example() -> None:
    case = CAUSAL["rnn_lm_loss"]
    p = [float(Fraction(x)) for x in case["own_probabilities"]]
    rows = [[0.25] * 4] * 4
    for i, probability in enumerate(p):
        rows = [*rows[:i], [(1 - probability) / 3] * 4, *rows[i + 1 :]]
        rows[i][i + 1] = probability
    [result] = score(bigram_table(rows), [prompt(1, 2, 3)], start_id=0)
    assert [-x for x in result.log_probs] == pytest.approx(case["nll"], abs=1e-12)
    assert result.loss == pytest.approx(case["mean"], abs=1e-12)
    assert result.perplexity == pytest.approx(case["perplexity"], abs=1e-12)
    assert result.nats == pytest.approx(case["sum"], abs=1e-12)
    assert result.bits == pytest.approx(6, abs=1e-12)
    assert result.running == pytest.approx([math.log(1 / 2), math.log(1 / 8), math.log(1 / 64)])


def test_bits_are_counted_over_characters_and_bytes_when_the_size_is_given() -> None:
    model = bigram_table([[0.25] * 4] * 4)
    [sized] = score(model, [prompt(1, 2)], start_id=0, sizes=[TextSize.of("né")])
    assert sized.bits_per_character == pytest.approx(4 / 2)
    assert sized.bits_per_byte == pytest.approx(4 / 3)
    [unsized] = score(model, [prompt(1, 2)], start_id=0)
    assert unsized.bits_per_character is None
    assert unsized.bits_per_byte is None


@pytest.mark.parametrize("name", ["table", "gpt", "lstm", "mamba"])
def test_texts_of_unequal_length_are_scored_together_as_alone(name: str) -> None:
    torch.manual_seed(0)
    model = random_table(9, 0) if name == "table" else build(name, vocab_size=9, size="tiny").double()
    generator = torch.Generator().manual_seed(1)
    texts = [torch.randint(0, 9, (n,), generator=generator) for n in (3, 12, 1, 30, 7, 12)]
    together = score(model, texts, start_id=0, batch_size=4)
    for text, result in zip(texts, together, strict=True):
        [alone] = score(model, [text], start_id=0)
        assert result.tokens == alone.tokens == tuple(text.tolist())
        assert result.log_probs == pytest.approx(alone.log_probs, abs=1e-11)


def test_a_text_beyond_the_window_is_read_in_windows_that_overlap_by_half() -> None:
    """Two tokens decide here, and no token counts at the beginning of a window, so that nothing may be lost."""
    model, free = random_table(5, 0, max_length=4), random_table(5, 0)
    text = torch.arange(11) * 3 % 5
    [windowed], [carried] = (score(m, [text], start_id=0) for m in (model, free))
    assert windowed.log_probs == pytest.approx(carried.log_probs, abs=1e-12)
    assert {length for _, length in model.calls} == {4}
    assert sum(rows for rows, _ in model.calls) == 1 + math.ceil((11 - 4) / 2)


def test_an_impossible_text_has_infinite_perplexity() -> None:
    [result] = score(bigram_table([[1.0, 0.0], [1.0, 0.0]]), [prompt(0, 1)], start_id=0)
    assert result.probability == 0
    assert result.perplexity == math.inf


def test_what_cannot_be_scored_is_refused_by_its_number() -> None:
    model = random_table(5, 0)
    with pytest.raises(UsageError, match="text 1 is empty"):
        score(model, [prompt(1), prompt()], start_id=0)
    with pytest.raises(UsageError, match="text 0 has token 5"):
        score(model, [prompt(1, 5)], start_id=0)
    with pytest.raises(UsageError, match="the start symbol has token 9"):
        score(model, [prompt(1)], start_id=9)


def test_a_model_that_looks_at_the_future_is_refused() -> None:
    model = random_table(5, 0)
    model.causal = False  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(UsageError, match="looks at the future"):
        score(model, [prompt(1)], start_id=0)
