"""Ceilings: what is measured is a speed, and the floor is the later of two."""

from __future__ import annotations

import pytest
import torch

from regard.bench import Measured, machine
from regard.bench.machine import Machine, dtype_of, measured
from regard.bench.race import Row

HERE = Machine("cpu", "a machine", 2, "float32", flops=100.0, read=10.0, copied=8.0)
COUNTED = Row("work", 5.0, None, None, 1.5, "steps/s", "", 4.0, 100.0, 20.0)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SECONDS", 0.0)
    monkeypatch.setattr(machine, "SIDE", {"cpu": 32})
    monkeypatch.setattr(machine, "LARGE", {"cpu": 1 << 16})


@pytest.mark.usefixtures("small")
def test_a_cpu_is_measured_in_float32():
    found = measured(torch.device("cpu"))
    assert (found.device, found.dtype, found.threads) == ("cpu", "float32", torch.get_num_threads())
    assert min(found.flops, found.read, found.copied) > 0
    assert found.bandwidth == max(found.read, found.copied)
    assert "GFLOP/s in float32 products" in found.told


def test_a_gpu_is_measured_in_bfloat16_and_told_without_threads():
    assert dtype_of(torch.device("cuda")) == torch.bfloat16
    assert "thread" not in Machine("cuda", "a GPU", 2, "bfloat16", 1e15, 4e12, 4e12).told


@pytest.mark.parametrize(("operations", "nbytes", "seconds"), [(300.0, 20.0, 3.0), (100.0, 50.0, 5.0)])
def test_the_floor_is_the_longer_of_computing_and_moving(operations: float, nbytes: float, seconds: float):
    assert HERE.floor(operations, nbytes) == seconds


def test_of_two_measurements_the_higher_ceilings_count():
    other = Machine("cpu", "a machine", 2, "float32", flops=50.0, read=11.0, copied=9.0)
    assert HERE.best(other) == Machine("cpu", "a machine", 2, "float32", 100.0, 11.0, 9.0)


def test_a_row_has_a_floor_where_its_work_is_counted_and_none_elsewhere():
    row = COUNTED.on(HERE)
    assert (row.floor_s, row.share) == (2.0, 0.5)
    plain = Row("memory", 5.0, 10.0, 2.0, None, "MB")
    assert plain.on(HERE) == plain


def test_a_figure_to_be_reached_is_a_row_of_its_own_without_a_floor():
    row = Row("generate, batch 1, beside a peer", 18.0, 9.0, 2.0, None, "tokens/s", "", 1.0, 1.0, 1.0).beside(36.0)
    assert row == Row("generate, batch 1, beside 36 tokens/s", 18.0, 36.0, 0.5, 1.0, "tokens/s")


@pytest.mark.parametrize(("device", "aim"), [("cpu", 1.5), ("cuda", None)])
def test_aims_are_of_a_cpu_and_the_machine_is_measured_twice(monkeypatch: pytest.MonkeyPatch, device: str, aim: float):
    asked: list[torch.device] = []
    monkeypatch.setattr(machine, "measured", lambda device: asked.append(device) or HERE)
    found = Measured(1)
    found.add(COUNTED, torch.device(device))
    found.add(COUNTED, torch.device(device))
    found.finish(torch.device(device))
    assert [row.aim for row in found.rows] == [aim, aim]
    assert [row.share for row in found.rows] == [0.5, 0.5]
    assert asked == [torch.device(device)] * 2


def test_a_machine_is_not_measured_for_rows_without_a_floor(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "measured", lambda device: pytest.fail("measured"))
    found = Measured(1)
    found.add(Row("memory", 5.0, 10.0, 2.0, None, "MB"), torch.device("cpu"))
    found.finish(torch.device("cpu"))
    assert found.to_dict()["machine"] is None
