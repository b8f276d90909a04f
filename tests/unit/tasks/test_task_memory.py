"""Preparing a table takes a few times its size: rows are kept by column, and never as objects of their own."""

from __future__ import annotations

import random
import tracemalloc
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from regard.data.settings import DataSettings
from regard.storage import arrays
from regard.tasks import task_named

ROWS = 10_000
# Lists of rows and examples took 11, 12, 25 and 18 times the size of the file.
MOST = {"labelled": 7.0, "pairs": 8.0, "tagged": 8.0, "series": 11.0}


def sentences(count: int) -> list[str]:
    chance = random.Random(0)
    words = [f"word{number}" for number in range(300)]
    return [" ".join(chance.choices(words, k=6)) for _ in range(count)]


def write(name: str, path: Path, count: int) -> str:
    lines = sentences(count)
    first = datetime(2001, 1, 1)
    rows = {
        "labelled": lambda: ["text,label", *(f"{line},{'abc'[i % 3]}" for i, line in enumerate(lines))],
        "pairs": lambda: [f"{line[:20]}\t{line[20:]}" for line in lines],
        "tagged": lambda: [
            "\n".join(f"{word}\tNOUN" if "1" in word else f"{word}\tVERB" for word in line.split()) + "\n"
            for line in lines
        ],
        "series": lambda: [
            "time,price,load",
            *(f"{first + timedelta(hours=i)},{i % 97}.5,{i % 7}" for i in range(count)),
        ],
    }
    path.write_text("\n".join(rows[name]()) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", MOST)
def test_the_peak_of_preparing_a_table_is_a_few_times_its_size(name, tmp_path):
    more: dict[str, Any] = {"pairs": {"tokens": "words"}}.get(name, {})
    kind = task_named(name)
    kind.prepare(DataSettings(path=write(name, tmp_path / "small.txt", 400), task=name, **more), 0)
    path = write(name, tmp_path / "large.txt", ROWS)
    tracemalloc.start()
    try:
        kind.prepare(DataSettings(path=path, task=name, **more), 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST[name] * Path(path).stat().st_size


@pytest.mark.parametrize("gaps", ["refuse", "forward"])
def test_a_series_that_lies_in_files_leaves_little_in_memory(gaps, tmp_path, monkeypatch):
    """Of each column that is looked at as a whole a few copies, and of all together none."""
    kind, path = task_named("series"), write("series", tmp_path / "small.csv", 400)
    kind.prepare(DataSettings(path=path, task="series", target="price", gaps=gaps), 0)
    path = write("series", tmp_path / "large.csv", 30_000)
    for name, value in {"IN_MEMORY": 1 << 14, "WAITING": 1 << 14, "SLICE": 1 << 12}.items():
        monkeypatch.setattr(arrays, name, value)
    monkeypatch.setattr("regard.tasks.series_processor.AT_ONCE", 1 << 12)
    tracemalloc.start()
    try:
        found = kind.prepare(DataSettings(path=path, task="series", target="price", gaps=gaps), 0)
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.train.sizes) > 1000
    size = Path(path).stat().st_size
    # Before, 3.9 and 7.0 times the size of the file.
    assert left < 0.2 * size
    assert peak < 5.0 * size
