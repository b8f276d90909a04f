"""Tables: cells are found as the csv module finds them, in little memory, and a bad file is refused by its line."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import cells, decoding
from regard.data.choices import Choices
from regard.data.form import look
from regard.data.missing import no_label, no_text
from regard.data.tabular import held, open_table, read_table, table_of
from regard.errors import DataError, RegardError, UsageError

PLAIN = Choices(header="no")
CELL = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00\ufeff"), max_size=9)


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def refusal(path: str, choices: Choices = Choices()) -> str:
    with pytest.raises(RegardError) as caught:
        open_table(path, choices)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@given(
    rows=st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=9),
    mark=st.sampled_from(",;|"),
    end=st.sampled_from(["\n", "\r\n"]),
    chunk=st.integers(1, 40),
)
def test_cells_and_lines_are_those_of_the_csv_module_wherever_a_chunk_ends(rows, mark, end, chunk, tmp_path_factory):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=mark, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    path = write(tmp_path_factory.getbasetemp() / "any.csv", text.getvalue())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "LITTLE", chunk)
        patch.setattr(cells, "CHUNK", chunk)
        table = open_table(path, Choices(header="no", delimiter=mark))
    assert list(zip(*table.cells.values(), strict=True)) == rows
    assert [table.cells["2"][row] for row in range(len(rows))] == [row[1] for row in rows]
    reader = csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=mark)
    begins = [1]
    for _ in reader:
        begins.append(reader.line_num + 1)
    assert list(table.lines) == begins[:-1]


def test_a_quote_within_a_cell_is_a_character(tmp_path):
    path = write(tmp_path / "a.csv", 'label,text\nx,a 5" disk\ny,"quoted, ""so"""\nx,two " " here\n')
    assert list(open_table(path).cells["text"]) == ['a 5" disk', 'quoted, "so"', 'two " " here']


def test_quotes_of_a_tsv_are_characters_unless_they_are_those_of_a_table(tmp_path):
    said = write(tmp_path / "a.tsv", '"Hello," he said.\tHallo\n"Come!"\tKomm\nA\tB\n')
    assert list(open_table(said, PLAIN).cells["1"]) == ['"Hello," he said.', '"Come!"', "A"]
    torn = write(tmp_path / "b.tsv", 'a\tb\n"x\ny"\tz\n"p ""q"""\tr\n')
    assert list(open_table(torn, Choices(header="yes")).cells["a"]) == ["x\ny", 'p "q"']


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("label,text\nx,a\ny,b\n", ["label", "text"]),
        ("id,review,mood\n1,a b,x\n2,c d,y\n", ["id", "review", "mood"]),
        (",review,n\n0,a b,3\n1,c d,4\n", ["column 1", "review", "n"]),
        ("en,de\nyes,ja\nno,nein\n", ["en", "de"]),
        ("English,German\nyes,ja\nno,nein\n", ["English", "German"]),
        ("x,a b\ny,c d\nx,e f\n", ["1", "2"]),
        ("1,a\n2,b\n", ["1", "2"]),
        ("2024-01-01,5\n2024-01-02,6\n", ["1", "2"]),
    ],
)
def test_a_header_is_told_by_its_names_or_by_the_numbers_below(content, named, tmp_path):
    path = write(tmp_path / "a.csv", content)
    assert open_table(path).names == named
    assert open_table(path, PLAIN).names == [str(i + 1) for i in range(len(named))]
    assert len(open_table(path, PLAIN)) == len(open_table(path)) + (named[0] != "1")


def test_an_array_is_read_a_value_at_a_time_wherever_a_piece_ends(tmp_path):
    rows = [{"text": f'text {i} ] }} "', "n": i * 1.5, "more": [1, {"a": None}]} for i in range(40)]
    path = write(tmp_path / "a.json", json.dumps(rows, indent=2))
    for piece in (1, 7, 64, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decoding, "PIECE", piece)
            table = open_table(path)
        assert list(table.cells["text"]) == [row["text"] for row in rows]
        assert list(table.cells["n"]) == [json.dumps(row["n"]) for row in rows]
        assert table.cells["more"][3] == '[1, {"a": null}]'
        assert table.lines[0] == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[{"a": 1}, {"a": 2', "no good JSON"),
        ('[{"a": 1} {"a": 2}]', "line 1: no good JSON, expected ','"),
        ('[{"a": 1}', "the array does not end"),
        ('[{"a": 1}] []', "there is more after the end of the array"),
        ("[]", "holds no rows"),
        ('[["a", 1], ["b"]]', "1 cells where the rows before have 2"),
    ],
)
def test_an_array_that_is_none_is_refused_by_its_line(content, words, tmp_path):
    assert words in refusal(write(tmp_path / "a.json", content))


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("a.txt", "Well, he said, and went.\nSo, she said, and stayed.\n" * 9, "text"),
        ("a.txt", "[Scene one]\nA room.\n", "text"),
        ("a.txt", "{curly} words\n", "text"),
        ("notes", "one, two\nthree, four\n" * 9, "text"),
        ("a.txt", '[{"a": 1}, {"a": 2}]', "json"),
        ("a.log", '{"a": 1}\n{"a": 2}\n', "json"),
        ("table", "id,name\n" + "".join(f"{i},x{i}\n" for i in range(9)), "csv"),
        ("a.txt", "a\tb\n" * 9, "csv"),
        ("a.csv", b"PAR1 and so on", "parquet"),
    ],
)
def test_content_decides_what_a_file_is(name, content, form, tmp_path):
    seen = look(write(tmp_path / name, content))
    assert seen.form == form
    assert seen.agrees == (not name.endswith((".txt", ".csv")) or (name.endswith(".txt") and form == "text"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"\x1f\x8b\x08 packed", "is a gzip file; add .gz to its name"),
        ("a.csv", b"PK\x03\x04 some archive", "is a zip archive; unpack it"),
        ("a.csv", b"%PDF-1.7", "is a PDF; save its text"),
        ("a.parquet", b"PAR1 and then nothing of the kind", "cannot be read as Parquet"),
        ("a.xlsx", b"PK\x03\x04 xl/ broken", "cannot be read as Excel"),
        ("a.arrow", b"ARROW1 broken", "cannot be read as Arrow"),
        ("a.csv", "a,a\n1,2\n3,4\n", "2 columns are called 'a'"),
        ("a.csv", 'a,b\n1,"2\n3,4\n', "no good CSV"),
    ],
)
def test_a_file_that_is_no_table_is_refused_by_what_it_is(name, content, words, tmp_path):
    assert words in refusal(write(tmp_path / name, content), Choices(header="yes"))


