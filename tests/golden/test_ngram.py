"""Counted models against a worked example (chain_rule.json) and against KenLM (kneser_ney_wikitext2.json)."""

from __future__ import annotations

import gzip
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from exact import load

from regard.models.ngram import NgramConfig, NgramModel
from regard.ngram.smoothing import Smoothing

EXAMPLE = load("chain_rule")["ngram"]["own_count_example"]
KENLM = load("kneser_ney_wikitext2")["orders"]
TOKENS = {"A": 0, "B": 1, "<s>": 2, "</s>": 2}


def bigrams(smoothing: Smoothing) -> NgramModel:
    """The example's model. Its sentences come with `<s>`, which regard reads off the end of the one before."""
    model = NgramConfig(3, order=2, smoothing=smoothing).build()
    ids = [TOKENS[word] for line in EXAMPLE["corpus"] for word in line.split()[1:]]
    model.estimate(model.count(np.array(ids)))
    return model


@pytest.mark.parametrize(("smoothing", "key"), [("mle", "bigram_mle"), ("add_k", "bigram_add_one")])
def test_bigrams_of_the_worked_example(smoothing: Smoothing, key: str) -> None:
    model = bigrams(smoothing)
    p = model.probabilities(torch.tensor([[0], [1], [2]]), model.init_state(3))[:, 0]
    expected = torch.zeros(3, 3, dtype=torch.float64)
    for name, value in EXAMPLE[key].items():
        word, context = (TOKENS[part] for part in re.fullmatch(r"P\((.+)\|(.+)\)", name).groups())  # pyright: ignore
        expected[context, word] = float(Fraction(value))
    torch.testing.assert_close(p, expected, rtol=0, atol=1e-15)


def test_counts_of_the_worked_example() -> None:
    model = bigrams("mle")
    level = model.table.level(2)
    counts = level.alpha.counts[level.alpha.entry(slice(None))].tolist()
    found = {(int(key) // 3, int(key) % 3): n for key, n in zip(level.keys, counts, strict=True)}
    pairs = {pair: tuple(TOKENS[word] for word in pair.split()) for pair in EXAMPLE["bigram_counts"]}
    assert found == {pairs[pair]: n for pair, n in EXAMPLE["bigram_counts"].items()}


def test_probability_of_the_worked_sentence() -> None:
    model = bigrams("mle")
    for sentence, value in EXAMPLE["probability_of"].items():
        tokens = torch.tensor([[TOKENS[word] for word in sentence.split()]])
        logs, _ = model.log_probs(tokens, model.init_state(1))
        assert math.exp(logs.sum()) == pytest.approx(float(Fraction(value)), rel=1e-14)


class WikiText:
    """The text as KenLM saw it: a sentence a line, blank ones too, and one token more that no text holds, `<unk>`."""

    def __init__(self, folder: Path) -> None:
        train, valid = (self.lines(folder / f"{split}.txt.gz") for split in ("train", "valid"))
        words = dict.fromkeys(word for line in train for word in line)
        self.ids = {word: i for i, word in enumerate(words)}
        self.vocab_size = len(words) + 2
        self.train, self.valid = self.encode(train), self.encode(valid)

    @staticmethod
    def lines(path: Path) -> list[list[str]]:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [line.replace("<unk>", "_unk_").split() for line in file]

    def encode(self, lines: list[list[str]]) -> np.ndarray:
        end = self.vocab_size - 1
        return np.array([i for line in lines for i in (*(self.ids[word] for word in line), end)])

    def with_start(self, ids: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.concatenate([[self.vocab_size - 1], ids]))[None]


@pytest.fixture(scope="module")
def wikitext(real_data: Path) -> WikiText:
    return WikiText(real_data / "wikitext2")


@pytest.mark.data
@pytest.mark.parametrize("order", [2, 3, 5])
def test_wikitext_equals_kenlm(wikitext: WikiText, order: int) -> None:
    golden = KENLM[str(order)]
    model = NgramConfig(wikitext.vocab_size, order).build()
    found = model.estimate(model.count(wikitext.train))
    # KenLM counts <s>, which is never predicted, among its words.
    n_grams = [found.n_grams[0] + 1, *found.n_grams[1:]]
    assert n_grams == [part["count"] for part in golden["ngrams_and_discounts"].values()]
    for discounts, part in zip(found.discounts, golden["ngrams_and_discounts"].values(), strict=True):
        # lmplz prints six digits.
        expected = (part["D1"], part["D2"], part["D3+"])
        assert (discounts.one, discounts.two, discounts.more) == pytest.approx(expected, rel=0, abs=5e-6)
        assert discounts.fallback == ""
    for line in golden["sample_lines"]:
        check_line(model, wikitext, line)
    assert len(wikitext.valid) == golden["valid_tokens"]
    logs, _ = model.log_probs(wikitext.with_start(wikitext.valid), model.init_state(1))
    assert math.exp(-float(logs.mean())) == pytest.approx(golden["valid_perplexity"], rel=0, abs=1e-3)


def check_line(model: NgramModel, text: WikiText, line: dict[str, Any]) -> None:
    """Every log10 of a line and the order of the longest n-gram that it was read from."""
    tokens = text.with_start(text.encode([line["line"].split()]))
    logs, _ = model.log_probs(tokens, model.init_state(1))
    expected = torch.tensor(line["log10"], dtype=torch.float64)
    torch.testing.assert_close(logs[0] / math.log(10), expected, rtol=0, atol=1e-5)
    places = torch.stack(model.table.places(tokens, model.config.order))[:, 0, 1:]
    assert (places >= 0).sum(0).tolist() == line["matched_order"]
