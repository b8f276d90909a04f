"""Rows of the benchmarks when a measure is nothing or a benchmark fails; what they measure is no matter of tests."""

from __future__ import annotations

import json

import pytest

from regard import bench
from regard.bench import memory
from regard.bench.race import Row
from regard.cli.main import main


def test_a_measure_of_nothing_makes_a_row_without_a_ratio(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "peak_megabytes", lambda *_: 0.0)
    monkeypatch.setattr(memory, "installed", lambda _: True)
    rows = memory.attention(1) + memory.scan(1)
    assert [row.ratio for row in rows] == [None] * 5


def test_a_step_is_seen_although_the_parent_process_is_larger():
    ballast = b"x" * (700 << 20)
    del ballast
    assert memory.peak_megabytes("attention", 256, 1) > 1


def test_a_process_that_fails_is_reported_with_its_last_words():
    with pytest.raises(bench.RegardError, match="nothing at 8 tokens was not measured: KeyError: 'nothing'"):
        memory.peak_megabytes("nothing", 8, 1)


def test_a_failing_benchmark_is_a_row_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    good = Row("good step", 2.0, 1.0, 2.0, None, "s")
    table = {"bad": lambda repeats: [Row("", 1 / (repeats - 1), None, None, None, "")], "good": lambda _: [good]}
    monkeypatch.setattr(bench, "benchmarks", lambda _data: table)
    assert main(["bench", "--repeats", "1", "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)["rows"]
    assert (first["name"], first["ratio"], first["note"]) == ("bad", None, "ZeroDivisionError: division by zero")
    assert second == vars(good)
