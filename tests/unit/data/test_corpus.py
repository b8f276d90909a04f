"""From text to shards: the split, the tokens, and prepared folders that are whole or refused."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from regard.data import store
from regard.data.corpus import Corpus, prepare
from regard.data.shard import make_shard
from regard.data.tokenizer import train_tokenizer
from regard.errors import DataError, ResourceError, UsageError
from regard.storage import manifest
from regard.storage.manifest import FileRecord, Manifest
from regard.storage.temporary import temporary_folder

DATA = Path(__file__).parents[4] / "shared" / "data"
SOURCE = Path(__file__).parents[3] / "src"
LINES = [f"line {i} tells of {i * i} things" for i in range(1000)]


@pytest.fixture
def book(tmp_path) -> str:
    path = tmp_path / "book.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return str(path)


def texts(corpus: Corpus, part: str) -> list[str]:
    shard = getattr(corpus, part)
    return [corpus.tokenizer.decode(shard.document(i)) for i in range(shard.n_documents)]


def test_a_shard_lays_documents_end_to_end():
    tokens = train_tokenizer("bytes", [])
    shard = make_shard(["ab", "", "é"], tokens)
    assert shard.ids.tolist() == [97, 98, 256, 256, 195, 169, 256]
    assert shard.starts.tolist() == [0, 3, 4]
    assert shard.sizes.tolist() == [3, 1, 3]
    assert [shard.document(i).tolist() for i in range(3)] == [[97, 98], [], [195, 169]]
    assert (shard.tokens, shard.n_documents, shard.n_bytes, shard.n_chars) == (7, 3, 4, 3)
    assert shard.ids.dtype == np.uint16


def test_ids_take_four_bytes_only_when_they_must():
    for largest, dtype in ((65_533, np.uint16), (65_534, np.uint16), (65_535, np.uint32)):
        tokens = train_tokenizer("integers", [f"0 {largest}"])
        shard = make_shard([f"{largest}"], tokens)
        assert shard.ids.dtype == dtype
        assert shard.ids.tolist() == [largest, largest + 1]


def test_the_hash_of_a_shard_sees_everything():
    tokens = train_tokenizer("bytes", [])
    variants = [["ab", "c"], ["a", "bc"], ["ab", "d"], ["abc"]]
    assert len({make_shard(variant, tokens).hash for variant in variants}) == 4
    assert make_shard(["ab", "c"], tokens).hash == make_shard(["ab", "c"], tokens).hash


def test_one_text_is_split_in_blocks_that_together_are_the_text(book):
    corpus = prepare(book)
    train, valid = texts(corpus, "train"), texts(corpus, "valid")
    whole = Path(book).read_text(encoding="utf-8")
    assert sorted("".join(train + valid).split("\n")) == sorted(whole.split("\n"))
    assert all(part in whole and part.endswith("\n") for part in train + valid)
    assert 0 < corpus.valid.n_chars < 0.3 * len(whole)
    assert corpus.train.n_chars + corpus.valid.n_chars == len(whole)
    assert corpus.overlap == 0
    assert corpus.samples == "windows"
    assert corpus.name == "book.txt"


def test_the_tail_of_one_text_is_cut_at_the_character(book):
    text = Path(book).read_text(encoding="utf-8")
    corpus = prepare(book, valid="tail:0.1")
    assert texts(corpus, "train") == [text[: int(len(text) * 0.9)]]
    assert texts(corpus, "valid") == [text[int(len(text) * 0.9) :]]


def test_validation_text_of_its_own_and_its_overlap(book, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text(LINES[3] + "\nsomething new\n", encoding="utf-8")
    corpus = prepare(book, valid=str(other), documents="line", tokens="bytes")
    assert corpus.train.n_documents == 1000
    assert texts(corpus, "valid") == [LINES[3], "something new"]
    assert corpus.overlap == 1
    assert corpus.samples == "documents"


def test_the_tokenizer_sees_the_training_part_only(tmp_path):
    train, valid = tmp_path / "train.txt", tmp_path / "valid.txt"
    train.write_text("abc abc", encoding="utf-8")
    valid.write_text("abcé", encoding="utf-8")
    corpus = prepare(str(train), valid=str(valid))
    assert corpus.tokenizer.to_dict()["characters"] == " abc"
    assert texts(corpus, "valid") == ["abc\ufffd"]
    assert (corpus.valid.n_chars, corpus.valid.n_bytes) == (4, 5)
    words = prepare(str(train), valid=str(valid), tokens="words")
    assert texts(words, "valid") == ["<unk>"]


def test_tokens_are_characters_unless_there_are_too_many(tmp_path):
    few, many = tmp_path / "few.txt", tmp_path / "many.txt"
    few.write_text("".join(map(chr, range(0x4E00, 0x4E00 + 256))) * 4, encoding="utf-8")
    many.write_text("".join(map(chr, range(0x4E00, 0x4E00 + 257))) * 4, encoding="utf-8")
    assert prepare(str(few), valid=str(few)).tokenizer.kind == "chars"
    assert prepare(str(many), valid=str(many)).tokenizer.kind == "bytes"


@pytest.mark.parametrize(("tokens", "size"), [("words", 50), ("bpe", 300), ("unigram", 300), ("chars", 12)])
def test_kinds_and_sizes_are_taken_as_asked(book, tokens, size):
    corpus = prepare(book, tokens=tokens, vocab_size=size)
    assert corpus.tokenizer.kind == tokens
    assert corpus.tokenizer.vocab_size <= size
    assert prepare(book, tokens=tokens, vocab_size=size).hash == corpus.hash
    assert prepare(book, tokens=tokens, vocab_size=size - 2).hash != corpus.hash


def test_a_given_tokenizer_is_used(book):
    given_one = train_tokenizer("bytes", [])
    assert prepare(book, tokenizer=given_one).tokenizer is given_one
    with pytest.raises(UsageError, match="does not fit"):
        prepare(book, tokenizer=given_one, tokens="words")


def test_worlds_are_corpora_of_documents():
    corpus = prepare("world:stories?train=30&valid=10&seed=5")
    assert corpus.world is not None
    assert texts(corpus, "train") == corpus.world.documents("train", 30, seed=5)
    assert texts(corpus, "valid") == corpus.world.documents("valid", 10, seed=5)
    # <unk> and <eos> beside the words, all of them although thirty stories miss some.
    assert corpus.tokenizer.vocab_size == len(corpus.world.vocabulary) + 2
    assert (corpus.name, corpus.samples) == ("world:stories", "documents")
    letters = prepare("world:ab?length=4&train=100&valid=20")
    assert letters.tokenizer.kind == "chars"
    assert letters.overlap > 0
    assert prepare("world:ab?train=9", seed=1).hash != prepare("world:ab?train=9", seed=2).hash
    assert prepare("world:stories?train=30&valid=10", tokens="chars").tokenizer.kind == "chars"


@pytest.mark.parametrize(
    ("text", "keywords", "words"),
    [
        ("short", {}, "smallest amount is 200"),
        ("a" * 5000, {}, "no two different"),
        ("a\na\na\n", {"documents": "line"}, "no two different"),
        ("a", {"valid": "tail:0.1"}, "give at least 11"),
        ("1 2 3 4 " * 50, {"tokens": "integers", "vocab_size": 5, "valid": "tail:0.1"}, "outside 0 .. 3"),
        (" \n" * 500, {"tokens": "words", "valid": "tail:0.01"}, None),
    ],
)
def test_too_little_text_says_the_smallest_amount(text, keywords, words, tmp_path):
    path = tmp_path / "small.txt"
    path.write_text(text, encoding="utf-8")
    if words is None:
        assert prepare(str(path), **keywords).valid.tokens > 1
        return
    with pytest.raises(DataError) as caught:
        prepare(str(path), **keywords)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_small_text_is_enough(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text("0123456789" * 5 + "abcdefghij" * 15, encoding="utf-8")
    corpus = prepare(str(path))
    assert corpus.train.n_chars + corpus.valid.n_chars == 200
    assert min(corpus.train.n_chars, corpus.valid.n_chars) >= 50


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"tokens": "wrods"}, "did you mean 'words'"),
        ({"documents": "lines"}, "did you mean 'line'"),
        ({"valid": "hash:2"}, "between 0 and 1"),
        ({"valid": "tail:x"}, "between 0 and 1"),
        ({"vocab_size": 100}, "needs tokens"),
        ({"data": "world:stories", "valid": "tail:0.1"}, "makes its own validation part"),
        ({"data": "world:stories", "documents": "line"}, "makes its own validation part"),
        ({"data": "-", "cache": Path("unused")}, "save it to a file"),
    ],
)
def test_choices_that_cannot_be_are_refused_before_reading(keywords, words):
    with pytest.raises(UsageError) as caught:
        prepare(**({"data": "no-such-file.txt"} | keywords))
    assert words in str(caught.value)


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"


def folder_of(cache: Path) -> Path:
    (folder,) = [entry for entry in cache.iterdir() if not entry.name.startswith(".")]
    return folder


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_prepared_shards_are_mapped_and_equal_those_in_memory(book, cache):
    plain = prepare(book, tokens="words")
    first = prepare(book, tokens="words", cache=cache)
    again = prepare(book, tokens="words", cache=cache)
    for corpus in (first, again):
        assert corpus.hash == plain.hash
        assert (corpus.name, corpus.samples, corpus.overlap) == (plain.name, plain.samples, plain.overlap)
        assert np.array_equal(corpus.train.ids, plain.train.ids)
        assert isinstance(corpus.train.ids, np.memmap)
        assert not corpus.train.ids.flags.writeable
        assert (corpus.valid.n_bytes, corpus.valid.n_chars) == (plain.valid.n_bytes, plain.valid.n_chars)
        assert np.array_equal(corpus.valid.unknown, plain.valid.unknown)
    stored = json.loads((folder_of(cache) / "store.json").read_bytes())
    assert stored["facts"]["tokenizer_hash"] == plain.tokenizer.hash
    assert set(manifest.read(folder_of(cache)).files) == {
        "store.json",
        "tokenizer.json",
        "train.ids",
        "train.starts",
        "valid.ids",
        "valid.starts",
        "valid.unknown",
    }


def test_the_same_inputs_give_the_same_bytes(book, tmp_path):
    for tokens in ("chars", "unigram"):
        for place in ("one", "two"):
            prepare(book, tokens=tokens, cache=tmp_path / tokens / place)
        assert bytes_of(folder_of(tmp_path / tokens / "one")) == bytes_of(folder_of(tmp_path / tokens / "two"))


def test_other_inputs_give_another_folder(book, cache):
    prepare(book, cache=cache)
    for keywords in ({"tokens": "words"}, {"valid": "tail:0.1"}, {"documents": "line"}, {"valid": book}):
        prepare(book, cache=cache, **keywords)
    with open(book, "a", encoding="utf-8") as stream:
        stream.write("one more line\n")
    prepare(book, cache=cache)
    prepare("world:ab?train=5&valid=5", cache=cache)
    corpus = prepare("world:ab?train=5&valid=5", cache=cache)
    assert corpus.world is not None
    assert len(list(cache.iterdir())) == 7


@pytest.mark.parametrize(
    "name", ["manifest.json", "store.json", "tokenizer.json", "train.ids", "train.starts", "valid.ids", "valid.starts"]
)
def test_a_damaged_prepared_folder_is_refused_by_name(name, book, cache):
    prepare(book, cache=cache)
    path = folder_of(cache) / name
    good = path.read_bytes()
    middle = len(good) // 2
    flipped = [
        good[:i] + bytes([good[i] ^ bit]) + good[i + 1 :] for i, bit in ((0, 1), (middle, 16), (len(good) - 2, 64))
    ]
    for bad in (*flipped, good[:-1], good[:middle], good + b"\0" * 8, b""):
        path.write_bytes(bad)
        with pytest.raises(DataError, match=name) as caught:
            prepare(book, cache=cache)
        assert "delete the folder" in str(caught.value)
        assert "\n" not in str(caught.value)
    path.unlink()
    with pytest.raises(DataError, match=name):
        prepare(book, cache=cache)
    outside = cache.parent / "outside"
    outside.write_bytes(good)
    if name != "manifest.json":
        path.symlink_to(outside)
        with pytest.raises(DataError, match=name):
            prepare(book, cache=cache)
        path.unlink()
    path.write_bytes(good)
    assert prepare(book, cache=cache).train.tokens > 0


def test_an_extra_file_is_refused_by_name(book, cache):
    prepare(book, cache=cache)
    (folder_of(cache) / "train.ids.copy").write_bytes(b"x")
    with pytest.raises(DataError, match=r"train\.ids\.copy does not belong"):
        prepare(book, cache=cache)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/b"])
def test_a_manifest_that_points_outside_is_refused(name, tmp_path):
    store.publish(tmp_path / "s", store.Store({}, {}, {"good": "text"}))
    path = tmp_path / "s" / "manifest.json"
    files = manifest.read(tmp_path / "s").files
    path.write_bytes(Manifest({name: files["good"]}).to_bytes())
    with pytest.raises(DataError, match="names the file"):
        store.open_store(tmp_path / "s")


def put(folder: Path, name: str, data: bytes) -> None:
    """Other bytes for a file of a store, and a manifest that agrees with them."""
    (folder / name).write_bytes(data)
    files = {**manifest.read(folder).files, name: FileRecord(len(data), hashlib.sha256(data).hexdigest())}
    (folder / "manifest.json").write_bytes(Manifest(files).to_bytes())


@pytest.mark.parametrize(
    ("name", "bytes_", "told"),
    [
        ("store.json", b'{"facts": {}, "dtypes": {"a": "|O"}}', "not the facts and number types"),
        ("store.json", b'{"facts": [], "dtypes": {}}', "not the facts and number types"),
        ("store.json", b"[1]", "not the facts and number types"),
        ("store.json", b'{"facts": {}, "dtypes": {"b": "<u2"}}', "b: is missing"),
        ("a", b"123", "3 bytes are no whole count of numbers"),
        ("t", b"\xff", "not UTF-8"),
    ],
)
def test_a_store_with_a_right_manifest_and_wrong_content_is_refused(name, bytes_, told, tmp_path):
    folder = tmp_path / "s"
    store.publish(folder, store.Store({}, {"a": np.arange(3, dtype="<u2")}, {"t": "text"}))
    put(folder, name, bytes_)
    with pytest.raises(DataError, match=told):
        store.open_store(folder)


def test_every_failing_call_leaves_nothing_behind(book, cache, monkeypatch):
    """Each fsync and the rename fail in turn: the folder is absent or whole, and no temporary one is left."""
    expected = prepare(book).hash
    failed = 0
    for call in ("fsync", "rename"):
        real = getattr(os, call)
        for n in range(20):
            left = [n]

            def failing(*arguments, real=real, left=left):
                if left[0] == 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
                left[0] -= 1
                return real(*arguments)

            monkeypatch.setattr(os, call, failing)
            try:
                prepare(book, cache=cache)
            except ResourceError as error:
                failed += 1
                assert "No space left on device" in str(error)  # noqa: PT017
                assert not list(cache.iterdir())
            monkeypatch.setattr(os, call, real)
            if cache.exists() and list(cache.iterdir()):
                assert prepare(book, cache=cache).hash == expected
                for file in folder_of(cache).iterdir():
                    file.unlink()
                folder_of(cache).rmdir()
    # Seven files, the folder; then the rename. A failing sync of the parent comes after the folder is in its place.
    assert failed == 9


@pytest.mark.parametrize("at", [1, 4, 8, 9])
def test_a_kill_while_preparing_leaves_the_folder_absent_or_whole(at, book, cache):
    code = f"""
