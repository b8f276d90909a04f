"""Text in pieces: the same tokens whatever the pieces, and little memory however long it is."""

from __future__ import annotations

import gzip
import io
import itertools
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.core.progress import Progress, watching
from regard.data import decoding
from regard.data.corpus import prepare
from regard.data.shard import make_shard
from regard.data.stream import Cutter, Files
from regard.data.tokenizer import train_tokenizer
from regard.errors import ResourceError
from regard.storage import arrays

BOOK = "\n".join(f"The {number}th day: été — {number * number} hours, 'twas   said.\r\n" for number in range(150))
KINDS = [("bytes", None), ("chars", None), ("words", None), ("bpe", 300), ("unigram", 300)]


@pytest.mark.parametrize(("kind", "size"), KINDS)
@pytest.mark.parametrize("documents", ["file", "line", "blank"])
@pytest.mark.parametrize("valid", ["hash:0.2", "tail:0.2"])
def test_a_text_gives_the_same_corpus_in_small_pieces_and_whole(
    kind: str, size: int | None, documents: str, valid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "book.txt"
    path.write_text(BOOK, encoding="utf-8", newline="")
    chosen: Any = {"tokens": kind, "vocab_size": size, "documents": documents, "valid": valid, "test": 0.5}
    whole = prepare(str(path), **chosen)
    monkeypatch.setattr(decoding, "PIECE", 7)
    monkeypatch.setattr(Cutter.__init__, "__defaults__", (7,))
    monkeypatch.setattr(arrays, "WAITING", 1)
    monkeypatch.setattr(arrays, "IN_MEMORY", 16)
    pieces = prepare(str(path), **chosen)
    assert pieces.hash == whole.hash
    assert pieces.test is not None
    assert whole.test is not None
    assert pieces.test.hash == whole.test.hash


@pytest.mark.parametrize(("kind", "size"), KINDS)
@given(text=st.text(alphabet="ab 'é\n\r\t1_", max_size=60), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_no_tokenizer_sees_where_a_text_was_cut(kind: str, size: int | None, text: str, cuts: list[int]) -> None:
    tokenizer = _tokenizer(kind, size)
    cutter, found = Cutter(1), list[int]()
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for number, (first, stop) in enumerate(itertools.pairwise(bounds), 2):
        found += tokenizer.encode(cutter.add(text[first:stop], number == len(bounds))).tolist()
    assert found == tokenizer.encode(text).tolist()


def _tokenizer(kind: str, size: int | None, made: dict[str, Any] = {}) -> Any:  # noqa: B006  # made once
    if kind not in made:
        made[kind] = train_tokenizer(kind, [BOOK], vocab_size=size)
    return made[kind]


@pytest.mark.parametrize("tokens", ["auto", "bytes"])
def test_preparing_a_text_takes_a_small_part_of_its_size(tokens: str, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    with open(path, "w", encoding="utf-8") as stream:
        for number in range(20):
            stream.write("".join(f"{number} {place % 997} words of a long text\n" for place in range(40_000)))
    size = path.stat().st_size
    arrays.IN_MEMORY, before = size // 20, arrays.IN_MEMORY
    tracemalloc.start()
    try:
        prepare(str(path), tokens=tokens)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        arrays.IN_MEMORY = before
    assert size > 20e6
    # Some pieces of a megabyte, widened to eight bytes a token while they are encoded; read whole it took ten times as
    # much as the file.
    assert peak < 1.5 * size


def test_the_pages_of_a_mapped_array_can_be_given_back_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "IN_MEMORY", 1000)
    monkeypatch.setattr(arrays, "WAITING", 100)
    monkeypatch.setattr(arrays, "SLICE", 512)
    spool = arrays.Spool(np.dtype("<u2"))
    values = np.arange(5000) % 60_000
    for first in range(0, 5000, 333):
        spool.append(values[first : first + 333])
    found = spool.array()
    assert isinstance(found, np.memmap)
    assert np.concatenate([part for (part,) in arrays.slices(found)]).tolist() == values.tolist()
    assert found.tolist() == values.tolist()
    assert arrays.sha256(found).digest() == arrays.sha256(values.astype("<u2")).digest()


def test_a_full_temporary_folder_is_told_with_the_way_out() -> None:
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(ResourceError, match="TMPDIR"):
        arrays.kept(full, b"some")


def test_standard_input_and_compressed_files_are_read_once_and_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "book.txt.gz"
    packed.write_bytes(gzip.compress(BOOK.encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BOOK.encode()), encoding="utf-8"))
    for path in (str(packed), "-"):
        stream = Files(path)
        texts = ["".join(piece.text for piece in stream.pieces("reading")) for _ in range(2)]
        assert texts == [BOOK, BOOK]
        packed.unlink(missing_ok=path == "-")
        if path != "-":
            packed.touch()


def test_preparing_tells_each_of_its_stages_from_the_first_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "book.txt"
    path.write_text(BOOK, encoding="utf-8", newline="")
    monkeypatch.setattr("regard.core.progress.QUIET", 0.0)
    monkeypatch.setattr("regard.core.progress.EVERY", 0.0)
    heard: list[Progress] = []
    with watching(heard.append):
        prepare(str(path))
    assert list(dict.fromkeys(one.part for one in heard)) == ["reading", "learning tokens", "tokenising"]
    assert all(one.total == path.stat().st_size and one.unit == "bytes" for one in heard)
    assert heard[-1].share == 1.0


def test_a_shard_of_no_documents_is_empty() -> None:
    shard = make_shard([], train_tokenizer("bytes", []))
    assert (shard.tokens, shard.n_documents, shard.n_bytes) == (0, 0, 0)
