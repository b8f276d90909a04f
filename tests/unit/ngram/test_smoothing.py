"""Estimating: every smoothing against the equations in plain dictionaries and fractions, and the stated fallbacks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.models.ngram import NgramConfig
from regard.ngram.shares import Rules
from regard.ngram.smoothing import Smoothing, discounts
from smoothings import SMOOTHINGS

Gram = tuple[int, ...]
HALF = Fraction(1, 2)
EXAMPLES = 80


@dataclass
class Reference:
    """p(w | h) as Chen and Goodman (1998) write it, with what regard states beside: see `regard.ngram.smoothing`."""

    ids: Sequence[int]
    order: int
    vocab_size: int
    eos: int
    rules: Rules
    sentences: list[Gram] = field(init=False)

    def __post_init__(self) -> None:
        self.sentences, open_one = [], [self.eos]
        for token in self.ids:
            open_one.append(token)
            if token == self.eos:
                self.sentences.append(tuple(open_one))
                open_one = [self.eos]
        if len(open_one) > 1:
            self.sentences.append(tuple(open_one))
        self.raw = [self.windows(n) for n in range(1, self.order + 1)]
        self.counts = [self.adjusted(n) for n in range(1, self.order + 1)]
        self.discounts = [self.discount(n) for n in range(1, self.order + 1)]
        self.after: list[dict[Gram, list[int]]] = []
        for table in self.counts:
            children: dict[Gram, list[int]] = defaultdict(list)
            for gram in table:
                children[gram[:-1]].append(gram[-1])
            self.after.append(children)
        self.p: Callable[[int, Gram], Fraction] = cache(self.probability)

    def windows(self, n: int) -> Counter[Gram]:
        """c(g) of order n. <s> is written as eos: it only begins an n-gram, as </s> only ends one."""
        return Counter(s[i : i + n] for s in self.sentences for i in range(n == 1, len(s) - n + 1))

    def adjusted(self, n: int) -> dict[Gram, int]:
        """Continuation counts N1+(. g) for Kneser-Ney below the highest order, except after the beginning."""
        raw = self.raw[n - 1]
        if n == self.order or self.rules.smoothing not in ("kneser_ney", "modified_kneser_ney"):
            return dict(raw)
        before: Counter[Gram] = Counter(gram[1:] for gram in self.raw[n])
        return {gram: raw[gram] if n > 1 and gram[0] == self.eos else before[gram] for gram in raw}

    def discount(self, n: int) -> tuple[Fraction, Fraction, Fraction]:
        smoothing = self.rules.smoothing
        if smoothing in ("mle", "add_k", "witten_bell"):
            return Fraction(0), Fraction(0), Fraction(0)
        counts = self.counts[n - 1]
        if smoothing != "absolute" and n < self.order:
            counts = counts | {gram: self.raw[n - 1][gram] for gram in [self.last()[-n:]] if len(gram) == n}
        times = Counter(counts.values())
        n1, n2, n3, n4 = (Fraction(times[i]) for i in (1, 2, 3, 4))
        if smoothing != "modified_kneser_ney":
            d = n1 / (n1 + 2 * n2) if n1 and n2 else HALF
            return d, d, d
        fallback = HALF, Fraction(1), 3 * HALF
        if not (n1 and n2 and n3):
            return fallback
        y = n1 / (n1 + 2 * n2)
        found = 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3
        whole = any(d == j for j, d in enumerate(found, 1))
        sound = all(0 <= d <= j for j, d in enumerate(found, 1)) and (self.rules.interpolate or not whole)
        return found if sound else fallback

    def last(self) -> Gram:
        """The n-gram that KenLM comes to last: by its last word, then the one before; later words are later."""

        def rank(gram: Gram) -> list[int]:
            return [-1 if token == self.eos else self.ids.index(token) for token in reversed(gram)]

        ends = [s[max(0, i - self.order + 1) : i + 1] for s in self.sentences for i in range(1, len(s))]
        return max(ends, key=rank)

    def taken(self, n: int, count: int) -> Fraction:
        return self.discounts[n - 1][min(count, 3) - 1]

    def uniform(self, word: int) -> Fraction:
        if not self.rules.closed:
            return Fraction(1, self.vocab_size)
        seen = {token for (token,) in self.raw[0]}
        return Fraction(word in seen, len(seen))

    def shares(self, history: Gram) -> tuple[dict[int, Fraction], Fraction, Fraction]:
        """c - D of the words that are kept after a history, what they leave over, and what both are divided by."""
        n = len(history) + 1
        counts = {word: self.counts[n - 1][(*history, word)] for word in self.after[n - 1].get(history, [])}
        bar = 0 if n == 1 else self.rules.dropped(n)
        kept = {word: c for word, c in counts.items() if self.raw[n - 1][(*history, word)] > bar}
        base = self.vocab_size if not self.rules.closed else len(self.raw[0])
        extra = {"add_k": Fraction(self.rules.k) * base, "witten_bell": Fraction(len(counts))}
        more = extra.get(self.rules.smoothing, Fraction(0))
        shared = {word: c - self.taken(n, c) for word, c in kept.items()}
        total = sum(counts.values()) + more
        return shared, total - sum(shared.values()), total

    def probability(self, word: int, history: Gram) -> Fraction:
        shared, left, total = self.shares(history)
        if not history:
            return shared.get(word, Fraction(0)) / total + left / total * self.uniform(word)
        if self.rules.smoothing == "add_k":
            here = (shared.get(word, Fraction(0)) + left * self.uniform(word)) / total
            return here if shared else self.uniform(word)
        shorter = history[1:]
        if not shared:
            return self.p(word, shorter)
        if self.rules.interpolate:
            return (shared.get(word, Fraction(0)) + left * self.p(word, shorter)) / total
        open_share = 1 - sum(self.p(seen, shorter) for seen in shared)
        if open_share == 0:
            return self.alone(shared, word)
        if word in shared:
            return shared[word] / total
        return left / total / open_share * self.p(word, shorter)

    def alone(self, shared: dict[int, Fraction], word: int) -> Fraction:
        """After a history that leaves nobody to back off to, those that were seen share everything."""
        return shared.get(word, Fraction(0)) / sum(shared.values())

    def history(self, tokens: Sequence[int]) -> Gram:
        """What counts of the tokens before: the last n - 1, from the last end of a sentence on."""
        recent = list(tokens[len(tokens) - self.order + 1 :] if self.order - 1 < len(tokens) else tokens)
        ends = [i for i, token in enumerate(recent) if token == self.eos]
        return tuple(recent[ends[-1] :] if ends else recent) if self.order > 1 else ()


def compare(config: NgramConfig, ids: list[int], tokens: list[int]) -> None:
    """The model's distributions after every one of `tokens` are the reference's."""
    model = config.build()
    model.estimate(model.count(np.array(ids)))
    reference = Reference(ids, config.order, config.vocab_size, config.end, config.rules)
    expected = [
        [float(reference.p(word, reference.history(tokens[:i]))) for word in range(config.vocab_size)]
        for i in range(1, len(tokens) + 1)
    ]
    found = model.probabilities(torch.tensor([tokens]), model.init_state(1))[0]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-12)


def skewed(n_tokens: int, vocab_size: int, seed: int) -> list[int]:
    """A text of few frequent and many rare tokens, whose counts define every discount when it is long enough."""
    generator = np.random.default_rng(seed)
    return (generator.random(n_tokens) ** 2 * vocab_size).astype(int).tolist()


@st.composite
def texts(draw: st.DrawFn, vocab_size: int) -> list[int]:
    if draw(st.booleans()):
        return draw(st.lists(st.integers(0, vocab_size - 1), min_size=1, max_size=60))
    return skewed(draw(st.integers(1, 150)), vocab_size, draw(st.integers(0, 1000)))


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("smoothing", "interpolate"), SMOOTHINGS)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_probabilities_are_those_of_the_equations(smoothing: Smoothing, interpolate: bool, data: st.DataObject) -> None:
    vocab_size = data.draw(st.sampled_from([1, 2, 3, 4, 9]), "vocab_size")
    config = NgramConfig(
        vocab_size,
        order=data.draw(st.integers(1, 6), "order"),
        smoothing=smoothing,
        interpolate=interpolate,
        k=data.draw(st.sampled_from([1.0, 0.25]), "k"),
        prune=data.draw(st.sampled_from([(), (0, 1), (0, 0, 1), (0, 1, 2)]), "prune"),
        closed=data.draw(st.booleans(), "closed"),
        eos_id=data.draw(st.integers(0, vocab_size - 1), "eos"),
    )
    token = st.integers(0, vocab_size - 1)
    ids = data.draw(texts(vocab_size), "text")
    compare(config, ids, data.draw(st.lists(token, min_size=1, max_size=8), "tokens"))


@pytest.mark.parametrize(("smoothing", "interpolate"), SMOOTHINGS)
def test_long_text_with_defined_discounts(smoothing: Smoothing, interpolate: bool) -> None:
    ids = skewed(500, 12, 0)
    config = NgramConfig(13, 3, smoothing, interpolate, prune=(0, 0, 1))
    model = config.build()
    found = model.estimate(model.count(np.array(ids)))
    assert all(part.fallback == "" for part in found.discounts[1:])
    compare(config, ids, [12, *ids[:20], 3, 11, 11, 12, 5])


def test_model_that_backs_off_never_calls_a_seen_word_impossible() -> None:
    # After 0 each of the three tokens comes three times, and no pair comes four times: D3+ is 3.
    ids = [0, 0, 0, 0, 2, 0, 1, 0, 1, 0, 2, 0, 1, 1, 2, 1, 0, 2, 1, 2]
    for interpolate, more, fallback in ((True, 3.0, ""), (False, 1.5, "a count of 3 would be discounted by 3")):
        model = NgramConfig(3, order=2, interpolate=interpolate).build()
        found = model.estimate(model.count(np.array(ids))).discounts[1]
        assert (found.more, found.fallback) == (more, fallback)
        p = model.probabilities(torch.tensor([[0]]), model.init_state(1))
        assert float(p.min()) > 0
        assert float(p.sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # n1 .. n4 = 4, 2, 1, 1: Y = 1/2, D1 = 1 - 2 Y 2/4, D2 = 2 - 3 Y 1/2, D3+ = 3 - 4 Y 1
        ([1, 1, 1, 1, 2, 2, 3, 4, 9], (0.5, 1.25, 1.0)),
        ([1, 1, 2, 3], (0.5, 0.5, 3.0)),
    ],
)
def test_discounts_of_modified_kneser_ney_by_hand(counts: list[int], expected: tuple[float, ...]) -> None:
    found = discounts("modified_kneser_ney", np.array(counts))
    assert (found.one, found.two, found.more) == pytest.approx(expected, abs=1e-15)
    assert found.fallback == ""


@pytest.mark.parametrize(
    ("smoothing", "counts", "reason"),
    [
        ("modified_kneser_ney", [2, 3], "no n-gram occurs exactly once"),
        ("modified_kneser_ney", [1, 3], "no n-gram occurs exactly twice"),
        ("modified_kneser_ney", [1, 2, 4], "no n-gram occurs exactly three times"),
        ("modified_kneser_ney", [1, 2, *[3] * 9], "a count of 2 would be discounted by -7"),
        ("kneser_ney", [2, 3], "no n-gram occurs exactly once"),
        ("absolute", [1, 3], "no n-gram occurs exactly twice"),
    ],
)
def test_undefined_discounts_fall_back_and_say_why(smoothing: Smoothing, counts: list[int], reason: str) -> None:
    found = discounts(smoothing, np.array(counts))
    three = (0.5, 1.0, 1.5) if smoothing == "modified_kneser_ney" else (0.5, 0.5, 0.5)
    assert (found.one, found.two, found.more, found.fallback) == (*three, reason)


def test_n_grams_are_counted_before_pruning() -> None:
    ids = np.array([0, 1, 2, 0, 1, 2, 1, 2])
    for prune, stored in (((), [3, 4, 3]), ((0, 1), [3, 3, 2]), ((0, 0, 1), [3, 4, 2])):
        model = NgramConfig(3, order=3, prune=prune).build()
        found = model.estimate(model.count(ids))
        assert found.n_grams == [3, 4, 3]
        assert [len(model.table.level(order)) for order in (1, 2, 3)] == stored
