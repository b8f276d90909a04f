"""Counts as files: parts of a text, processes of their own, and engines that group by."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from regard.errors import DataError, ResourceError, UsageError
from regard.interop.counts import from_columns, load_counts, save_counts
from regard.ngram.counts import LARGEST_ORDER, NEVER, Counts, count, merge
from regard.storage import disk

PAGE = Path(__file__).parents[3] / "docs" / "counting.md"
V, EOS = 30, 29


def text(n_tokens: int = 2000, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    ids = (generator.random(n_tokens) ** 2 * (V - 1)).astype(np.int64)
    ids[generator.random(n_tokens) < 0.1] = EOS
    ids[-1] = EOS
    return ids


def table(order: int = 3, seed: int = 0) -> Counts:
    return count(text(seed=seed), order, vocab_size=V, eos_id=EOS)


def same(got: Counts, expected: Counts) -> None:
    assert (got.vocab_size, got.eos_id, got.order) == (expected.vocab_size, expected.eos_id, expected.order)
    assert (got.first is None) == (expected.first is None)
    arrays = [(*each.columns, each.counts, *(() if each.first is None else (each.first,))) for each in (got, expected)]
    for mine, other in zip(*arrays, strict=True):
        assert mine.dtype == other.dtype
        assert mine.tobytes() == other.tobytes()


def same_model(got: Any, expected: Any) -> None:
    mine, other = got.state_dict(), expected.state_dict()
    assert mine.keys() == other.keys()
    for name, tensor in other.items():
        assert mine[name].dtype == tensor.dtype
        assert mine[name].equal(tensor), name


def count_part(part: np.ndarray, path: str) -> None:
    """What one of several processes does. It needs no torch."""
    save_counts(count(part, 4, vocab_size=V, eos_id=EOS), path)


def test_four_processes_give_the_model_of_one(tmp_path: Path) -> None:
    from regard.models.ngram import NgramConfig

    ids = text(6000)
    ends = np.flatnonzero(ids == EOS) + 1
    parts = np.split(ids, [int(ends[len(ends) * i // 4]) for i in (1, 2, 3)])
    paths = [str(tmp_path / f"{i}.counts") for i in range(4)]
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=count_part, args=pair) for pair in zip(parts, paths, strict=True)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    merged, at_once = NgramConfig(V, 4).build(), NgramConfig(V, 4).build()
    merged.estimate(merge([load_counts(path) for path in paths]))
    at_once.estimate(at_once.count(ids))
    same_model(merged, at_once)


def test_merging_is_associative(tmp_path: Path) -> None:
    a, b, c = (table(seed=seed) for seed in (0, 1, 2))
    same(merge([merge([a, b]), c]), merge([a, merge([b, c])]))
    same(merge([a, b, c], memory=1, folder=tmp_path), merge([merge([a, b]), c]))


@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize("vocab_size", [V, 70_000])
@pytest.mark.parametrize("known", [True, False])
def test_file_gives_back_the_table(tmp_path: Path, order: int, vocab_size: int, known: bool) -> None:
    counts = count(text(), order, vocab_size=vocab_size, eos_id=EOS)
    if not known:
        counts = Counts(counts.columns, counts.counts, vocab_size, EOS)
    save_counts(counts, tmp_path / "a.counts")
    loaded = load_counts(tmp_path / "a.counts")
    same(loaded, counts)
    assert isinstance(loaded.columns[0], np.memmap)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.counts"]


def test_file_is_safetensors(tmp_path: Path) -> None:
    counts = table()
    save_counts(counts, tmp_path / "a.counts")
    with safe_open(tmp_path / "a.counts", framework="np") as file:
        assert set(file.keys()) == {"counts", "first", "column.0", "column.1", "column.2"}
        assert np.array_equal(file.get_tensor("column.1"), counts.columns[1])
        assert np.array_equal(file.get_tensor("counts"), counts.counts)


def test_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.counts"
    save_counts(table(), path)

    def full(descriptor: int, chunk: memoryview) -> None:
        os.write(descriptor, chunk[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "write", full)
    with pytest.raises(ResourceError, match="No space left on device; free space there or name another file"):
        save_counts(table(seed=1), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.counts"]
    same(load_counts(path), table())


def test_interrupted_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(disk, "sync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_counts(table(), tmp_path / "a.counts")
    assert list(tmp_path.iterdir()) == []


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.counts"
    save_counts(count(np.array([0, 1, 2, 1, 2]), 2, vocab_size=3, eos_id=2), path)
    sound = path.read_bytes()
    for place in range(len(sound)):
        data = bytearray(sound)
        data[place] ^= 1 << place % 8
        path.write_bytes(data)
        with pytest.raises(DataError, match=re.escape(str(path))):
            load_counts(path)


@pytest.mark.parametrize("size", [0, 1, 8, 100, -1])
def test_truncated_and_longer_files_are_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.counts"
    save_counts(table(), path)
    sound = path.read_bytes()
    for data in (sound[:size], sound + b"\0" * 8):
        path.write_bytes(data)
        with pytest.raises(DataError, match=re.escape(str(path))):
            load_counts(path)


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.counts"
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    other = json.dumps({"__metadata__": {"regard": '{"format": "regard-counts-2"}', "sha256": ""}}).encode()
    for data in (
        b"some text that is no table\n" * 9,
        len(header).to_bytes(8, "little") + header + b"\0\0\0\0",
        len(other).to_bytes(8, "little") + other,
        b"\2\0\0\0\0\0\0\0[]",
        b"\1\0\0\0\0\0\0\0[",
    ):
        path.write_bytes(data)
        with pytest.raises(DataError, match="is no table of counts"):
            load_counts(path)
    with pytest.raises(DataError, match=r"cannot read counts from .*: No such file"):
        load_counts(tmp_path / "missing")
    with pytest.raises(ResourceError, match=r"cannot write counts to .*: No such file"):
        save_counts(table(), tmp_path / "missing" / "a.counts")


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("ends", [True, False])
def test_columns_in_any_order_become_the_table(order: int, ends: bool) -> None:
    ids = text() if ends else np.append(text(), [3, 4])
    expected = count(ids, order, vocab_size=V, eos_id=EOS)
    shuffled = np.random.default_rng(0).permutation(len(expected))
    columns = [column[shuffled].astype(np.int64) for column in expected.columns]
    same(from_columns(columns, expected.counts[shuffled], V, EOS, expected.first), expected)
    assert from_columns(columns, expected.counts[shuffled], V, EOS).first is None


def test_text_without_an_end_has_no_end_that_came_up_first() -> None:
    expected = count(np.array([0, 1]), 3, vocab_size=3, eos_id=2)
    same(from_columns(expected.columns, expected.counts, 3, 2, expected.first), expected)


# The rows of the sentences 0 1 and 1 of three tokens, the last the end: c0, c1, c2, n.
ROWS = [(1, 2, 3, 1), (2, 3, 0, 2), (3, 0, 0, 2), (3, 1, 2, 1), (3, 2, 3, 1)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*ROWS, ROWS[0]], "1 of 6 rows come up twice: group by all columns"),
        (ROWS[:2] + ROWS[3:], "not those of whole sentences"),
        (ROWS[:3], "not those of whole sentences"),
        ([(1, 2, 3, 7), *ROWS[1:]], "not those of whole sentences"),
        ([(0, 2, 3, 1), *ROWS[1:]], "row 0 has no first token"),
        ([*ROWS[:1], (2, 3, 1, 2), *ROWS[2:]], "row 1 goes on after the end of its sentence, in column 2"),
        ([*ROWS[:1], (2, 0, 1, 2), *ROWS[2:]], "row 1 goes on after the end of its sentence, in column 2"),
        ([(1, 4, 3, 1), *ROWS[1:]], r"column 1 has 4, which is not in 0 .. 3"),
        ([(-1, 2, 3, 1), *ROWS[1:]], r"column 0 has -1, which is not in 0 .. 3"),
        ([(1, 2, 3, 0), *ROWS[1:]], r"counts has 0, which is not in 1 .. "),
    ],
)
def test_rows_that_are_no_counts_are_refused(rows: list[tuple[int, ...]], message: str) -> None:
    assert len(from_columns(list(np.array(ROWS).T[:3]), np.array(ROWS).T[3], 3, 2)) == len(ROWS)
    *columns, counts = np.array(rows).T
    with pytest.raises(DataError, match=message):
        from_columns(columns, counts, 3, 2)


def test_columns_of_the_wrong_kind_are_refused() -> None:
    *columns, counts = np.array(ROWS).T
    with pytest.raises(DataError, match="column 0 must be one row of whole numbers without gaps, found float64"):
        from_columns([columns[0] + 0.5, *columns[1:]], counts, 3, 2)
    with pytest.raises(DataError, match="column 1 must be one row of whole numbers without gaps"):
        from_columns([columns[0], np.ma.masked_equal(columns[1], 0), columns[2]], counts, 3, 2)
    with pytest.raises(DataError, match="must have as many rows, at least one; found 5, 5, 5, 4"):
        from_columns(columns, counts[:4], 3, 2)
    with pytest.raises(DataError, match="at least one; found 0, 0"):
        from_columns([columns[0][:0]], counts[:0], 3, 2)
    with pytest.raises(UsageError, match=r"eos_id 3 is not in 0 .. 2"):
        from_columns(columns, counts, 3, 3)
    with pytest.raises(UsageError, match=r"order must lie in 1 .. 32, found 33"):
        from_columns([columns[0]] * (LARGEST_ORDER + 1), counts, 3, 2)
    with pytest.raises(DataError, match="first must say of every token"):
        from_columns(columns, counts, 3, 2, np.array([0, NEVER, 2]))


def test_the_page_on_counting_gives_one_model_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    generator = np.random.default_rng(0)
    words = [f"w{int(60 * x**2)}" for x in generator.random(3000)]
    lines = [" ".join(words[i : i + 7]) for i in range(0, 3000, 7)]
    (tmp_path / "my.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(names["ids"]) > 2000
    assert all(
        part.fallback == "" for part in names["at_once"].estimate(names["at_once"].count(names["ids"])).discounts[1:]
    )
    same_model(names["merged"], names["at_once"])
    same_model(names["queried"], names["at_once"])
