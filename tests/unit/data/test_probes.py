"""Probe worlds: their chances are true, and what they ask for is determined by what was said."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from regard.data.worlds import WORLDS, world
from regard.data.worlds.probe import END, Induction, Probe
from regard.data.worlds.recall import Memorisation
from regard.errors import DataError, UsageError

PROBES = {name: made for name in WORLDS if isinstance(made := world(name), Probe)}
SMALL = {
    "recall": {"pairs": 3, "keys": 2},
    "noisy_recall": {"pairs": 2, "keys": 2},
    "fuzzy_recall": {"pairs": 2, "keys": 2},
    "multi_recall": {"pairs": 2, "keys": 3},
    "memorisation": {"pairs": 2, "keys": 3},
    "selective_copy": {"length": 4, "words": 2, "kinds": 2},
    "compression": {"length": 3, "kinds": 2},
    "induction": {"length": 4, "kinds": 2},
    "parity": {"length": 3},
    "majority": {"length": 5},
    "witness": {"facts": 2, "turns": 3},
}


def test_every_probe_is_here():
    assert set(PROBES) == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_chances_sum_to_one_and_documents_follow_them(name: str):
    made = PROBES[name]
    for document in made.documents("valid", 3):
        words = made.split(document)
        assert set(words) <= set(made.vocabulary)
        for place in range(len(words) + 1):
            chances = made.next_distribution(words[:place])
            assert math.fsum(chances.values()) == pytest.approx(1)
            assert min(chances.values()) > 0
        assert made.next_distribution(words) == {END: 1.0}


@pytest.mark.parametrize("name", [name for name in SMALL if name != "noisy_recall"])
def test_all_documents_together_have_probability_one_and_come_as_often(name: str):
    made = world(name, **SMALL[name])
    assert isinstance(made, Probe)
    chances: dict[str, float] = {}
    waiting: list[tuple[list[str], float]] = [([], 1.0)]
    while waiting:
        words, probability = waiting.pop()
        for word, chance in made.next_distribution(words).items():
            if word == END:
                chances[" ".join(words)] = probability * chance
            else:
                waiting.append(([*words, word], probability * chance))
    assert math.fsum(chances.values()) == pytest.approx(1)
    drawn = Counter(made.documents("train", 2000))
    assert set(drawn) <= set(chances)
    for document, chance in chances.items():
        assert abs(drawn[document] - 2000 * chance) < 5 * math.sqrt(2000 * chance) + 1
        assert math.prod(made.token_probabilities(document)) == pytest.approx(chance)


@pytest.mark.parametrize("name", SMALL)
def test_what_is_asked_for_is_certain_and_nothing_else_is_asked(name: str):
    made = PROBES[name]
    for document in made.documents("valid", 5):
        certain = made.token_probabilities(document)
        points = made.recall_points(document)
        assert points or name.endswith("recall")
        assert all(certain[place] == 1.0 and 0 < distance <= place for place, distance in points)


def test_recalled_words_stood_that_far_back():
    for name in (
        "recall",
        "noisy_recall",
        "fuzzy_recall",
        "multi_recall",
        "selective_copy",
        "compression",
        "induction",
    ):
        for document in PROBES[name].documents("train", 20):
            words = document.split(" ")
            for place, distance in PROBES[name].recall_points(document):
                assert words[place] == words[place - distance], (name, document)


def test_answers_against_a_calculation_of_their_own():
    for document in PROBES["parity"].documents("valid", 20):
        *bits, _, told = document.split(" ")
        assert told == ("even", "odd")[sum(map(int, bits)) % 2]
    for document in PROBES["majority"].documents("valid", 20):
        *letters, _, told = document.split(" ")
        assert letters.count(told) > len(letters) / 2
    for document in PROBES["selective_copy"].documents("valid", 20):
        before, after = document.split(" ! ")
        assert before.replace(". ", "").replace(" .", "") == after
    for document in PROBES["induction"].documents("valid", 20):
        words = document.split(" ")
        assert words[words.index("!") + 1] == words[-1]


def test_places_of_selective_copy_and_induction_are_uniform():
    made = Induction(length=5, kinds=2)
    first = Counter(document.split(" ").index("!") for document in made.documents("train", 800))
    assert set(first) == {0, 1, 2, 3}
    assert all(abs(count - 200) < 5 * math.sqrt(200) for count in first.values())


def test_the_dictionary_of_memorisation_is_one_for_all_seeds():
    told: dict[str, str] = {}
    for seed in (1, 2):
        for document in Memorisation(seed=seed).documents("train", 40):
            words = document.split(" ")
            for key, value in zip(words[::2], words[1::2], strict=True):
                assert told.setdefault(key, value) == value


def test_foreign_text_and_impossible_settings_are_refused():
    with pytest.raises(DataError, match="does not begin a document"):
        PROBES["parity"].token_probabilities("1 even")
    with pytest.raises(DataError, match="does not begin a document"):
        PROBES["majority"].next_distribution(["a", END])
    for name, settings in (
        ("multi_recall", {"pairs": 9, "keys": 8}),
        ("majority", {"length": 4}),
        ("selective_copy", {"words": 5, "length": 4}),
        ("noisy_recall", {"noise": 100}),
        ("parity", {"length": 0}),
    ):
        with pytest.raises(UsageError, match=f"world:{name} needs"):
            world(name, **settings)
