"""Texts with several labels from tables as people have them: lists, marks between, none at all, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.data.several import read_several
from regard.errors import DataError, UsageError
from regard.tasks.kind import kind_of

TEXTS = [f"a film about {n} people at sea" for n in range(20)]
SETS = [["war", "drama"], [], ["love"], ["drama"]] * 5


def lines(path: Path, **columns: list[object]) -> str:
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def table(path: Path, **columns: list[str]) -> str:
    rows = ["\t".join(columns), *("\t".join(row) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("mark", ["|", ";", ",", " ; "])
def test_marks_between_labels_are_told_and_an_empty_cell_has_none(mark: str, tmp_path: Path):
    file = table(tmp_path / "films.tsv", text=TEXTS, genres=[mark.join(one) for one in SETS])
    assert kind_of(file) == "multilabel"
    found = read_several(file)
    assert [list(one.labels) for one in found] == SETS
    assert found.settings == {"text": "text", "labels": "genres", "separator": mark.strip()}


def test_lists_are_told_in_json_and_parquet_and_as_text(tmp_path: Path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"plot": TEXTS, "what": SETS}
    parquet.write_table(pyarrow.table(columns), tmp_path / "films.parquet")
    as_text = [json.dumps(one) for one in SETS]
    files = [
        lines(tmp_path / "films.jsonl", plot=list(TEXTS), what=list(SETS)),
        str(tmp_path / "films.parquet"),
        table(tmp_path / "films.tsv", plot=TEXTS, what=as_text),
    ]
    for file in files:
        assert kind_of(file) == "multilabel", file
        assert [list(one.labels) for one in read_several(file)] == SETS


def test_a_separator_that_is_named_wins_and_a_label_counts_once(tmp_path: Path):
    file = table(tmp_path / "films.tsv", text=TEXTS, genres=["war, sea|love|love"] * 20)
    assert read_several(file)[0].labels == ("war, sea", "love")
    assert read_several(file, separator=",")[0].labels == ("war", "sea|love|love")


def test_single_labels_and_prose_with_commas_stay_what_they_are(tmp_path: Path):
    assert kind_of(table(tmp_path / "a.tsv", text=TEXTS, label=["good", "bad"] * 10)) == "labelled"
    prose = [f"{text}, {number}, and so on" for number, text in enumerate(TEXTS)]
    assert kind_of(table(tmp_path / "b.tsv", source=TEXTS, target=prose)) == "pairs"


def test_what_is_no_list_of_labels_is_refused_with_its_line(tmp_path: Path):
    for bad in ('["war", ', '[{"war": 1}]', '["war", null]'):
        file = table(tmp_path / "films.tsv", text=TEXTS, labels=['["war"]', bad, *['["sea"]'] * 18])
        with pytest.raises(DataError, match=r"line 3, column 'labels': expected a list of labels, found"):
            read_several(file)
    with pytest.raises(UsageError, match=r"no column is clearly the labels; .* data.labels=NAME"):
        read_several(table(tmp_path / "c.tsv", text=TEXTS, mood=["sad"] * 20))
