"""Counting in shards: workers of bounded memory make the model of one process, to the byte."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.core.fitted import FitSettings, Nobody
from regard.core.workers import Labour, Processes
from regard.models.ngram import NgramConfig
from regard.ngram.ranges import ranges
from regard.ngram.shards import count_shards

VOCABULARY = 200
SEEDED = np.random.default_rng(0)
IDS = np.minimum(SEEDED.zipf(1.4, size=30_000), VOCABULARY).astype("<u2") - 1
IDS[::11] = VOCABULARY - 1


class Kept(Labour):
    """Processes that are there already, and stay."""

    def open(self, usual: int, threads: int = 1) -> Any:
        return POOL[0]


class Staying(Processes):
    def __exit__(self, *_: object) -> None: ...


POOL: list[Processes] = []


@pytest.fixture(scope="module", autouse=True)
def pool():
    POOL.append(Staying(2))
    yield POOL[0]
    POOL.pop().close()


def fitted(memory: int, labour: Labour, folder: Path | None = None, **rules: Any) -> dict[str, torch.Tensor]:
    model = NgramConfig(VOCABULARY, order=4, **rules).build()
    model.fit(IDS, FitSettings(memory=memory, folder=folder, labour=labour), Nobody())
    return model.stored()


@pytest.mark.parametrize(
    "rules",
    [{}, {"smoothing": "witten_bell", "interpolate": False}, {"prune": (0, 0, 1)}, {"smoothing": "add_k"}],
    ids=str,
)
def test_workers_make_the_model_of_one_process(rules: dict[str, Any], tmp_path: Path):
    one, many = fitted(1 << 30, Labour(1), **rules), fitted(1 << 20, Kept(), tmp_path, **rules)
    assert one.keys() == many.keys()
    for name, tensor in one.items():
        assert tensor.dtype == many[name].dtype
        assert torch.equal(tensor, many[name]), name
    assert not list(tmp_path.iterdir())


def test_a_file_of_ids_that_vanished_is_told(tmp_path: Path):
    (tmp_path / "ids").write_bytes(IDS.tobytes())
    ids = np.memmap(tmp_path / "ids", "<u2", "r")
    about = {"vocab_size": VOCABULARY, "eos_id": VOCABULARY - 1, "memory": 1 << 20}
    place = tmp_path / "work"
    place.mkdir()
    whole = count_shards(ids, 3, POOL[0], **about, place=place)
    (tmp_path / "ids").unlink()
    # What is still mapped here is written anew for the workers.
    again = count_shards(ids, 3, POOL[0], **about, place=place)
    assert np.array_equal(whole.counts, again.counts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=40), min_size=1, max_size=4), st.integers(1, 20))
def test_ranges_cover_every_row_once_and_no_row_is_cut_from_its_equals(tables: list[list[tuple]], rows: int):
    columns = [tuple(np.array(sorted(table)).reshape(-1, 3).T) for table in tables]
    found = ranges(columns, 4, rows)
    for table, bounds in zip(tables, zip(*found, strict=True), strict=True):
        assert [row for first, last in bounds for row in range(first, last)] == list(range(len(table)))
    parts = [
        {sorted(table)[i] for table, (a, b) in zip(tables, part, strict=True) for i in range(a, b)} for part in found
    ]
    assert sum(map(len, parts)) == len(set().union(*parts))
    for part, keys in zip(found, parts, strict=True):
        # More than asked for only where all are equal.
        assert sum(b - a for a, b in part) <= rows or len(keys) == 1


@pytest.mark.slow
def test_a_ray_cluster_makes_the_model_of_one_process():
    ray = pytest.importorskip("ray", reason="needs the package ray")
    here = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    ray.init(num_cpus=2, runtime_env=here, log_to_driver=False, include_dashboard=False, logging_level="error")
    try:
        one, many = fitted(1 << 30, Labour(1)), fitted(1 << 21, Labour(ray="auto"))
        assert all(torch.equal(tensor, many[name]) for name, tensor in one.items())
    finally:
        ray.shutdown()
