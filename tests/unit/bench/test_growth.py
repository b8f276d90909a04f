"""How costs grow: the powers are those of the sizes that were measured."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch

from regard.bench import growth
from regard.bench.growth import Growth, grown, layered, picture
from regard.errors import UsageError


def test_the_powers_are_those_of_the_larger_half():
    sizes = (1, 2, 4, 8, 16, 32)
    one = Growth("m", "length", sizes, tuple(1.0 if n < 4 else float(n * n) for n in sizes), sizes)
    assert one.time_power == pytest.approx(2.0)
    assert one.memory_power == pytest.approx(1.0)
    told = asdict(one)
    assert (told["time_power"], told["memory_power"]) == (one.time_power, one.memory_power)


@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_the_bytes_of_a_step_grow_with_the_batch(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(growth, "SIZES", {"batch": (4, 8, 16)})
    monkeypatch.setattr(growth, "USUAL", {"length": 32, "width": 16, "batch": 1})
    found = grown(name, "batch", 1, torch.device("cpu"))
    assert found.sizes == (4, 8, 16)
    assert found.memory_power == pytest.approx(1.0, abs=0.1)


def test_sizes_that_would_take_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(growth, "USUAL", {"length": 8, "width": 16, "batch": 1})
    monkeypatch.setattr(growth, "LONGEST", 0.0)
    assert grown("lstm", "batch", 1, torch.device("cpu")).sizes == growth.SIZES["batch"][:2]


def test_only_models_with_layers_over_text_are_grown():
    assert [name for name in ("ngram", "gpt", "mamba", "tagger") if layered(name)] == ["gpt", "mamba"]


def test_a_picture_of_nothing_is_refused():
    with pytest.raises(UsageError, match="nothing was measured"):
        picture([])
