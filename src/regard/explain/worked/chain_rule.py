"""The probability of a sentence: a product of conditionals, each of which may be counted.

P(w) = prod_i P(w_i | w_1 .. w_(i-1))        n-gram: only the last n - 1 words are looked at
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.decoding.score import Score
from regard.explain.view import Listing, Panel, View
from regard.explain.worked.sheet import answer, formula, fractions, numbers, sheet, short, tensor, text
from regard.models.ngram import NgramConfig, NgramModel
from regard.ngram.smoothing import Smoothing

CONTINUATION = ["great", "day", "[EOS]"]
PROBABILITIES = (2 / 5, 1 / 2, 1 / 4)
CORPUS = ["A A B", "A B B", "B A A"]
# One symbol both ends a sentence and begins the next one.
TOKENS = {"A": 0, "B": 1, "</s>": 2}
CONTEXTS, NEXT = ["A", "B", "<s>"], ["A", "B", "</s>"]


def view() -> View:
    return sheet("chain-rule", "The probability of a sentence", _product(), _ngrams(), _counted(), _smoothed())


def fitted(smoothing: Smoothing) -> NgramModel:
    """Bigrams of the corpus."""
    model = NgramConfig(len(TOKENS), order=2, smoothing=smoothing).build()
    ids = [TOKENS[word] for sentence in CORPUS for word in [*sentence.split(), "</s>"]]
    model.estimate(model.count(np.array(ids)))
    return model


def counts(model: NgramModel) -> Tensor:
    """How often each word (columns) followed each context (rows)."""
    level = model.table.level(2)
    found = level.alpha.counts[level.alpha.entry(slice(None))].tolist()
    table = torch.zeros(len(TOKENS), len(TOKENS), dtype=torch.float64)
    for pair, count in zip(level.keys.tolist(), found, strict=True):
        table[pair // len(TOKENS), pair % len(TOKENS)] = count
    return table


def conditionals(model: NgramModel) -> Tensor:
    """P(column | row)."""
    contexts = torch.arange(len(TOKENS))[:, None]
    return model.probabilities(contexts, model.init_state(len(TOKENS)))[:, 0].double()


def _product() -> Sequence[Panel]:
    logs = tuple(map(math.log, PROBABILITIES))
    whole = Score((0, 1, 2), logs)
    running = tensor(whole.running).exp()
    return [
        formula("P(w) = prod_i P(w_i | w_1 .. w_(i-1))", title="The chain rule"),
        text("A model has read 'Today is a' and goes on, one word after the other. Each word is then read as well."),
        Listing(
            title="What it is asked",
            columns=["factor", "p#"],
            rows=[
                ("P(great | Today, is, a)", PROBABILITIES[0]),
                ("P(day | Today, is, a, great)", PROBABILITIES[1]),
                ("P([EOS] | Today, is, a, great, day)", PROBABILITIES[2]),
            ],
        ),
        numbers(
            "factors", tensor(PROBABILITIES), "P(w_i | all before)", title="Factors", rows=["p"], columns=CONTINUATION
        ),
        numbers(
            "joint",
            running,
            "the product up to each word",
            title="Multiplied",
            rows=["P"],
            columns=CONTINUATION,
            note=fractions(running),
        ),
        numbers(
            "log_joint",
            tensor(whole.running),
            "sum_i log P(w_i | all before)",
            title="Added up as logarithms",
            rows=["log P"],
            columns=CONTINUATION,
        ),
        answer("What is P(great, day | Today is a)?", f"The product of two conditionals: {short(running[1])}."),
        answer(
            "And where does it end?",
            f"[EOS] is predicted like a word. With it there are three factors and {short(running[2])}; generation "
            "stops there, and [EOS] is not part of the text.",
        ),
    ]


def _ngrams() -> Sequence[Panel]:
    return [
        formula(
            "P(w) ~ prod_i P(w_i | w_(i-n+1) .. w_(i-1))",
            "bigram, n = 2:  P(w_i | w_(i-1))",
            title="An n-gram model forgets all but the last n - 1 words",
        ),
        Listing(
            title="A corpus of three sentences",
            columns=["sentence"],
            rows=[(f"<s> {sentence} </s>",) for sentence in CORPUS],
        ),
    ]


def _counted() -> Sequence[Panel]:
    model = fitted("mle")
    found, p = counts(model), conditionals(model)
    tokens = [TOKENS[word] for word in ("</s>", "A", "B", "</s>")]
    logs, _ = model.log_probs(torch.tensor([tokens]), model.init_state(1))
    factors = logs[0].exp()
    return [
        numbers("counts", found, "c(v w)", title="Count each pair", rows=CONTEXTS, columns=NEXT),
        numbers(
            "mle",
            p,
            "P(w | v) = c(v w) / sum_w c(v w)",
            title="Divide by the row's sum",
            rows=CONTEXTS,
            columns=NEXT,
            note="; ".join(f"after {v}: {fractions(row)}" for v, row in zip(CONTEXTS, p, strict=True)) + ".",
        ),
        numbers(
            "sentence_factors",
            factors,
            "P(A | <s>)  P(B | A)  P(</s> | B)",
            title="The sentence A B",
            rows=["p"],
            columns=["A", "B", "</s>"],
        ),
        numbers(
            "sentence",
            logs.sum(-1, keepdim=True).exp(),
            "P(<s> A B </s>)",
            title="Its probability",
            note=f"{fractions(factors)} multiplied are {fractions(factors.prod())}.",
        ),
    ]


def _smoothed() -> Sequence[Panel]:
    p = conditionals(fitted("add_k"))
    return [
        answer(
            "What of a pair that never occurred?",
            "Its probability is 0, and so is that of every sentence with it. Smoothing keeps something for the unseen.",
        ),
        numbers(
            "add_one",
            p,
            "P(w | v) = (c(v w) + 1) / (sum_w c(v w) + 3)",
            title="Add one to every count",
            rows=CONTEXTS,
            columns=NEXT,
            marked=[(2, 2)],
            note="; ".join(f"after {v}: {fractions(row)}" for v, row in zip(CONTEXTS, p, strict=True))
            + ". The marked one, an empty sentence, never occurred.",
        ),
    ]