import os, signal
calls = 0
real = os.fsync
def fsync(descriptor):
    global calls
    calls += 1
    if calls == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    real(descriptor)
os.fsync = fsync
from regard.data.corpus import prepare
from pathlib import Path
prepare({book!r}, cache=Path({str(cache)!r}))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(SOURCE)}, check=False, timeout=120
    )
    assert result.returncode == -signal.SIGKILL
    names = [entry.name for entry in cache.iterdir()]
    assert len(names) == 1
    assert names[0].startswith(".preparing-") == (at < 9)
    assert prepare(book, cache=cache).hash == prepare(book).hash
    assert len(list(cache.iterdir())) == 1


def test_the_folder_of_a_living_process_is_left_alone(book, cache):
    dead = cache / f"{store.TEMPORARY}1-0123abcd"
    dead.mkdir(parents=True)
    with temporary_folder(cache, store.TEMPORARY) as alive:
        assert not dead.exists()
        dead.mkdir()
        prepare(book, cache=cache)
        assert alive.exists()
        assert not dead.exists()
        dead.mkdir()
        prepare(book, cache=cache)
        assert not dead.exists(), "also when there is nothing to prepare"


def test_whoever_publishes_first_wins(tmp_path):
    store.publish(tmp_path / "s", store.Store({}, {}, {"a": "first"}))
    store.publish(tmp_path / "s", store.Store({}, {}, {"a": "second"}))
    assert store.open_store(tmp_path / "s").texts == {"a": "first"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]


