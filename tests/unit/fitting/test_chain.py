"""Forward and backward over words in the order of time, and the likelihood of a CRF, by enumeration and crfsuite."""

from __future__ import annotations

from collections import Counter
from itertools import chain as chained
from pathlib import Path

import numpy as np
import pytest
import torch

from enumerated import Ways, chain_score
from regard.fitting.chain import by_time, sums
from regard.fitting.crf import Likelihood, kept
from regard.fitting.grams import Vocabulary
from regard.fitting.lbfgs import minimise
from regard.fitting.word_features import Met, Table, clipped, sentences_of, shape, tables

SENTENCES = (("The", "cat", "sat"), (), ("cats",), ("the", "cat", "of", "Rome"), ("Rome", "sat"))
TAGS = np.array([0, 1, 2, 1, 0, 1, 2, 1, 1, 2])


def test_the_sums_are_those_of_every_way_to_tag():
    torch.manual_seed(0)
    sizes, n_tags = np.array([len(words) for words in SENTENCES]), 3
    emissions = torch.randn(len(TAGS), n_tags, dtype=torch.float64)
    between, start, end = (torch.randn(*shape, dtype=torch.float64) for shape in ((3, 3), (3,), (3,)))
    order, stops = by_time(sizes), np.cumsum(sizes)
    found = sums(order, emissions[torch.from_numpy(order.places)], between, start, end)
    log_z, tags = 0.0, torch.zeros_like(emissions)
    for size, stop in zip(sizes.tolist(), stops.tolist(), strict=True):
        if size:
            every = Ways(size, n_tags, chain_score(emissions[stop - size : stop], between, start, end))
            log_z += float(every.log_z)
            tags[stop - size : stop] = every.chances
    assert found.log_z == pytest.approx(log_z, abs=1e-11)
    assert torch.allclose(found.tags, tags[torch.from_numpy(order.places)], atol=1e-12)
    assert float(found.pairs.sum()) == pytest.approx(len(TAGS) - 4)
    assert torch.allclose(found.pairs.sum(0), found.tags[order.n_sentences :].sum(0), atol=1e-12)


def features() -> tuple[list[Table], Vocabulary, np.ndarray]:
    names, given = Vocabulary(), sentences_of(SENTENCES)
    found = tables(given, Met(Counter(chained.from_iterable(SENTENCES)), own=1), names.added, lambda: len(names))
    return found, names, given.sizes


@pytest.mark.parametrize("seen", [True, False])
def test_the_gradient_of_the_likelihood_is_that_of_differences(seen: bool):
    found, _, sizes = features()
    function = Likelihood(found, TAGS, sizes, 3, 0.5, seen)
    torch.manual_seed(1)
    x = 0.3 * torch.randn_like(function.zero())
    _, gradient = function(x)
    for place in [*torch.randint(len(x), (12,)).tolist(), len(x) - 1, len(x) - 4, len(x) - 8]:
        step = torch.zeros_like(x)
        step[place] = 1e-2
        difference = (function(x + step)[0] - function(x - step)[0]) / 2e-2
        assert difference == pytest.approx(float(gradient[place]), abs=2e-3)


def test_features_of_few_words_are_left_out():
    found, names, _ = features()
    few, columns = kept(found, 2, 2)
    stays = names.kept(columns)
    assert {"l=cat", "f1=t"} <= set(stays.names)
    assert "l=cats" not in stays.names
    assert "-1|0=the cat" in stays.names
    assert sum(table.rows.width for table in few) == len(stays)


def test_the_likelihood_is_that_of_crfsuite(tmp_path: Path):
    crfsuite = pytest.importorskip("pycrfsuite")
    found, names, sizes = features()
    lowest = minimise(function := Likelihood(found, TAGS, sizes, 3, 0.5, seen=False), function.zero(), 1e-7, 500)
    trainer, place = crfsuite.Trainer(verbose=False), 0
    for size in sizes.tolist():
        rows = [
            [names.names[c + t.first] for t in found for c in t.rows.columns[slice(*t.rows.starts[t.index[at] :][:2])]]
            for at in range(place, place + size)
        ]
        if size:  # what a sentence begins and ends with, which crfsuite has no weights of its own for
            rows[0].append("first")
            rows[-1].append("last")
            trainer.append(rows, [str(tag) for tag in TAGS[place : place + size]])
        place += size
    every = {"feature.possible_states": True, "feature.possible_transitions": True}
    trainer.set_params({"c1": 0.0, "c2": 0.5, "epsilon": 1e-7, "delta": 1e-9, **every})
    trainer.train(str(tmp_path / "m"))
    assert lowest.converged
    assert lowest.value == pytest.approx(trainer.logparser.last_iteration["loss"], rel=1e-4)


@pytest.mark.parametrize(
    ("word", "expected"), [("Paris-2024", "Xx-0"), ("iPhone", "xXx"), ("", ""), ("!!", "!"), ("Été", "Xx")]
)
def test_the_shape_of_a_word(word: str, expected: str):
    assert shape(word) == expected


def test_a_very_long_word_is_read_by_its_ends():
    assert clipped("a" * 40 + "b" * 40) == "a" * 32 + "b" * 32
    assert clipped("word") == "word"
