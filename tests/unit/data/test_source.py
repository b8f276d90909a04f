"""Reading text: what is a line, what is a document, and what is refused in which words."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import unpack
from regard.data.columnar import is_saved_dataset
from regard.data.decoding import lines
from regard.data.source import files, fingerprint, read_documents
from regard.data.tabular import open_table, read_table
from regard.errors import DataError, RegardError, ResourceError, UsageError

ODD = "a\x0bb\x0cc\x1cd\u2028e\u0085f"


def write(path: Path, content: bytes | str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def read(path: str, documents: str = "auto") -> list[str]:
    return list(read_documents(path, documents=documents))


def refusal(path: str, documents: str = "auto") -> str:
    with pytest.raises(RegardError) as caught:
        read(path, documents)
    message = str(caught.value)
    assert "\n" not in message
    return message


@given(content=st.binary(min_size=1, max_size=60))
@settings(max_examples=300, deadline=None)
def test_arbitrary_bytes_decode_as_python_does_or_name_the_offset(content, tmp_path_factory):
    path = write(tmp_path_factory.getbasetemp() / "arbitrary.txt", content)
    wrong = first_bad_byte(content)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) and len(content) % 2 == 0:
        return  # the mark of another encoding
    if wrong is not None:
        line = content.count(b"\n", 0, wrong) + 1
        for documents in ("file", "line"):
            message = refusal(path, documents)
            assert "NUL" in message or f"offset {wrong} (line {line})" in message
    elif content != b"\xef\xbb\xbf" and content.count(0) < 16:
        assert read(path) == [content.decode().removeprefix("\ufeff")]


def first_bad_byte(content: bytes) -> int | None:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None


@given(parts=st.lists(st.sampled_from(["a", "é", "\n", "\r", "\r\n", *ODD]), max_size=50))
@settings(max_examples=300, deadline=None)
def test_lines_end_at_newlines_only(parts):
    text = "".join(parts)
    found = list(lines(io.BytesIO(text.encode()), "test"))
    assert len(found) == text.count("\n") + (not text.endswith("\n") and text != "")
    rows = text.split("\n")
    unended = [] if rows[-1] == "" else [rows[-1]]
    assert found == [row.removesuffix("\r") for row in rows[:-1]] + unended


def test_a_file_is_one_document_kept_as_it_is(tmp_path):
    text = f"one\r\ntwo {ODD}\n\n\x00 three"
    assert read(write(tmp_path / "a.txt", text)) == [text]


def test_a_mark_is_dropped_and_tells_the_encoding(tmp_path):
    assert read(write(tmp_path / "a.txt", b"\xef\xbb\xbfhello \xef\xbb\xbf")) == ["hello \ufeff"]
    assert read(write(tmp_path / "a.txt", b"\xef\xbb\xbfx\n\xef\xbb\xbfy"), "line") == ["x", "\ufeffy"]
    text = "".join(f"größer als {number} 日本 \U0001f600\r\n" for number in range(9000))
    for encoding in ("utf-16", "utf-32"):
        path = write(tmp_path / "b.txt", text.encode(encoding))
        assert read(path) == [text]
        assert read(path, "line")[8999] == "größer als 8999 日本 \U0001f600"
    assert read(write(tmp_path / "b.txt", b"\xfe\xff\x00h\x00i")) == ["hi"]
    assert "is not utf-16" in refusal(write(tmp_path / "b.txt", b"\xff\xfe\x00\xd8a\x00"))


@pytest.mark.parametrize(
    ("encoding", "text", "guess"),
    [
        ("cp1252", "Das schöne Mädchen sagt: „Grüße“ – für 5 €.", "cp1252"),
        ("latin-1", "le garçon français a mangé des pâtes à l'école", "latin-1"),
        ("cp1251", "Все счастливые семьи похожи друг на друга", "cp1251"),
        ("koi8-r", "Все счастливые семьи похожи друг на друга", "koi8-r"),
        ("shift_jis", "吾輩は猫である。名前はまだ無い。", "shift_jis"),
        ("euc_jp", "吾輩は猫である。名前はまだ無い。", "euc_jp"),
        ("euc_kr", "모든 인간은 태어날 때부터 자유로우며", "euc_kr"),
        ("gb18030", "人人生而自由在尊严和权利上一律平等", "gb18030"),
    ],
)
def test_another_encoding_is_refused_with_a_guess_and_read_when_it_is_told(tmp_path, encoding, text, guess):
    path = write(tmp_path / "old.txt", text.encode(encoding))
    assert f"say data.encoding={guess}" in refusal(path)
    assert list(read_documents(path, encoding=encoding)) == [text]


def test_a_bad_byte_is_named_by_file_offset_and_line(tmp_path):
    path = write(tmp_path / "bad.txt", b"good\nbad \xe9 byte\n")
    for documents in ("file", "line", "blank"):
        message = refusal(path, documents)
        assert "bad.txt" in message
        assert "0xE9 at offset 9 (line 2)" in message
    marked = write(tmp_path / "marked.txt", b"\xef\xbb\xbfgood\n\xff")
    assert "offset 8 (line 2)" in refusal(marked)
    assert "offset 8 (line 2)" in refusal(marked, "line")


def test_lines_and_paragraphs_are_documents(tmp_path):
    path = write(tmp_path / "a.txt", "one\r\ntwo\n\n  \nthree\n\n\n")
    assert read(path, "line") == ["one", "two", "  ", "three"]
    assert read(path, "blank") == ["one\ntwo", "three"]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("documents", ["file", "line", "blank"])
def test_an_empty_file_is_refused(content, documents, tmp_path):
    assert "empty.txt is empty" in refusal(write(tmp_path / "empty.txt", content), documents)


def test_some_null_bytes_are_text_and_many_are_not(tmp_path):
    assert read(write(tmp_path / "few.txt", b"a\0b")) == ["a\0b"]
    assert read(write(tmp_path / "few.txt", b"text" * 1000 + b"\0" * 30))[0].count("\0") == 30
    assert "looks binary" in refusal(write(tmp_path / "weights.bin", b"\0\1\2\3" * 100))
    assert "looks binary" in refusal(write(tmp_path / "no_mark.txt", "hello there, world".encode("utf-16-le")))


@pytest.mark.parametrize(("suffix", "module"), [(".gz", gzip), (".xz", lzma)])
def test_compressed_files_read_as_plain_ones_and_damage_is_named(suffix, module, tmp_path):
    content = module.compress("".join(f"line {i}\n" for i in range(5000)).encode())
    path = write(tmp_path / f"a.txt{suffix}", content)
    assert len(read(path, "line")) == 5000
    for documents in ("file", "line"):
        cut = refusal(write(tmp_path / f"cut.txt{suffix}", content[:-100]), documents)
        assert "cut short" in cut
        assert f"cut.txt{suffix}" in cut
        damaged = content[:40] + bytes(255 - byte for byte in content[40:80]) + content[80:]
        assert f"damaged.txt{suffix}" in refusal(write(tmp_path / f"damaged.txt{suffix}", damaged), documents)
    assert f"no good {suffix} file" in refusal(write(tmp_path / f"plain.txt{suffix}", "just text"))


def test_a_folder_is_its_text_files_sorted(tmp_path):
    write(tmp_path / "b.md", "second")
    write(tmp_path / "a.txt", "first")
    write(tmp_path / "c" / "deep.TXT.gz", gzip.compress(b"third"))
    write(tmp_path / "image.png", b"\x89PNG")
    write(tmp_path / ".hidden" / "note.txt", "hidden")
    assert read(str(tmp_path)) == ["first", "second", "third"]
    write(tmp_path / "c" / "void.txt", b"")
    assert "void.txt is empty" in refusal(str(tmp_path))


def test_a_folder_without_text_is_refused(tmp_path):
    write(tmp_path / "image.png", b"\x89PNG")
    assert "holds no text files (.txt .md" in refusal(str(tmp_path))


@pytest.mark.parametrize("names", [("config.json", "manifest.json"), ("comparison.json", "report.json")])
def test_what_a_run_or_a_comparison_wrote_is_no_data(tmp_path: Path, names: tuple[str, str]):
    write(tmp_path / "book.txt", "first")
    for name in (*names, "samples.txt", "report.md"):
        write(tmp_path / "runs" / "one" / name, "written by a model")
    before = fingerprint(str(tmp_path))
    assert read(str(tmp_path)) == ["first"]
    assert "is a run or a comparison, and no data" in refusal(str(tmp_path / "runs" / "one"))
    write(tmp_path / "runs" / "one" / "samples.txt", "and more")
    assert fingerprint(str(tmp_path)) == before


def test_a_missing_file_names_the_nearest(tmp_path):
    write(tmp_path / "shakespeare.txt", "x")
    assert f"did you mean {tmp_path / 'shakespeare.txt'}?" in refusal(str(tmp_path / "shakespear.txt"))
    assert "there is no file" in refusal(str(tmp_path / "zzz"))
    assert "no folder" in refusal(str(tmp_path / "none" / "zzz.txt"))


def test_a_file_without_permission_is_a_matter_of_resources(tmp_path, monkeypatch):
    path = write(tmp_path / "secret.txt", "x")

    def refuse(*arguments, **keywords):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ResourceError, match=r"cannot read .*secret\.txt: Permission denied"):
        read(path)


def test_standard_input_is_read_and_left_open(monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"from\nstdin"))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read("-", "line") == ["from", "stdin"]
    assert not stdin.buffer.closed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xff")))
    assert "standard input is not UTF-8" in refusal("-")


def test_a_pipe_by_name_is_refused_without_waiting_for_it(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(DataError, match=r"pipe is a named pipe, not a regular file: save .* or pipe it in as -"):
        read(str(path))


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_what_unpacks_to_far_more_than_text_does_is_refused(tmp_path, monkeypatch, suffix, opener):
    monkeypatch.setattr(unpack, "ALWAYS_ALLOWED", 1 << 20)
    path = tmp_path / f"bomb.txt{suffix}"
    with opener(path, "wb") as file:
        file.write(b"a" * (1 << 20))
    assert len(read(str(path))[0]) == 1 << 20
    with opener(path, "wb") as file:
        for _ in range(64):
            file.write(b"ab\n" * (1 << 18))
    for documents in ("file", "line"):
        with pytest.raises(DataError, match=r"unpacks to more than .* over 100 times .* unpack it yourself"):
            read(str(path), documents)


def test_an_unknown_kind_of_document_names_the_nearest(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'line'"):
        read(write(tmp_path / "a.txt", "x"), "lines")


def test_a_line_may_be_as_long_as_the_limit_and_no_longer():
    for end in (b"", b"\n", b"\r\n"):
        assert list(lines(io.BytesIO(b"x" * 10 + end), "test", limit=10)) == ["x" * 10]
        with pytest.raises(DataError, match="test, line 2: longer than 10 bytes"):
            list(lines(io.BytesIO(b"ok\n" + b"x" * 11 + end), "test", limit=10))


def test_a_huge_line_is_refused_in_little_memory(tmp_path):
    path = tmp_path / "huge.txt"
    with open(path, "wb") as stream:
        stream.write(b"text" * 50_000)
        stream.truncate(1 << 30)
    tracemalloc.start()
    message = refusal(str(path), "line")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "line 1: longer than 16,777,216 bytes" in message
    assert peak < 100 * 2**20


def test_a_fingerprint_changes_with_any_byte_or_name(tmp_path):
    write(tmp_path / "a.txt", "one")
    write(tmp_path / "b.txt", "two")
    seen = [fingerprint(str(tmp_path))]
    assert fingerprint(str(tmp_path)) == seen[0]
    write(tmp_path / "b.txt", "twp")
    seen.append(fingerprint(str(tmp_path)))
    (tmp_path / "b.txt").rename(tmp_path / "c.txt")
    seen.append(fingerprint(str(tmp_path)))
    seen.append(fingerprint(files(str(tmp_path))[0]))
    assert len(set(seen)) == 4


def test_the_package_never_splits_lines_by_other_rules():
    for file in (Path(__file__).parents[3] / "src" / "regard" / "data").rglob("*.py"):
        code = file.read_text(encoding="utf-8").replace("`str.splitlines`", "")
        assert "splitlines" not in code, file


@pytest.mark.parametrize("name", ["up.txt.GZ", "up.TXT.Gz"])
def test_the_ending_of_a_packed_file_may_be_in_capitals(tmp_path: Path, name: str):
    (tmp_path / name).write_bytes(gzip.compress(b"one\ntwo\n"))
    assert list(read_documents(str(tmp_path / name))) == ["one\ntwo\n"]


def test_a_table_whose_lines_end_in_returns_may_be_larger_than_a_line(tmp_path):
    cell = "x" * 100_000
    rows = [f"{number},{cell}" for number in range(200)]
    table = read_table(write(tmp_path / "mac.csv", "\r".join(["number,text", *rows]) + "\r"))
    assert len(table.lines) == 200
    with pytest.raises(DataError, match="line 2: longer than"):
        read_table(write(tmp_path / "long.csv", "number,text\r" + cell * 200))


@pytest.mark.parametrize("form", ["jsonl", "tsv", "csv"])
def test_a_file_with_ever_new_columns_is_refused_by_its_line(tmp_path, form):
    if form == "jsonl":
        content, line = "\n".join(f'{{"key {number}": 1}}' for number in range(2000)), 1001
    else:
        content, line = ("\t" if form == "tsv" else ",").join("x" * 1001), 1
    with pytest.raises(DataError, match=f"line {line}: more than 1,000 different columns"):
        open_table(write(tmp_path / f"a.{form}", content))


def test_a_state_of_another_program_makes_no_data_set_of_a_folder(tmp_path: Path):
    write(tmp_path / "state.json", "{}")
    assert not is_saved_dataset(tmp_path)
    write(tmp_path / "data-00000-of-00001.arrow", b"")
    assert is_saved_dataset(tmp_path)