def test_preparing_imports_no_torch():
    code = "import sys, regard.data.corpus; print('torch' in sys.modules, 'tokenizers' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert result.stdout == "False False\n"


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the data sets are not beside the repository")
def test_tiny_shakespeare_splits_as_nano_gpt_does():
    corpus = prepare(str(DATA / "tinyshakespeare" / "input.txt.gz"), valid="tail:0.1")
    assert corpus.train.n_chars == 1_003_854
    assert corpus.valid.n_chars == 111_540
    assert corpus.train.tokens == 1_003_855
    assert corpus.tokenizer.kind == "chars"
    assert corpus.tokenizer.vocab_size == 65 + 2  # <unk> and <eos>
    assert corpus.train.ids.max() == corpus.tokenizer.eos_id
    assert corpus.train.ids[:-1].max() < 65


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the data sets are not beside the repository")
def test_names_are_documents_without_leaks():
    corpus = prepare(str(DATA / "names" / "names.txt.gz"), documents="line")
    assert corpus.train.n_documents + corpus.valid.n_documents == 32_033
    assert corpus.overlap == 0
    assert corpus.valid.n_documents == pytest.approx(3203, abs=250)


@pytest.mark.parametrize(("documents", "ends"), [("line", 3), ("blank", 2), ("file", 0)])
def test_line_ends_that_are_predicted_count_as_characters_and_bytes(tmp_path, documents, ends):
    (tmp_path / "train.txt").write_text("aé\n\nb\r\nc", encoding="utf-8")
    (tmp_path / "valid.txt").write_text("é\n\nab\nc\n", encoding="utf-8")
    corpus = prepare(str(tmp_path / "train.txt"), valid=str(tmp_path / "valid.txt"), documents=documents)
    written = {"line": "éabc", "blank": "éab\nc", "file": "é\n\nab\nc\n"}[documents]
    assert corpus.valid.n_ends == ends
    assert corpus.valid.n_chars == len(written) + ends
    assert corpus.valid.n_bytes == len(written.encode()) + ends
    stored = prepare(
        str(tmp_path / "train.txt"), valid=str(tmp_path / "valid.txt"), documents=documents, cache=tmp_path
    )
    assert (stored.valid.n_chars, stored.valid.n_ends) == (corpus.valid.n_chars, ends)


