"""Counting: equal to a Counter, in memory or on disk, at once or in parts, and clean when it fails."""

from __future__ import annotations

import errno
import io
import itertools
import resource
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import DataError, ResourceError, UsageError
from regard.models.ngram import NgramConfig
from regard.ngram import counts as counting
from regard.ngram import spill
from regard.ngram.counts import LARGEST_ORDER, NEVER, ROW_BYTES, WORKERS, Counts, count, merge
from regard.storage.temporary import temporary_folder

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
TINY = 1  # bytes of memory: every block has the fewest tokens there can be, 1,024


def sentences(ids: list[int], eos: int) -> Iterator[list[int]]:
    """Sentences as tuples are counted over them: the beginning first, the end last; the last may have none."""
    sentence = [eos]
    for token in ids:
        sentence.append(token)
        if token == eos:
            yield sentence
            sentence = [eos]
    if len(sentence) > 1:
        yield sentence


def rows_of(ids: list[int], order: int, eos: int) -> Counter[tuple[int, ...]]:
    return Counter(
        tuple(sentence[i : i + order])
        for sentence in sentences(ids, eos)
        for i in range(0 if order > 1 else 1, len(sentence))
    )


def rows_in(table: Counts) -> Counter[tuple[int, ...]]:
    """The rows of a table as tuples of tokens. That none comes twice is part of the claim."""
    rows = [tuple(int(code) - 1 for code in row if code) for row in zip(*table.columns, strict=True)]
    assert len(set(rows)) == len(rows)
    codes = list(zip(*(column.tolist() for column in table.columns), strict=True))
    assert codes == sorted(codes)
    return Counter(dict(zip(rows, table.counts.tolist(), strict=True)))


def same(got: Counts, expected: Counts) -> None:
    """The same table to the last byte."""
    assert (got.vocab_size, got.eos_id, got.order) == (expected.vocab_size, expected.eos_id, expected.order)
    pairs = [
        *zip(got.columns, expected.columns, strict=True),
        (got.counts, expected.counts),
        (got.first, expected.first),
    ]
    for mine, other in pairs:
        assert mine is not None
        assert other is not None
        assert mine.dtype == other.dtype
        assert mine.tobytes() == other.tobytes()


def text(n_tokens: int, vocab_size: int = 50, seed: int = 0) -> np.ndarray:
    """Random sentences of about ten tokens, a few words far more frequent than the rest."""
    generator = np.random.default_rng(seed)
    words = (generator.random(n_tokens) ** 3 * (vocab_size - 1)).astype(np.int64)
    ids = np.where(generator.random(n_tokens) < 0.1, vocab_size - 1, words)
    ids[-1] = vocab_size - 1
    return ids


def memory_for(block: int, order: int) -> int:
    """Memory in which a block of a small vocabulary has so many tokens."""
    return block * WORKERS * (ROW_BYTES + 3 * order * 2)


@QUICK
@given(st.data(), st.integers(1, 6), st.integers(1, 5))
def test_counts_equal_a_counter(data: st.DataObject, order: int, vocab_size: int) -> None:
    eos = data.draw(st.integers(0, vocab_size - 1))
    ids = data.draw(st.lists(st.integers(0, vocab_size - 1), min_size=1, max_size=30))
    table = count(np.array(ids), order, vocab_size=vocab_size, eos_id=eos)
    assert rows_in(table) == rows_of(ids, order, eos)
    assert table.tokens == len(ids)
    assert table.first is not None
    assert table.first.tolist() == [ids.index(token) if token in ids else NEVER for token in range(vocab_size)]


def test_one_thread_alone_tells_how_much_is_counted_and_it_only_rises():
    heard: list[tuple[int, float]] = []
    ids = np.arange(20_000, dtype=np.uint16) % 50
    count(ids, 2, vocab_size=50, eos_id=0, memory=1, tell=lambda share: heard.append((threading.get_ident(), share)))
    assert len(heard) > 5
    assert {thread for thread, _ in heard} == {threading.get_ident()}
    shares = [share for _, share in heard]
    assert shares == sorted(shares)


