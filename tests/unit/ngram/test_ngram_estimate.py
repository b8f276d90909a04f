"""Estimating in little memory: whatever does not fit goes to files, and no bit of the result changes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.models.ngram import NgramConfig, NgramModel
from regard.ngram import spill
from regard.storage import arrays

TINY = 1 << 12
RULES: list[dict[str, Any]] = [
    *({"smoothing": name} for name in ("modified_kneser_ney", "kneser_ney", "witten_bell", "absolute", "mle", "add_k")),
    *({"smoothing": name, "interpolate": False} for name in ("modified_kneser_ney", "witten_bell", "mle")),
    {"prune": (0, 0, 1)},
    {"prune": (0, 1, 1, 2), "smoothing": "absolute"},
    {"order": 1},
    {"closed": True},
]


def text(size: int, vocab_size: int = 40) -> np.ndarray:
    chance = np.random.default_rng(0)
    ids = np.minimum(vocab_size ** chance.random(size), vocab_size - 2).astype(np.int64)
    ids[chance.random(size) < 0.1] = vocab_size - 1
    return ids


def model_of(rules: dict[str, Any]) -> NgramModel:
    return NgramConfig(40, **({"order": 4} | rules)).build()


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_a_small_memory_changes_no_bit_of_a_model(rules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ids = text(6000)
    whole, small = model_of(rules), model_of(rules)
    found = whole.estimate_exactly(whole.count(ids))
    monkeypatch.setattr(spill, "SLICE", 700)
    monkeypatch.setattr(arrays, "SLICE", 700)
    monkeypatch.setattr(spill, "MANY", 10)
    counts = small.count(ids, memory=TINY, folder=tmp_path)
    again = small.estimate_exactly(counts, memory=TINY, folder=tmp_path)
    assert found.n_grams == again.n_grams
    assert found.discounts == again.discounts
    mapped = 0
    for name, tensor in whole.state_dict().items():
        other = small.state_dict()[name]
        assert other.dtype == tensor.dtype
        assert other.equal(tensor), name
        mapped += arrays.as_mapped(other.numpy()) is not None
    assert mapped or whole.config.order == 1
    held = torch.from_numpy(text(9000)[6000:])[None]
    expected, _ = whole.log_probs(held, whole.init_state(1))
    assert small.log_probs(held, small.init_state(1))[0].equal(expected)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [0, 1, 699, 700, 701, 2100])
def test_what_is_searched_and_taken_in_slices_is_what_is_at_once(size, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spill, "SLICE", 700)
    monkeypatch.setattr(arrays, "SLICE", 700)
    monkeypatch.setattr(spill, "MANY", 0)
    values = np.unique(np.random.default_rng(1).integers(0, 10_000, size))
    spool = arrays.Spool(np.int64, 0, None)
    for part in np.array_split(values, 5):
        spool.append(part)
    mapped = spool.array()
    wanted = np.sort(np.random.default_rng(2).integers(-5, 10_005, 3000))
    assert spill.searched(mapped, wanted).tolist() == np.searchsorted(values, wanted).tolist()
    if size:
        places = np.random.default_rng(3).integers(0, len(values), 3000)
        assert spill.gathered(mapped, places).tolist() == values[places].tolist()
        assert spill.taken(mapped, np.sort(places)).tolist() == values[np.sort(places)].tolist()
    assert (
        np.concatenate([np.zeros(0, np.int64), *(part for (part,) in arrays.slices(mapped))]).tolist()
        == values.tolist()
    )


def test_what_was_written_to_a_mapped_array_is_kept_when_it_is_let_go_of():
    spool = arrays.Spool(np.int64, 0, None)
    spool.append(np.zeros(5000, np.int64))
    array = spool.array()
    array[::7] = 3
    arrays.release(array)
    assert array.sum() == 3 * len(array[::7])


def test_counting_and_estimating_stay_near_the_memory_they_are_given(tmp_path: Path):
    memory = 4 << 20
    ids = np.random.default_rng(0).integers(0, 1000, 150_000)
    model = NgramConfig(1000, order=4).build()
    tracemalloc.start()
    try:
        model.estimate_exactly(model.count(ids, memory=memory, folder=tmp_path), memory=memory, folder=tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # With all of it in memory it is 22 MB.
    assert peak < 1.25 * memory
