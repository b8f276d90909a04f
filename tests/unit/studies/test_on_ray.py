"""A comparison on a Ray cluster of this machine; skipped, saying so, where the package ray is not installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_going_on import write
from test_side_by_side import Killing, run, told, weights

from regard.errors import UsageError
from regard.studies.pool.opening import SideBySide, opened

if "ray" not in sys.modules:
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # all of it listens on 127.0.0.1 then
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ray: Any = pytest.importorskip("ray", reason="the package ray is not installed: no comparison on a Ray cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    small = {"num_cpus": 2, "num_gpus": 0, "object_store_memory": 80 << 20, "include_dashboard": False}
    ray.init("local", log_to_driver=False, logging_level="error", **small)
    yield
    ray.shutdown()


def test_two_workers_of_a_cluster_of_which_one_is_killed_give_what_one_process_gives(
    cluster: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "d.txt", "abcd")
    models = ["ngram", "rnn?lr=0.01"]
    run(tmp_path, "c", models=models)
    board = Killing("rnn?lr=0.01")
    assert not run(tmp_path, "ray", board, models=models, ray="auto").failed
    assert told(tmp_path / "ray") == told(tmp_path / "c")
    assert weights(tmp_path / "ray") == weights(tmp_path / "c")
    assert [note for note in board.lost if "WorkerCrashedError" in note]
    assert capfd.readouterr().out == ""


def test_a_cluster_of_another_version_is_refused(cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.studies.pool.ray_pool.versions", lambda: {"regard": "9.9"})
    with (
        pytest.raises(UsageError, match="and the comparison began with 9"),
        opened(SideBySide(ray="auto"), "cpu"),
    ):
        pass
