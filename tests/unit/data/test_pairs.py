"""Pairs: lines that belong together stay together, and files that drift apart are refused."""

from __future__ import annotations

import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.choices import Choices
from regard.data.example import Pair
from regard.data.pairs import Sides, read_pairs
from regard.errors import DataError

# Characters at which other readers break a line, and this one must not.
ODD = "a\x0bb\x0cc\x1cd\u2028e\u0085f"
CELL = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r\ufeff\x00"), max_size=20)


def write(path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def refusal(*paths) -> str:
    with pytest.raises(DataError) as caught:
        read_pairs(*paths)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_two_files_and_one_with_columns_hold_the_same_pairs(tmp_path):
    source = write(tmp_path / "a.en", f"one\r\n{ODD}\nthree")
    target = write(tmp_path / "a.de", "eins\nzwei\r\ndrei\n")
    both = write(tmp_path / "a.tsv", f"one\teins\n{ODD}\tzwei\nthree\tdrei\n")
    expected = [Pair("one", "eins"), Pair(ODD, "zwei"), Pair("three", "drei")]
    assert read_pairs(source, target) == read_pairs(both) == expected
    assert read_pairs(source, target)[2].where == f"{source}, line 3"
    assert read_pairs(both, sides=Sides(reverse=True)) == read_pairs(target, source)


def test_compressed_files_are_read_through(tmp_path):
    source = write(tmp_path / "a.en.gz", gzip.compress(b"one\ntwo\n"))
    target = write(tmp_path / "a.de.xz", lzma.compress(b"eins\nzwei\n"))
    assert read_pairs(source, target) == [Pair("one", "eins"), Pair("two", "zwei")]


def test_an_empty_side_is_refused_dropped_or_kept_as_somebody_says(tmp_path):
    files = write(tmp_path / "a", "x\n\n \ny\n"), write(tmp_path / "b", "x\n\nz\n\n")
    message = refusal(*files)
    assert f"{files[0]}, line 2: no source in column 'source'; 2 of 4 rows lack it" in message
    assert "data.missing=drop" in message
    kept = read_pairs(*files, missing="empty")
    assert kept == [Pair("x", "x"), Pair("", ""), Pair(" ", "z"), Pair("y", "")]
    assert kept.note == "2 of 4 rows have an empty source; 2 of 4 rows have an empty target"
    dropped = read_pairs(*files, missing="drop")
    assert dropped == [Pair("x", "x")]
    assert dropped.note == "dropped 2 without a source, 1 without a target"
    assert dropped.account.dropped == {"source": 2, "target": 1}
    table = write(tmp_path / "c.tsv", "x\ty\n\n\tz\n")
    assert read_pairs(table, missing="empty") == [Pair("x", "y"), Pair("", "z")]
    assert read_pairs(write(tmp_path / "d.tsv", "x\ty\n")).note == ""


@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8))
def test_whatever_is_written_is_read_back(rows, tmp_path_factory):
    path = write(tmp_path_factory.getbasetemp() / "any.tsv", "".join(f"{left}\t{right}\n" for left, right in rows))
    found = read_pairs(path, missing="empty", choices=Choices(header="no", delimiter="tab"))
    assert [(pair.source, pair.target) for pair in found] == rows


@pytest.mark.parametrize("longer", ["source", "target"])
def test_unequal_files_are_refused_with_both_counts_and_the_side_that_ended(longer, tmp_path):
    short = write(tmp_path / "short", "x\ny\n")
    long = write(tmp_path / "long", "x\ny\n\n\nz\n")
    first, second = (long, short) if longer == "source" else (short, long)
    message = refusal(first, second)
    assert f"{short} ended first" in message
    assert "line 3 has no counterpart" in message
    assert (
        f"{first} has {5 if longer == 'source' else 2} lines and {second} {2 if longer == 'source' else 5}" in message
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a\tb\na\n", "line 2: 1 column where line 1 has 2"),
        ("a\tb\na\tb\tc\n", "line 2: 3 columns where line 1 has 2"),
        ("", "is empty"),
        (b"a\tb\nc\xe4\td\n", "is not UTF-8: byte 0xE4 at offset 5 (line 2)"),
        (b"a" * (16 * 1024 * 1024 + 1), "line 1: longer than 16,777,216 bytes; break it up"),
    ],
)
def test_a_file_that_holds_no_pairs_is_refused_with_its_line(content, words, tmp_path):
    path = write(tmp_path / "bad.tsv", content)
    message = refusal(path)
    assert message.startswith(path)
    assert words in message


def test_missing_files_and_folders_are_refused(tmp_path):
    path = write(tmp_path / "train.tsv", "a\tb\n")
    assert f"did you mean {path}" in refusal(str(tmp_path / "trian.tsv"))
    assert "is a folder" in refusal(str(tmp_path))


@pytest.mark.data
def test_real_pairs_are_all_read(real_data):
    pairs = read_pairs(str(real_data / "multi30k/val.en.gz"), str(real_data / "multi30k/val.de.gz"))
    assert len(pairs) == 1014
    assert pairs.note == ""
    assert len(read_pairs(str(real_data / "tatoeba/deu-eng.valid.tsv.gz"))) == 1726