def test_an_n_gram_counts_as_often_as_the_rows_that_begin_with_it() -> None:
    ids = text(400, 5).tolist()
    rows = rows_in(count(np.array(ids), 4, vocab_size=5, eos_id=4))
    for n in (2, 3, 4):
        expected = Counter(
            tuple(sentence[i : i + n]) for sentence in sentences(ids, 4) for i in range(len(sentence) - n + 1)
        )
        found: Counter[tuple[int, ...]] = Counter()
        for row, times in rows.items():
            if len(row) >= n:
                found[row[:n]] += times
        assert found == expected


def test_nothing_is_counted_across_the_end_of_a_sentence() -> None:
    table = count(np.array([0, 1, 2, 1, 2]), 3, vocab_size=3, eos_id=2)
    assert rows_in(table) == {(2, 0, 1): 1, (2, 1, 2): 1, (0, 1, 2): 1, (1, 2): 2, (2,): 2}


@pytest.mark.parametrize("kind", [np.uint16, np.int32, np.uint32, np.int64])
def test_number_type_of_the_text_does_not_matter(kind: type[np.integer]) -> None:
    ids = text(300)
    same(count(ids.astype(kind), 3, vocab_size=50, eos_id=49), count(ids, 3, vocab_size=50, eos_id=49))


@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize("n_tokens", [1025, 2048, 2049, 5000])
def test_spilled_equals_in_memory(tmp_path: Path, order: int, n_tokens: int) -> None:
    ids = text(n_tokens)
    options: dict[str, Any] = {"vocab_size": 50, "eos_id": 49}
    same(count(ids, order, memory=TINY, folder=tmp_path, **options), count(ids, order, **options))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("block", [1024, 1025, 1700, 2499, 4998, 4999])
@pytest.mark.parametrize("order", [2, 4])
def test_size_of_blocks_does_not_matter(tmp_path: Path, block: int, order: int) -> None:
    ids = text(5000)
    options: dict[str, Any] = {"vocab_size": 50, "eos_id": 49}
    blocks = count(ids, order, memory=memory_for(block, order), folder=tmp_path, **options)
    same(blocks, count(ids, order, **options))


@pytest.mark.parametrize("end", range(1020, 1030))
def test_sentences_that_end_at_the_edge_of_a_block(tmp_path: Path, end: int) -> None:
    ids = text(2060, 7)
    ids[1015:1035] = 3
    ids[end] = 6
    options: dict[str, Any] = {"vocab_size": 7, "eos_id": 6}
    same(count(ids, 4, memory=TINY, folder=tmp_path, **options), count(ids, 4, **options))


def test_text_that_ends_within_a_sentence(tmp_path: Path) -> None:
    ids = text(3000)
    ids[-1] = 2
    options: dict[str, Any] = {"vocab_size": 50, "eos_id": 49}
    table = count(ids, 3, **options)
    assert rows_in(table) == rows_of(ids.tolist(), 3, 49)
    same(count(ids, 3, memory=TINY, folder=tmp_path, **options), table)


