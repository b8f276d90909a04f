"""Rows of the benchmarks when a measure is nothing or a benchmark fails; what they measure is no matter of tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from regard import bench
from regard.bench import generation, machine, memory, race, seq2seq, step
from regard.bench.machine import Machine
from regard.bench.race import Row, Work
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
    monkeypatch.setattr(bench, "benchmarks", lambda _data, _device: table)
    assert main(["bench", "--repeats", "1", "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)["rows"]
    assert (first["name"], first["ratio"], first["note"]) == ("bad", None, "ZeroDivisionError: division by zero")
    assert second == vars(good)


HERE = Machine("cpu", "a machine", 2, "float32", flops=1e11, read=2e10, copied=1e10)
COUNTED = Row("gpt step, 4 layers, beside a peer", 500.0, 250.0, 2.0, 1.6, "tokens/s", "", 2.0, 1e11, 1e9)


@pytest.fixture
def one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "measured", lambda _device: HERE)
    monkeypatch.setattr(bench, "benchmarks", lambda _data, _device: {"one": lambda _repeats: [COUNTED]})


@pytest.mark.usefixtures("one_row")
def test_the_object_holds_the_machine_and_rows_with_their_floors(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    out, picture = tmp_path / "found.json", tmp_path / "roof.svg"
    argv = ["bench", "--json", "--device", "cpu", "--out", str(out), "--picture", str(picture)]
    assert main(argv) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["machine"] == vars(HERE)
    (row,) = told["rows"]
    assert {"name", "ours", "peer", "unit", "ratio", "aim", "operations", "bytes", "floor_s", "share"} <= set(row)
    assert (row["floor_s"], row["share"]) == (1.0, 0.5)
    assert json.loads(out.read_text()) == told
    assert picture.read_text().startswith("<svg")


@pytest.mark.usefixtures("one_row")
def test_the_table_says_what_was_reached_of_what_the_machine_allows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(race, "PEERS", ("json", "no_such_peer"))
    assert main(["bench", "--device", "cpu"]) == 0
    shown = capsys.readouterr()
    title, head, row = shown.out.splitlines()
    assert title == "a machine, 2 threads: 100 GFLOP/s in float32 products, 20.0 GB/s read, 10.0 GB/s copied"
    assert head.split() == ["name", "ours", "peer", "unit", "ratio", "aim", "ops", "bytes", "limit", "share"]
    assert row.split()[-9:] == ["500", "250", "tokens/s", "2", "1.6", "100G", "1G", "1,000", "50%"]
    assert "not installed, so left out: no_such_peer\n" in shown.err


@pytest.mark.parametrize("flag", ["--out", "--picture"])
def test_a_file_without_a_folder_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flag: str
):
    monkeypatch.setattr(bench, "run", lambda *_: pytest.fail("measured"))
    assert main(["bench", flag, "no/such/file"]) == 2
    assert "no/such/file: there is no folder no/such; make it first" in capsys.readouterr().err


def raced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every work is run once, and takes a second."""

    def once(ours: Work, _peer: Work | None, _repeats: int) -> tuple[float, None, None]:
        ours()
        return 1.0, None, None

    monkeypatch.setattr(race, "race", once)
    for module in (step, generation, seq2seq):
        monkeypatch.setattr(module, "installed", lambda _package: False)


def test_every_step_and_generation_has_a_floor(monkeypatch: pytest.MonkeyPatch):
    raced(monkeypatch)
    monkeypatch.setattr(seq2seq, "SIZES", (seq2seq.Size(1, 16, 20), seq2seq.Size(1, 16, 20)))
    monkeypatch.setattr(seq2seq, "TRANSLATOR", seq2seq.Size(1, 16, 20))
    monkeypatch.setattr(seq2seq, "MANY", 2)
    monkeypatch.setattr(seq2seq, "pairs", lambda count, pairs=seq2seq.pairs: pairs(min(count, 2), 20))
    monkeypatch.setattr(
        generation, "gpt2", lambda _device: step.built("gpt", 50257, step.CPU, d_model=8, n_layers=1).eval()
    )
    cpu = torch.device("cpu")
    rows = [*step.lstm(1), *seq2seq.training(1, cpu), *seq2seq.decoding(1, cpu), *seq2seq.translation(1)]
    rows += generation.generate(1)
    figures = [row for row in rows if row.operations is None]
    beside = [row.name.rpartition(", beside ")[2] for row in figures]
    assert beside == ["68 sentences/s", *(f"{figure} tokens/s" for figure in (36, 50, 160, 290))]
    assert all(row.operations and row.bytes and row.seconds for row in rows if row not in figures)
    assert [row.aim for row in rows if row.name.endswith("MarianMT")] == [1.6, 1.3, None, None, None]


def test_the_aims_of_steps_are_those_to_be_reached(monkeypatch: pytest.MonkeyPatch):
    aims: list[float | None] = []

    def noted(name: str, _model: object, _tokens: object, _peer: object, _repeats: int, aim: float | None) -> Row:
        aims.append(aim)
        return Row(name, None, None, None, aim, "")

    monkeypatch.setattr(step, "step_row", noted)
    monkeypatch.setattr(step, "built", lambda *_, **__: None)
    monkeypatch.setattr(step, "installed", lambda _package: False)
    for rows in (step.gpt(1), step.scan(1), step.vocabulary(1)):
        assert rows
    assert aims == [1.6, None, 1.2, None, 6.0, 10.0, 6.0, 10.0, 1.5, 1.5, 1.5]
