"""The worked examples as views: quick to make, whole, readable by programs, and refused by name where unknown."""

from __future__ import annotations

import importlib
import json
import math
import time
from typing import Any

import numpy as np
import pytest
import torch

from regard.errors import UsageError
from regard.explain.view import Heat, Links, Note, Numbers, View
from regard.explain.worked import EXAMPLES, example, examples

every_example = pytest.mark.parametrize("name", EXAMPLES)
# Panels in which a dot stands for what is masked or padded.
MASKED = {("causal", "batch"), ("causal", "scores"), ("positions", "alibi_bias")}


@every_example
def test_an_example_is_made_in_under_a_second(name: str) -> None:
    importlib.import_module(f"regard.explain.worked.{name.replace('-', '_')}")
    start = time.thread_time()
    view = example(name)
    assert time.thread_time() - start < 1
    assert isinstance(view, View)
    assert view.name == "steps"
    assert view.title
    assert view.about == {"example": name}


@every_example
def test_keys_are_unique_and_find_their_panel(name: str) -> None:
    view = example(name)
    keys = [panel.key for panel in view.panels if panel.key]
    assert len(keys) == len(set(keys))
    assert all(view[key].key == key for key in keys)
    assert all(panel.key for panel in view.panels if not isinstance(panel, Note) and panel.kind != "listing")


@every_example
def test_matrices_are_float64_with_a_label_for_every_row_and_column(name: str) -> None:
    for panel in example(name).panels:
        if not isinstance(panel, Numbers | Heat):
            continue
        matrix = panel.values if isinstance(panel, Numbers) else panel.weights
        assert matrix.dtype == np.float64
        assert matrix.ndim == 2
        assert len(panel.rows) in (0, matrix.shape[0])
        assert len(panel.columns) in (0, matrix.shape[1])
        if isinstance(panel, Numbers):
            assert panel.title, panel.key
            assert panel.equation, panel.key
            assert all(0 <= row < matrix.shape[0] and 0 <= column < matrix.shape[1] for row, column in panel.marked)


@every_example
def test_numbers_are_finite_unless_masked(name: str) -> None:
    for panel in example(name).panels:
        if isinstance(panel, Numbers):
            assert not np.isinf(panel.values).any()
            assert np.isnan(panel.values).any() == ((name, panel.key) in MASKED)
        elif isinstance(panel, Heat | Links):
            assert np.isfinite(panel.weights).all()


@every_example
def test_weights_lie_within_the_scale_of_their_shades(name: str) -> None:
    for panel in example(name).panels:
        if isinstance(panel, Heat):
            assert panel.low <= panel.weights.min()
            assert panel.weights.max() <= panel.high + 1e-12


def numbers_of(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers_of(part)]
    if isinstance(value, list):
        return [number for part in value for number in numbers_of(part)]
    return [value] if isinstance(value, float) else []


@every_example
def test_an_example_goes_through_json_in_full(name: str) -> None:
    view = example(name)
    told = json.loads(json.dumps(view.to_dict(), allow_nan=False))
    assert all(math.isfinite(number) for number in numbers_of(told))
    for panel, said in zip(view.panels, told["panels"], strict=True):
        if isinstance(panel, Numbers):
            again = np.array(said["values"], dtype=np.float64)  # None becomes NaN
            np.testing.assert_array_equal(again, panel.values)


@every_example
def test_an_example_leaves_the_random_numbers_of_its_caller_alone(name: str) -> None:
    before = torch.random.get_rng_state()
    first = json.dumps(example(name).to_dict())
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(1)
    assert json.dumps(example(name).to_dict()) == first


@every_example
def test_a_changed_panel_does_not_change_the_example(name: str) -> None:
    first = json.dumps(example(name).to_dict())
    for panel in example(name).panels:
        if isinstance(panel, Numbers):
            panel.values[:] = 0
    assert json.dumps(example(name).to_dict()) == first


def test_every_file_of_the_folder_that_makes_a_view_is_listed() -> None:
    folder = importlib.import_module("regard.explain.worked").__path__[0]
    from pathlib import Path

    made = {path.stem.replace("_", "-") for path in Path(folder).glob("*.py") if "\ndef view(" in path.read_text()}
    assert made == set(EXAMPLES)


def test_the_list_says_what_each_example_works_out() -> None:
    assert list(examples()) == list(EXAMPLES)
    assert all(line.endswith(".") and "\n" not in line for line in examples().values())
    examples().clear()
    assert examples()


def test_an_unknown_example_is_refused_with_the_nearest_name_and_all_names() -> None:
    with pytest.raises(UsageError, match=r"unknown example 'three_inputs', did you mean 'three-inputs'\?") as refused:
        example("three_inputs")
    assert all(name in str(refused.value) for name in EXAMPLES)


@pytest.mark.parametrize("name", ["", "zzz", "../ab", "sheet"])
def test_other_names_are_refused_with_all_names(name: str) -> None:
    with pytest.raises(UsageError, match="unknown example") as refused:
        example(name)
    assert all(known in str(refused.value) for known in EXAMPLES)
    assert "\n" not in str(refused.value)
