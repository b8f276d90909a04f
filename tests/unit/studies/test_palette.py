"""Colours of models: each its own, the same everywhere, far apart within a ladder, seen on light and on dark."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from regard.core.registry import entry, names
from regard.studies.palette import MODELS, luminance, styles_of, variation
from regard.studies.row import Row
from regard.tasks import names as task_names
from regard.tasks import task_named

LADDERS = {task: task_named(task).ladder for task in task_names() if len(task_named(task).ladder) > 1}
# Oklab (Ottosson 2020), and sRGB as seen without one kind of cone (Machado et al. 2009, severity 1).
TO_CONES = np.array(
    [[0.41222147, 0.53633254, 0.05144599], [0.21190350, 0.68069955, 0.10739696], [0.08830246, 0.28171884, 0.62997870]]
)
TO_LAB = np.array(
    [
        [0.21045426, 0.79361779, -0.00407205],
        [1.97799850, -2.42859221, 0.45059371],
        [0.02590404, 0.78277177, -0.80867577],
    ]
)
SEEN = {
    "as most do": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}
LEAST = {"as most do": 0.15, "deuteranopia": 0.075, "protanopia": 0.075}
LIGHT, DARK = luminance("#f6f8fa"), luminance("#1d2329")  # the grounds of charts


def rows(labels: tuple[str, ...]) -> list[Row]:
    return [Row(label, label.partition("?")[0].partition("@")[0], 1) for label in labels]


def lab(colour: str, how: str) -> np.ndarray:
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SEEN[how]) @ linear, 0, 1)
    return TO_LAB @ np.cbrt(TO_CONES @ seen)


def test_every_model_has_a_colour_of_its_own() -> None:
    ours = {name for name in names() if entry(name).preset.__module__.startswith("regard.")}
    assert ours <= set(MODELS)
    assert len(set(MODELS.values())) == len(MODELS)
    for ladder in LADDERS.values():
        assert set(ladder) <= set(MODELS)


@pytest.mark.parametrize("how", SEEN)
@pytest.mark.parametrize("task", LADDERS)
def test_within_a_ladder_any_two_colours_are_far_apart(task: str, how: str) -> None:
    pairs = itertools.combinations(LADDERS[task], 2)
    apart = {(a, b): float(np.linalg.norm(lab(MODELS[a], how) - lab(MODELS[b], how))) for a, b in pairs}
    assert min(apart.values()) > LEAST[how], min(apart, key=lambda pair: apart[pair])


def test_a_model_has_the_same_colour_in_every_ladder_and_whoever_else_is_there() -> None:
    for ladder in LADDERS.values():
        found = styles_of(rows(ladder))
        assert {label: found[label].colour for label in ladder} == {label: MODELS[label] for label in ladder}
        assert styles_of(rows(ladder[1:])) == {label: found[label] for label in ladder[1:]}


def test_every_colour_is_seen_on_light_and_on_dark() -> None:
    for colour in MODELS.values():
        for found in (colour, *(variation(colour, number).colour for number in range(4))):
            assert (LIGHT + 0.05) / (luminance(found) + 0.05) > 1.5
            assert (luminance(found) + 0.05) / (DARK + 0.05) > 1.5


def test_entrants_of_one_model_are_variations_of_it() -> None:
    found = styles_of(rows(("lstm", "lstm?n_layers=2", "gpt", "lstm?n_layers=3", "lstm@0.5")))
    assert (found["lstm"].colour, found["lstm"].dashes) == (MODELS["lstm"], ())
    own = [style for label, style in found.items() if label != "gpt"]
    assert len({style.colour for style in own}) == len({style.dashes for style in own}) == 4 == len(own)


def test_models_from_outside_take_colours_that_are_free() -> None:
    labels = ("ngram", "dan", "fnn", "rnn", "lstm", "mine", "theirs")
    colours = [style.colour for style in styles_of(rows(labels)).values()]
    assert len(set(colours)) == len(labels)


def test_what_is_fitted_at_once_has_a_broken_line() -> None:
    found = styles_of([Row("ngram", "ngram", 0), Row("lstm", "lstm", 1)])
    assert (bool(found["ngram"].dashes), bool(found["lstm"].dashes)) == (True, False)
