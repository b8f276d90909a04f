"""Fitted taggers against loops over counts and over every way to tag."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from enumerated import Score, Ways, chain_score
from regard.core.context import Context
from regard.core.fitted import FitSettings, Nobody
from regard.data.ragged import Ragged, ragged
from regard.errors import CheckpointError, DataError
from regard.models.crf import CrfConfig
from regard.models.hmm import HmmConfig, endings_of
from regard.models.most_frequent import MostFrequentConfig
from regard.models.word_tagger import words_of
from regard.storage import tensors
from regard.tasks.vocabulary import letters

NAMES = ("DET", "NOUN", "VERB")
SENTENCES = (
    ("The/0", "dog/1", "barks/2"),
    ("A/0", "cat/1", "sleeps/2"),
    ("the/0", "dog/1", "walks/2", "the/0", "cat/1"),
    ("Rome/1", "sleeps/2"),
    ("walks/1",),
    ("dog/1", "walks/1", "sleeps/2"),
)
ASKED = [["the", "dog", "walks"], ["Paris"], ["a", "hen", "sleeps", "the"], ["x" * 200]]


@dataclass(frozen=True)
class Given:
    """The examples of a fit."""

    words: list[tuple[str, ...]]
    numbers: list[list[int]]
    names: Sequence[str] = NAMES

    @property
    def rows(self) -> Given:
        return self

    @property
    def tags(self) -> Ragged:
        return ragged(self.numbers)

    def column(self, name: str) -> list[Any]:
        return self.words if name == "words" else [[self.names[n] for n in tags] for tags in self.numbers]


def made() -> Given:
    pairs = [[item.split("/") for item in words] for words in SENTENCES]
    return Given([tuple(w for w, _ in one) for one in pairs], [[int(t) for _, t in one] for one in pairs])


def fitted(config: Any, given: Given | None = None) -> Any:
    model = config.build()
    model.facts = model.fit(given or made(), FitSettings(), Nobody())
    return model.double()


def read(model: Any, sentences: list[list[str]]) -> tuple[torch.Tensor, torch.Tensor]:
    """What a model gives for sentences side by side, with their lengths."""
    tokens, lengths = letters(sentences).padded(np.arange(len(sentences)), 0)
    return model(tokens, None, Context(lengths=lengths))[0], lengths


def test_words_come_back_from_the_numbers_of_their_characters():
    sentences = [["Été", "\U0001f600", "a"], ["b"], []]
    tokens, lengths = letters(sentences).padded(np.arange(3), 0)
    assert words_of(tokens, lengths) == sentences
    assert words_of(torch.full((1, 1, 2), -7), None) == [["\ufffd\ufffd"]]


def test_the_most_frequent_tag_is_that_of_a_count():
    model, given = fitted(MostFrequentConfig(3)), made()
    met = Counter(
        (word, tag)
        for words, tags in zip(given.words, given.numbers, strict=True)
        for word, tag in zip(words, tags, strict=True)
    )
    found, _ = read(model, [["walks", "dog", "never"]])
    assert found[0, 0].argmax() == 1
    assert met["walks", 1] == 2
    assert found[0, 0, 1].exp() == pytest.approx(2 / 3, abs=1e-6)
    once = Counter(tag for (word, tag), n in met.items() if sum(met[word, t] for t in range(3)) == 1)
    assert found[0, 2].exp().tolist() == pytest.approx([once[t] / once.total() for t in range(3)], abs=1e-6)


def test_the_emissions_of_the_hmm_are_those_of_its_counts():
    model, given = fitted(HmmConfig(3)), made()
    flat = [
        (w, t) for words, tags in zip(given.words, given.numbers, strict=True) for w, t in zip(words, tags, strict=True)
    ]
    of_tag, met = Counter(t for _, t in flat), Counter(flat)
    found, _ = read(model, [["dog", "cats"]])
    assert float(found[0, 0, 1]) == pytest.approx(math.log(met["dog", 1] / of_tag[1]))
    general = np.array([of_tag[t] / len(flat) for t in range(3)])
    theta = float(general.std(ddof=1))
    chances = general
    for ending in ("", "s"):
        own = np.zeros(3)
        for (word, tag), n in met.items():
            own[tag] += n * (word[0].islower() and word.endswith(ending))
        chances = (own / own.sum() + theta * chances) / (1 + theta)
    assert found[0, 1].tolist() == pytest.approx((np.log(chances) - np.log(general)).tolist(), abs=1e-6)
    assert model.facts["theta"] == pytest.approx(theta)
    assert endings_of("Rome", 2) == ["^", "^e", "^me"]


def _score(model: Any, emissions: torch.Tensor) -> Score:
    if isinstance(model.config, CrfConfig):
        return chain_score(emissions, model.between.double(), model.start.double(), model.end.double())
    steps = model.steps.double()

    def score(way: tuple[int, ...]) -> torch.Tensor:
        line = (3, 3, *way, 3)
        total = sum((emissions[i, tag] for i, tag in enumerate(way)), torch.zeros((), dtype=torch.float64))
        return total + sum(steps[line[i], line[i + 1], line[i + 2]] for i in range(len(way) + 1))

    return score


@pytest.mark.parametrize("config", [CrfConfig(3), HmmConfig(3)])
def test_the_best_tags_and_their_chances_are_those_of_every_way(config: Any):
    model = fitted(config)
    vectors, lengths = read(model, ASKED)
    best, chances = model.decode(vectors, lengths), model.log_chances(vectors, lengths).exp()
    for row, words in enumerate(ASKED):
        score = _score(model, vectors[row])
        every = Ways(len(words), 3, score)
        assert best[row, : len(words)].tolist() == every.best
        assert torch.allclose(chances[row, : len(words)], every.chances, atol=1e-9)


def test_a_crf_learns_its_sentences_and_tells_what_decided():
    model, given = fitted(CrfConfig(3, strength=0.01)), made()
    vectors, lengths = read(model, [list(words) for words in given.words])
    assert [
        row[:n] for row, n in zip(model.decode(vectors, lengths).tolist(), lengths.tolist(), strict=True)
    ] == given.numbers
    found = model.evidence(["the", "dog", "walks"], 1)
    total = found.offsets + (found.values[:, None] * found.weights).sum(0)
    assert total == pytest.approx(read(model, [["the", "dog", "walks"]])[0][0, 1].numpy(), abs=1e-5)
    assert {"w=dog", "-1:l=the", "-1|0=the dog"} <= set(found.names)


def test_less_for_the_tag_o_finds_more_spans():
    given = Given([("in", "Rome"), ("in", "Bonn"), ("in", "time")], [[1, 0], [1, 0], [1, 1]], ("B-LOC", "O"))
    plain, eager = (fitted(CrfConfig(2, outside=amount), given) for amount in (0.0, 1.5))
    (a, _), (b, _) = read(plain, [["in", "x"]]), read(eager, [["in", "x"]])
    assert torch.allclose(a - b, torch.tensor([0.0, 1.5], dtype=torch.float64), atol=1e-6)
    with pytest.raises(DataError, match="no tag O"):
        fitted(CrfConfig(3, outside=1.0))


@pytest.mark.parametrize("config", [MostFrequentConfig(1), HmmConfig(1), CrfConfig(1)])
def test_one_tag_and_one_word_are_fitted(config: Any):
    model = fitted(config, Given([("word",), ()], [[0], []], ("X",)))
    vectors, _ = read(model, [["word", "other"]])
    assert vectors.shape == (1, 2, 1)
    assert bool(vectors.isfinite().all())


def test_too_many_tags_for_trigrams_get_one_line():
    with pytest.raises(DataError, match="more than the 256"):
        fitted(HmmConfig(300))


@pytest.mark.parametrize("config", [MostFrequentConfig(3), HmmConfig(3), CrfConfig(3)])
def test_a_file_of_other_numbers_is_refused(config: Any, tmp_path: Path):
    model = fitted(config)
    stored, path = model.stored(), tmp_path / "m.safetensors"
    path.write_bytes(b"".join(bytes(part) for part in tensors.chunks(stored, {})))
    same = config.build()
    same.open_file(path)
    assert torch.equal(read(same.double(), ASKED)[0], read(model, ASKED)[0])
    path.write_bytes(b"".join(bytes(part) for part in tensors.chunks(stored | {"tags": stored["tags"] + 7}, {})))
    with pytest.raises(CheckpointError, match="a tag is out of range"):
        config.build().open_file(path)
