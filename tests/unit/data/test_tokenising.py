"""Large text: tokenised by any number of processes with the same bytes, left at any moment and gone on with."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import numpy as np
import pytest

from regard.core.workers import Labour
from regard.data import corpus as corpora
from regard.data import shard, source, tokenising
from regard.data.corpus import prepare
from regard.data.stream import Files
from regard.data.tokenizer import TOKENIZERS, train_tokenizer
from regard.data.tokenizer.word import split
from regard.errors import DataError, ResourceError
from regard.storage import disk, growing

SEEDED = random.Random(1)
WORDS = ["the", "cat", "größer", "日本語", "naïve", "x" * 8, "y" * 16, "z" * 17, "w" * 40, "<unk>", "a\tb", "\r", "😀"]
TEXT = "".join(SEEDED.choice(WORDS) + SEEDED.choice([" ", " ", "  ", "\n", "\r\n", " \n"]) for _ in range(20_000))


@pytest.fixture
def book(tmp_path: Path) -> str:
    seeded = random.Random(2)
    lines = (" ".join(f"w{seeded.randrange(900)}" for _ in range(9)) for _ in range(3000))
    (tmp_path / "book.txt").write_text("\n".join(lines), encoding="utf-8")
    return str(tmp_path / "book.txt")


@pytest.fixture
def in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text is large, a batch a few kilobytes, and each is marked."""
    monkeypatch.setattr(corpora, "LARGE", 1)
    monkeypatch.setattr(shard, "BATCH", 10_000)
    monkeypatch.setattr(shard, "PIECE", 10_000)
    monkeypatch.setattr(growing, "EVERY", -1.0)


def bytes_of(cache: Path) -> dict[str, bytes]:
    (folder,) = [entry for entry in cache.iterdir() if not entry.name.startswith(".")]
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_table_of_words_finds_what_the_dictionary_finds():
    tokenizer = train_tokenizer("words", [TEXT])
    known = {word: number for number, word in enumerate(tokenizer.words)}  # pyright: ignore[reportAttributeAccessIssue]
    for text in (TEXT, TEXT.replace("cat", "dog"), TEXT + "\0", " " * 20_000, "ab" * 20_000, TEXT.rstrip() + "\r\n"):
        expected = [known.get(word, 0) for word in split(text)]
        assert tokenizer.encode(text).tolist() == expected


@pytest.mark.parametrize("kind", [name for name in TOKENIZERS if name != "integers"])
def test_many_texts_together_are_encoded_as_each_by_itself(kind: str):
    tokenizer = train_tokenizer(kind, [TEXT], vocab_size=None if kind in ("bytes", "chars", "words") else 300)
    texts = [*TEXT.split("\n")[:500], "", "\n", "unseen ж", TEXT[:40_000]]
    ids, sizes = tokenizer.encode_all(texts)
    each = [tokenizer.encode(text).tolist() for text in texts]
    assert sizes.tolist() == list(map(len, each))
    assert ids.tolist() == [token for one in each for token in one]


@pytest.mark.parametrize("tokens", ["words", "bpe"])
def test_the_shards_do_not_depend_on_the_number_of_processes(
    tokens: str, book: str, tmp_path: Path, in_small_steps: None
):
    found = []
    for workers in (1, 2):
        how = {"labour": Labour(workers), "cache": tmp_path / str(workers), "documents": "line"}
        prepare(book, tokens=tokens, vocab_size=500, **how)  # pyright: ignore[reportArgumentType]
        found.append(bytes_of(tmp_path / str(workers)))
    in_memory = prepare(book, tokens=tokens, vocab_size=500, documents="line", labour=Labour(2))
    assert found[0] == found[1]
    assert found[0]["train.ids"] == np.ascontiguousarray(in_memory.train.ids).tobytes()
    assert not any(name.startswith("test") for name in found[0])


def test_a_pattern_is_prepared_as_the_folder_of_its_files_is(book: str, tmp_path: Path):
    (tmp_path / "more.txt").write_text("and more words\n" * 30, encoding="utf-8")
    found = [prepare(data, cache=tmp_path / "cache", documents="line") for data in (f"{tmp_path}/*.txt", str(tmp_path))]
    assert found[0].hash == found[1].hash


