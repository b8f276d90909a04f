"""What came to a metrics.jsonl since somebody looked last."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest

from regard.errors import CheckpointError
from regard.training import follow as module
from regard.training.follow import BEGINNING, MOST_BYTES, MOST_POINTS, Came, Place, follow


def line(step: int, **more: object) -> str:
    return json.dumps({"step": step, "seconds": step / 10, "tokens": 100 * step, "loss": 1 / (1 + step)} | more) + "\n"


def write(run: Path, text: str, mode: str = "a") -> None:
    run.mkdir(exist_ok=True)
    with (run / "metrics.jsonl").open(mode, encoding="utf-8") as file:
        file.write(text)


def steps(came: Came) -> list[float | None]:
    return [point["step"] for point in came.points]


def test_a_run_that_has_measured_nothing_has_nothing(tmp_path: Path):
    assert follow(tmp_path, BEGINNING) == Came()


def test_every_line_is_told_once_and_a_torn_one_when_it_is_whole(tmp_path: Path):
    run, whole = tmp_path / "run", line(3)
    write(run, line(1) + line(2) + whole[:20])
    first = follow(run, BEGINNING)
    assert steps(first) == [1, 2]
    assert follow(run, first.place).points == []
    write(run, whole[20:] + line(4))
    second = follow(run, first.place)
    assert steps(second) == [3, 4]
    assert not second.is_new
    assert not second.has_more


def test_a_line_for_which_too_few_bytes_are_left_is_told_by_the_next_look(tmp_path: Path):
    run = tmp_path / "run"
    write(run, line(1) + line(2))
    few = follow(run, BEGINNING, 10)
    assert (few.points, few.place.offset, few.has_more) == ([], 0, True)
    assert steps(follow(run, few.place)) == [1, 2]


def test_a_file_that_was_replaced_or_cut_is_read_from_its_beginning(tmp_path: Path):
    run = tmp_path / "run"
    write(run, line(1) + line(2) + line(3))
    place = follow(run, BEGINNING).place
    (tmp_path / "new").write_text(line(7) + line(8) + line(9) + line(10))
    (tmp_path / "new").replace(run / "metrics.jsonl")
    again = follow(run, place)
    assert again.is_new
    assert steps(again) == [7, 8, 9, 10]
    write(run, line(1), "w")
    assert follow(run, again.place).is_new
    for wild in (Place(-5, again.place.mark), Place(1 << 80, again.place.mark), Place(9, "another")):
        assert steps(follow(run, wild)) == [1]


def test_an_evaluation_has_the_tokens_of_the_step_before_it(tmp_path: Path):
    run = tmp_path / "run"
    write(run, line(5) + '{"step": 5, "seconds": 0.6, "valid_loss": 2.0, "valid_perplexity": Infinity}\n')
    _, evaluated = follow(run, BEGINNING).points
    assert (evaluated["tokens"], evaluated["valid_loss"], evaluated["valid_perplexity"]) == (500, 2.0, None)


def test_of_a_million_steps_some_are_told_and_every_evaluation_in_bounded_looks(tmp_path: Path):
    run, count = tmp_path / "run", 1_000_000
    run.mkdir()
    with (run / "metrics.jsonl").open("w") as file:
        for first in range(0, count, 1000):
            file.writelines(
                f'{{"step": {step}, "tokens": {step}, "loss": 1.5}}\n' for step in range(first, first + 1000)
            )
            if first % 100_000 == 0:
                file.write(f'{{"step": {first + 999}, "valid_loss": 1.0}}\n')
    place, points, looks, began = BEGINNING, [], 0, time.process_time()
    while True:
        came = follow(run, place)
        assert came.place.offset - place.offset <= MOST_BYTES
        assert len(came.points) <= 3 * MOST_POINTS + 3
        points += came.points
        place, looks = came.place, looks + 1
        if not came.has_more:
            break
    assert looks == math.ceil((run / "metrics.jsonl").stat().st_size / MOST_BYTES)
    assert [point["step"] for point in points if "valid_loss" in point] == list(range(999, count, 100_000))
    assert (points[0]["step"], points[-1]["step"]) == (0, count - 1)
    assert [point["step"] for point in points] == sorted(point["step"] for point in points)  # pyright: ignore
    assert time.process_time() - began < 10  # 0.3 s where nobody else computes


def test_what_is_no_metrics_file_is_refused_and_a_line_without_end_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = tmp_path / "run"
    write(run, '{"loss": 1}\n')
    with pytest.raises(CheckpointError, match="says of no step"):
        follow(run, BEGINNING)
    write(run, '{"step": 1, "loss": "much"}\n', "w")
    with pytest.raises(CheckpointError, match="loss is no number"):
        follow(run, BEGINNING)
    write(run, "nonsense\n[1]\n" + line(2), "w")
    assert steps(follow(run, BEGINNING)) == [2]
    monkeypatch.setattr(module, "LONGEST_LINE", 500)
    write(run, "x" * 5000 + "\n" + line(3), "w")
    place, found = BEGINNING, []
    for _ in range(20):
        came = follow(run, place, 600)
        place, found = came.place, found + steps(came)
    assert place.offset == (run / "metrics.jsonl").stat().st_size
    assert found == [3]