def test_a_table_takes_little_more_memory_than_where_its_cells_are(tmp_path):
    path = tmp_path / "a.csv"
    row = f"{'x' * 400},label\n"
    path.write_text("text,label\n" + row * 100_000)
    tracemalloc.start()
    table = open_table(str(path))
    assert sum(len(text) for text in table.cells["text"]) == 400 * 100_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 41 MB of text are held, or lie in a file without a name; 24 bytes a row say where cells begin.
    assert peak < 3 * path.stat().st_size


def test_values_of_any_type_are_cells(tmp_path):
    import datetime

    import pandas

    frame = pandas.DataFrame(
        {
            "n": [1.0, np.nan, 3.0],
            "b": [True, False, None],
            "t": [pandas.Timestamp("2024-01-31 05:00"), pandas.NaT, pandas.Timestamp("2024-02-01")],
            "l": [["a", "b"], None, np.array([1, 2])],
            "d": [datetime.date(2024, 1, 31), None, datetime.date(2024, 2, 1)],
        }
    )
    table = table_of(frame)
    assert {name: list(column) for name, column in table.cells.items()} == {
        "n": ["1", None, "3"],
        "b": ["true", "false", None],
        "t": ["2024-01-31 05:00:00", None, "2024-02-01 00:00:00"],
        "l": ['["a", "b"]', None, "[1, 2]"],
        "d": ["2024-01-31", None, "2024-02-01"],
    }
    assert table.where(1) == "table, row 2"
    with pytest.raises(DataError, match="not equally long: a 1, b 2"):
        table_of({"a": [1], "b": [1, 2]})
    with pytest.raises(DataError, match="holds no rows"):
        table_of([])


def test_a_table_in_memory_is_there_as_long_as_somebody_holds_it():
    table = table_of([("a", 1), ("b", 2)])
    assert table.names == ["1", "2"]
    with held(table, "mine") as one, held(table, "mine") as other:
        assert (one, other) == ("memory:mine", "memory:mine-2")
        assert list(open_table(other).cells["2"]) == ["1", "2"]
    with pytest.raises(DataError, match="was a table in memory, which is gone"):
        open_table("memory:mine")


@pytest.mark.parametrize("quote", ["", '"'])
def test_missing_cells_are_found_alike_in_a_text_and_in_memory(quote, tmp_path):
    values = ["x", "", " ", "nan", "NaN", "NA", "none", "N/A", "null", "a longer text", "         ", " nan ", "\t", "ä"]
    lines = "".join(f"{i},{quote}{value}{quote}\n" for i, value in enumerate(values))
    column = open_table(write(tmp_path / "a.csv", lines), PLAIN).cells["2"]
    own = table_of({"2": values}).cells["2"]
    for lacks in (no_text, no_label):
        np.testing.assert_array_equal(lacks(column), lacks(own))
    assert np.flatnonzero(no_text(own)).tolist() == [1, 2, 10, 12]
    assert np.flatnonzero(no_label(own)).tolist() == [1, 2, 3, 4, 5, 7, 8, 10, 11, 12]


def test_columns_are_found_by_name_or_number(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "Time;Price\n2024-01-01;1,5\n2024-01-02;2\n"))
    assert {table.find("data.target", name) for name in ("Price", "2", "price")} == {"Price"}
    with pytest.raises(UsageError, match=r"data\.target=Prize: .*a\.csv has no such column, did you mean 'Price'"):
        table.find("data.target", "Prize")
    with pytest.raises(DataError, match="line 2, column 'Price': '1,5' is no number"):
        table.numbers("Price")