def test_many_runs_need_few_open_files(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    ids = text(40_000)
    in_use = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 40, limits[1]))
    try:
        spilled = count(ids, 5, vocab_size=50, eos_id=49, memory=TINY, folder=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    same(spilled, count(ids, 5, vocab_size=50, eos_id=49))


def test_pieces_are_not_merged_long_before_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [count(text(40_000, 2000, seed), 4, vocab_size=2000, eos_id=1999) for seed in (0, 1)]
    genuine, write, begun, written = counting.merged_rows, counting.joined, iter(range(1000)), iter(range(1000))

    def merged(*arguments: Any) -> Counts:
        nonlocal most
        most = next(begun) + 1
        return genuine(*arguments)

    def gathered(pieces: Iterator[Counts], *rest: Any) -> Counts:
        def watched() -> Iterator[Counts]:
            for piece in pieces:
                assert most <= next(written) + 1 + WORKERS
                yield piece

        return write(watched(), *rest)

    most = 0
    monkeypatch.setattr(counting, "merged_rows", merged)
    monkeypatch.setattr(counting, "joined", gathered)
    merge(parts, memory=TINY, folder=tmp_path)
    assert most > 20


@pytest.mark.parametrize("memory", [TINY, 1 << 30])
@pytest.mark.parametrize("order", [1, 3])
def test_counts_of_parts_merge_to_the_counts_of_the_whole(tmp_path: Path, memory: int, order: int) -> None:
    ids = text(9000)
    ends = np.flatnonzero(ids == 49) + 1
    parts = np.split(ids, [int(ends[i]) for i in (0, 1, 200, 500)])
    options: dict[str, Any] = {"vocab_size": 50, "eos_id": 49}
    merged = merge([count(part, order, **options) for part in parts], memory=memory, folder=tmp_path)
    same(merged, count(ids, order, **options))
    assert list(tmp_path.iterdir()) == []


def test_fitting_on_more_text_equals_fitting_at_once() -> None:
    ids = text(4000, 30)
    model = NgramConfig(30, order=4).build()
    known: list[Counts] = []
    for part in np.split(ids, (np.flatnonzero(ids == 29) + 1)[[50, 120, 121]]):
        known = [merge([*known, model.count(part)])]
        model.estimate(known[0])
    at_once = NgramConfig(30, order=4).build()
    at_once.estimate(at_once.count(ids))
    incremental, expected = model.state_dict(), at_once.state_dict()
    assert incremental.keys() == expected.keys()
    for name, tensor in expected.items():
        assert incremental[name].dtype == tensor.dtype
        assert incremental[name].equal(tensor), name


@pytest.mark.parametrize("vocab_size", [65_535, 65_536, 70_000])
def test_vocabularies_at_the_edge_of_sixteen_bits(tmp_path: Path, vocab_size: int) -> None:
    generator = np.random.default_rng(0)
    ids = generator.choice([0, 1, 65_533, 65_534, vocab_size - 2, vocab_size - 1], size=2500)
    options: dict[str, Any] = {"vocab_size": vocab_size, "eos_id": vocab_size - 1}
    table = count(ids, 3, **options)
    assert table.columns[0].dtype == (np.uint16 if vocab_size == 65_535 else np.uint32)
    assert rows_in(table) == rows_of(ids.tolist(), 3, vocab_size - 1)
    same(count(ids, 3, memory=TINY, folder=tmp_path, **options), table)


@pytest.mark.parametrize("vocab_size", [10, 70_000])
@pytest.mark.parametrize("off", [0, 1, 65_536, 1 << 32, -70_001])
@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("memory", [TINY, 1 << 30])
def test_tokens_out_of_range_are_refused_by_their_id(
    tmp_path: Path, vocab_size: int, off: int, order: int, memory: int
) -> None:
    ids = np.zeros(2000, np.int64)
    ids[1500] = vocab_size + off
    message = f"token id {vocab_size + off} is not in 0 .. {vocab_size - 1}: another tokenizer made it"
    with pytest.raises(DataError, match=message):
        count(ids, order, vocab_size=vocab_size, eos_id=1, memory=memory, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("order", [-1, 0, LARGEST_ORDER + 1, 1 << 40])
def test_orders_out_of_range_are_refused(order: int) -> None:
    for call in (lambda: count(np.array([0, 1]), order, vocab_size=2, eos_id=1), lambda: NgramConfig(2, order=order)):
        with pytest.raises(UsageError, match=f"order must lie in 1 .. 32, found {order}"):
            call()


def test_empty_text_is_refused() -> None:
    with pytest.raises(DataError, match="there is no text to count"):
        count(np.array([], np.int64), 3, vocab_size=2, eos_id=1)


def test_text_shorter_than_the_order() -> None:
    table = count(np.array([0, 1]), LARGEST_ORDER, vocab_size=2, eos_id=1)
    assert rows_in(table) == {(1, 0, 1): 1, (0, 1): 1, (1,): 1}


def test_counts_of_other_orders_or_vocabularies_are_not_merged() -> None:
    ids = np.array([0, 1, 2])
    table = count(ids, 3, vocab_size=3, eos_id=2)
    for other in (
        count(ids, 2, vocab_size=3, eos_id=2),
        count(ids, 3, vocab_size=4, eos_id=2),
        count(ids, 3, vocab_size=3, eos_id=0),
    ):
        with pytest.raises(UsageError, match="cannot be merged"):
            merge([table, other])


class Full(io.RawIOBase):
    """A file on a disk that is full after so many bytes."""

    def __init__(self, name: str, room: int) -> None:
        super().__init__()
        self.file, self.room = open(name, "wb"), room  # noqa: SIM115

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.room -= memoryview(data).nbytes
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(data)

    def close(self) -> None:
        self.file.close()
        super().close()


@pytest.mark.parametrize("room", [0, 5000])
def test_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    monkeypatch.setattr(spill, "open", lambda name, mode: Full(name, room), raising=False)
    with pytest.raises(ResourceError) as caught:
        count(text(9000), 3, vocab_size=50, eos_id=49, memory=TINY, folder=tmp_path)
    assert "No space left on device" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "--spill" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_disk_that_is_full_when_runs_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [count(text(9000, seed=seed), 3, vocab_size=50, eos_id=49) for seed in (0, 1)]
    monkeypatch.setattr(spill, "open", lambda name, mode: Full(name, 100), raising=False)
    with pytest.raises(ResourceError, match="No space left on device"):
        merge(parts, memory=TINY, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_read_only_folder_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(path: str, *_: Any) -> None:
        raise OSError(code, "Read-only file system", path)

    monkeypatch.setattr("os.mkdir", refuse)
    with pytest.raises(ResourceError, match=f"in {tmp_path}: Read-only file system; name another with --spill"):
        count(text(3000), 3, vocab_size=50, eos_id=49, memory=TINY, folder=tmp_path)


def test_folder_that_is_not_there_or_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder, reason in ((tmp_path / "missing", "No such file"), (tmp_path / "file", "Not a directory")):
        with pytest.raises(ResourceError, match=reason):
            count(text(3000), 3, vocab_size=50, eos_id=49, memory=TINY, folder=folder)


@pytest.mark.parametrize(
    ("stage", "after"), [*itertools.product(("grouped", "merged_rows"), (0, 3, 9)), ("first_of", 0)]
)
def test_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, after: int) -> None:
    genuine, calls = getattr(counting, stage), iter(range(1000))

    def interrupted(*arguments: Any) -> Any:
        if next(calls) == after:
            raise KeyboardInterrupt
        return genuine(*arguments)

    monkeypatch.setattr(counting, stage, interrupted)
    with pytest.raises(KeyboardInterrupt):
        count(text(20_000), 3, vocab_size=50, eos_id=49, memory=TINY, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("memory", [1 << 30, 1 << 16], ids=["in memory", "spilled"])
def test_the_folder_of_a_killed_count_is_removed_at_the_next_start(tmp_path, memory):
    dead = tmp_path / f"{spill.PREFIX}1-0123abcd"
    dead.mkdir()
    (dead / "run-0-0").write_bytes(b"half")
    with temporary_folder(tmp_path, spill.PREFIX) as alive:
        ids = np.arange(20_000) % 7
        count(ids, 3, vocab_size=8, eos_id=7, memory=memory, folder=tmp_path)
        assert list(tmp_path.iterdir()) == [alive]