def test_how_ends_are_counted_is_no_part_of_what_a_run_must_find_again():
    tokens = train_tokenizer("bytes", [])
    assert make_shard(["ab", "c"], tokens, lines=True).hash == make_shard(["ab", "c"], tokens).hash


FOREIGN = {
    "facts in a list": lambda told: told | {"facts": []},
    "types in a list": lambda told: told | {"dtypes": []},
    "no facts": lambda told: {"dtypes": told["dtypes"]},
    "bytes in words": lambda told: (
        told | {"facts": told["facts"] | {"train": {"n_bytes": "x", "n_chars": 1, "n_ends": 0}}}
    ),
    "a part that is a list": lambda told: told | {"facts": told["facts"] | {"valid": []}},
    "a part less": lambda told: told | {"facts": {"overlap": 0}},
    "an overlap of words": lambda told: told | {"facts": told["facts"] | {"overlap": "x"}},
    "another type": lambda told: told | {"dtypes": told["dtypes"] | {"train.ids": "<i8"}},
    "no such type": lambda told: told | {"dtypes": told["dtypes"] | {"train.ids": "|O"}},
    "a file that is not there": lambda told: told | {"dtypes": told["dtypes"] | {"a": "<u2"}},
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_prepared_folder_that_is_well_sealed_and_malformed_is_refused_by_name(kind, book, cache):
    prepare(book, cache=cache)
    folder = folder_of(cache)
    told = json.loads((folder / "store.json").read_bytes())
    put(folder, "store.json", json.dumps(FOREIGN[kind](told)).encode())
    with pytest.raises(DataError) as caught:
        prepare(book, cache=cache)
    assert str(folder) in str(caught.value)
    assert "delete the folder" in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("train.ids", 60000), ("train.starts", 1 << 40), ("train.starts", -1)])
def test_prepared_tokens_that_lead_out_of_their_tables_are_refused(name, value, book, cache):
    prepare(book, cache=cache)
    folder = folder_of(cache)
    numbers = np.fromfile(folder / name, json.loads((folder / "store.json").read_bytes())["dtypes"][name])
    numbers[-1] = value
    put(folder, name, numbers.tobytes())
    with pytest.raises(DataError, match=name):
        prepare(book, cache=cache)