def interrupted(after: int, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> list[int]:
    """Tokenising that fails after some batches; the list grows by one for each batch that was tokenised."""
    done: list[int] = []

    def encoded(tokenizer, batch, measured, genuine=shard.encoded):
        if len(done) == after:
            raise error
        done.append(1)
        return genuine(tokenizer, batch, measured)

    monkeypatch.setattr(tokenising, "encoded", encoded)
    return done


def test_what_was_interrupted_goes_on_where_it_stopped(
    book: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_small_steps: None
):
    prepare(book, tokens="words", cache=tmp_path / "whole", documents="line")
    cache = tmp_path / "cache"
    with monkeypatch.context() as patch:
        interrupted(4, patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt, match="goes on from here"):
            prepare(book, tokens="words", cache=cache, documents="line")
    (begun,) = cache.iterdir()
    assert begun.name.startswith(".begun-")
    with open(begun / "train.ids", "ab") as file:
        file.write(b"what a killed process left")
    with monkeypatch.context() as patch:
        patch.setattr(corpora, "train_tokenizer", None)  # the words are known from before
        done = interrupted(1000, patch, AssertionError())
        prepare(book, tokens="words", cache=cache, documents="line")
    assert len(done) + 4 == -(-len(Path(book).read_text(encoding="utf-8").replace("\n", "")) // 10_000)
    assert bytes_of(cache) == bytes_of(tmp_path / "whole")
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damage", ["train.ids", "begun.log", "tokenizer.json", "valid.starts"])
def test_what_was_begun_and_is_damaged_is_begun_anew(
    damage: str, book: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_small_steps: None
):
    prepare(book, cache=tmp_path / "whole", documents="line")
    cache = tmp_path / "cache"
    with monkeypatch.context() as patch:
        interrupted(5, patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            prepare(book, cache=cache, documents="line")
    (begun,) = cache.iterdir()
    data = bytearray((begun / damage).read_bytes())
    data[len(data) // 2] ^= 0x55
    (begun / damage).write_bytes(data)
    prepare(book, cache=cache, documents="line")
    assert bytes_of(cache) == bytes_of(tmp_path / "whole")


def test_a_full_disk_is_one_line_and_what_was_done_is_kept(
    book: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_small_steps: None
):
    prepare(book, cache=tmp_path / "whole", documents="line")
    left = [9]

    def write(descriptor, chunk, genuine=disk.write):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        genuine(descriptor, chunk)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", write)
        with pytest.raises(ResourceError, match="No space left on device; free space"):
            prepare(book, cache=tmp_path / "cache", documents="line")
    prepare(book, cache=tmp_path / "cache", documents="line")
    assert bytes_of(tmp_path / "cache") == bytes_of(tmp_path / "whole")


def test_whoever_waits_for_another_process_finds_what_it_made(tmp_path: Path):
    folder = tmp_path / "made"
    with growing.begun_folder(folder) as first:
        assert first is not None
        descriptor = disk.try_lock(tmp_path / ".begun-made.lock")
        assert descriptor is None

        def other_process_ends() -> None:
            folder.mkdir(exist_ok=True)

        with growing.begun_folder(folder, other_process_ends) as second:
            assert second is None


def test_words_are_learnt_from_a_sample_spread_over_the_text_and_its_size_is_said(tmp_path: Path):
    names = [f"{chapter}-{word}" for chapter in range(400) for word in range(800)]
    (tmp_path / "book.txt").write_text(" ".join(names), encoding="utf-8")
    few = prepare(str(tmp_path / "book.txt"), tokens="words", sample=400_000, documents="file")
    assert few.account is not None
    assert any("400,000 characters that taught the tokens" in line for line in few.account.lines())
    chapters = {int(word.partition("-")[0]) for word in few.tokenizer.words[2:]}  # pyright: ignore[reportAttributeAccessIssue]
    assert min(chapters) < 100 < 300 < max(chapters)
    every = prepare(str(tmp_path / "book.txt"), tokens="words")
    assert every.tokenizer.vocab_size > few.tokenizer.vocab_size
    assert every.account is not None
    assert "taught" not in " ".join(every.account.lines())


def test_very_large_text_is_kept_where_nobody_names_a_folder_and_that_is_said(
    book: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(corpora, "VERY_LARGE", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    found = prepare(book)
    assert isinstance(found.train.ids, np.memmap)
    assert any(str(tmp_path / "home") in note and "data.cache" in note for note in found.notes)
    assert prepare(book, cache="none").notes == ()


def test_files_that_change_or_vanish_while_they_are_read_are_named(tmp_path: Path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("some words\n", encoding="utf-8")
    stream = Files(str(tmp_path))
    list(stream.pieces("reading"))
    (tmp_path / "b.txt").write_text("other word\n", encoding="utf-8")
    os.utime(tmp_path / "b.txt", ns=(1, 1))
    with pytest.raises(DataError, match=r"b\.txt changed while it was read"):
        list(stream.pieces("tokenising"))
    stream = Files(str(tmp_path))
    list(stream.pieces("reading"))
    (tmp_path / "a.txt").unlink()
    with pytest.raises(DataError, match=r"a\.txt changed while it was read"):
        list(stream.pieces("tokenising"))


def test_a_pattern_without_a_file_an_empty_file_and_another_encoding_are_one_line_each(tmp_path: Path):
    with pytest.raises(DataError, match="no file matches"):
        prepare(str(tmp_path / "*.txt"))
    (tmp_path / "a.txt").write_text("some words and more of them\n" * 50, encoding="utf-8")
    (tmp_path / "b.txt").touch()
    with pytest.raises(DataError, match=r"b\.txt is empty"):
        prepare(str(tmp_path / "*.txt"))
    (tmp_path / "b.txt").write_bytes("größer\n".encode("latin-1") * 50)
    with pytest.raises(DataError, match=r"b\.txt is not UTF-8.*data\.encoding"):
        prepare(str(tmp_path / "*.txt"), labour=Labour(2))
    assert source.n_bytes(str(tmp_path / "*.txt")) == sum(file.stat().st_size for file in tmp_path.iterdir())
