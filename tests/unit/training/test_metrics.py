"""The log of a run: read a line at a time, and what a run wrote is what it takes back."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path

import pytest

from regard.errors import CheckpointError
from regard.training import metrics
from tiny_run import run


@pytest.mark.parametrize("score", [math.inf, -math.inf, math.nan])
def test_a_score_that_is_not_finite_does_not_keep_a_run_from_going_on(tmp_path: Path, score: float) -> None:
    run(tmp_path / "run")
    log = tmp_path / "run" / "metrics.jsonl"
    sink = metrics.Metrics(log, pytest.fail)
    sink.write({"step": 1, "seconds": 0.1, "valid_loss": score, "valid_perplexity": score})
    run(tmp_path / "run", resume="last")
    assert any("valid_perplexity" in record for record in metrics.read(log))


@pytest.mark.parametrize(
    "record",
    [
        {"step": math.inf},
        {"step": 1, "valid_loss": None},
        {"step": 1, "gradient_norm": "x"},
        {"step": 1, "valid_loss": 10**400},
        {"step": 1, "loss": True},
    ],
)
def test_what_is_no_number_is_refused_by_its_line(tmp_path: Path, record: dict[str, object]) -> None:
    (tmp_path / "log").write_text(json.dumps({"step": 1}) + "\n" + json.dumps(record) + "\n")
    with pytest.raises(CheckpointError, match=f"log, line 2: {list(record)[-1]} is no number"):
        list(metrics.read(tmp_path / "log"))


def test_a_log_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text('{"step": 1}\n')
    (tmp_path / "log").symlink_to(tmp_path / "other")
    with pytest.raises(CheckpointError, match="log: is a link"):
        list(metrics.read(tmp_path / "log"))


def test_a_long_log_is_read_a_line_at_a_time(tmp_path: Path) -> None:
    line = json.dumps({"step": 1, "loss": 2.0, "note": "x" * 1000}).encode() + b"\n"
    (tmp_path / "log").write_bytes(line * 20_000 + b"x" * 5_000_000)
    tracemalloc.start()
    assert sum(1 for _ in metrics.read(tmp_path / "log")) == 20_000
    assert sum(map(len, metrics.up_to(tmp_path / "log", 1))) == 20_000 * len(line)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
