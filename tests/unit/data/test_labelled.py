"""Labelled texts: the same examples from every form of file, and columns found or asked for."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.example import Labelled
from regard.data.labelled import read_labelled
from regard.errors import DataError, RegardError, UsageError

ROWS = [
    ("good", 'a "fine" film , really'),
    ("bad", "it never ends , alas"),
    ("good", "funny from start to end"),
    ("bad", "the actors look bored"),
]
EXPECTED = [Labelled(text, label) for label, text in ROWS]
CELL = st.text(st.characters(codec="utf-8", exclude_characters="\r\ufeff\x00"), min_size=1, max_size=20)


def write(path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def tsv(rows) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def refusal(path: str, **settings) -> str:
    with pytest.raises(RegardError) as caught:
        read_labelled(path, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_form_gives_the_same_examples(tmp_path):
    with (tmp_path / "a.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("review", "class"), *((text, label) for label, text in ROWS)])
    objects = "".join(json.dumps({"id": i, "text": t, "label": lab}) + "\n\n" for i, (lab, t) in enumerate(ROWS))
    paths = [
        write(tmp_path / "a.tsv", tsv(ROWS)),
        write(tmp_path / "b.tsv", tsv([("Label", "Sentence"), *ROWS])),
        write(tmp_path / "c.tsv.gz", gzip.compress(tsv(ROWS).encode())),
        str(tmp_path / "a.csv"),
        write(tmp_path / "a.jsonl", objects),
        write(tmp_path / "named_otherwise", objects),
    ]
    for path in paths:
        assert read_labelled(path) == EXPECTED, path
        assert read_labelled(path).note == ""
    assert read_labelled(paths[1])[0].where == f"{paths[1]}, line 2"
    assert read_labelled(paths[4])[1].where == f"{paths[4]}, line 3"


def test_columns_are_asked_for_by_name_or_number(tmp_path):
    path = write(tmp_path / "a.csv", "mood,words,label\nx,one two,1\ny,three four,2\n")
    assert read_labelled(path, text="words") == [Labelled("one two", "1"), Labelled("three four", "2")]
    assert read_labelled(path, text="2", label="mood") == [Labelled("one two", "x"), Labelled("three four", "y")]
    bare = write(tmp_path / "b.tsv", "1\tx\tlong text here\n2\ty\tand one more\n")
    assert read_labelled(bare, text="3", label="2") == [Labelled("long text here", "x"), Labelled("and one more", "y")]
    objects = write(tmp_path / "c.jsonl", '{"stars": 5, "text": "a"}\n{"stars": true, "text": "b"}\n')
    assert read_labelled(objects, label="stars") == [Labelled("a", "5"), Labelled("b", "true")]


def test_the_settings_of_one_file_read_another_that_could_not_be_told_alone(tmp_path):
    train = read_labelled(write(tmp_path / "train.tsv", tsv(ROWS)))
    few = write(tmp_path / "few.tsv", "good\tyes , it is\nbad\tno , it is not\nfair\tperhaps it is\n")
    assert "no column looks like labels" in refusal(few)
    assert [example.label for example in read_labelled(few, **train.settings)] == ["good", "bad", "fair"]


def test_of_nested_labels_the_coarser_are_taken_and_said(tmp_path):
    rows = [(coarse, f"{coarse}:{i % 3}", f"a question about {i}") for i in range(30) for coarse in ("HUM", "LOC")]
    examples = read_labelled(write(tmp_path / "a.tsv", tsv(rows)))
    assert {example.label for example in examples} == {"HUM", "LOC"}
    assert "column 1 with 2 classes; finer ones: 2 (6)" in examples.note


def test_labels_that_cross_are_refused(tmp_path):
    rows = [(str(i % 2), "abc"[i % 3], f"a rather long text about {i}") for i in range(30)]
    path = write(tmp_path / "a.tsv", tsv(rows))
    message = refusal(path)
    assert "several columns may be the label; its columns are 1, 2, 3" in message
    assert "data.label=" in message
    assert len(read_labelled(path, label="2")) == 30


def test_two_texts_are_refused(tmp_path):
    rows = [(str(i % 2), f"the first text about {i}", f"the second text about {i}") for i in range(30)]
    assert "data.text=" in refusal(write(tmp_path / "a.tsv", tsv(rows)))
    objects = "".join(json.dumps({"question": q, "sentence": s, "label": label}) + "\n" for label, q, s in rows)
    message = refusal(write(tmp_path / "a.jsonl", objects))
    assert "several columns may be the text; its columns are question, sentence, label" in message


def test_a_header_with_other_names_is_seen_and_said(tmp_path):
    path = write(tmp_path / "a.tsv", tsv([("stars", "comment"), *ROWS, *ROWS]))
    examples = read_labelled(path)
    assert examples == EXPECTED * 2
    assert "line 1 is taken as a header" in examples.note
    assert examples.settings == {"text": "comment", "label": "stars"}
    rare = write(tmp_path / "b.tsv", tsv([("odd", "a label that comes once is no header"), *ROWS, *ROWS]))
    assert len(read_labelled(rare)) == 9


def test_empty_texts_are_refused_dropped_or_kept_as_somebody_says_and_blank_lines_are_no_rows(tmp_path):
    path = write(tmp_path / "a.tsv", "x\tsome words\n\ny\t\nx\tmore words\ny\teven more\n")
    assert f"{path}, line 3: no text in column '2'; mend it, or data.missing=drop" in refusal(path)
    examples = read_labelled(path, missing="empty")
    assert [example.text for example in examples] == ["some words", "", "more words", "even more"]
    assert "1 of 4 rows have an empty text" in examples.note
    assert examples[1].where == f"{path}, line 3"
    dropped = read_labelled(path, missing="drop")
    assert [example.text for example in dropped] == ["some words", "more words", "even more"]
    assert (dropped.account.read, dropped.account.dropped) == (4, {"text": 1})


@given(rows=st.lists(st.tuples(st.sampled_from("ab"), CELL), min_size=1, max_size=8))
def test_quoted_cells_come_back_whole(rows, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([("label", "text"), *rows])
    assert read_labelled(str(path), missing="empty") == [Labelled(text, label) for label, text in rows]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.tsv", "", "is empty"),
        ("a.tsv", "\n\n", "nothing but blank lines"),
        ("a.csv", "text,label\n", "holds a header and nothing else"),
        ("a.tsv", "only\n", "has one column"),
        ("a.tsv", "x\ta b\ny\ta\tb\n", "line 2: 3 columns where line 1 has 2"),
        ("a.csv", 'text,label\n"a,b\nc,d\n', "line 2: no good CSV"),
        ("a.csv", "text,label\na,\n", "line 2: no label in column 'label'"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}\n', "line 2: no label in column 'label'"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": null, "label": 1}\n', "line 2: no text in column 'text'"),
        ("a.jsonl", '{"text": "a", "label": 1}\n[1]\n', "line 2: '[1]' is no object"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text"\n', "line 2: no good JSON"),
        ("a.tsv", b"x\ta\ny\t\xfc\n", "is not UTF-8: byte 0xFC at offset 6 (line 2)"),
        ("a.tsv", b"x\ta\ny\t" + b"a" * (16 * 1024 * 1024), "line 2: longer than 16,777,216 bytes"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(name, content, words, tmp_path):
    path = write(tmp_path / name, content)
    message = refusal(path)
    assert message.startswith(path)
    assert words in message
    with pytest.raises(DataError):
        read_labelled(path)


def test_columns_that_are_not_there_are_refused(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\na b,1\nc d,2\n")
    assert "data.label=lable" in refusal(path, label="lable")
    assert "did you mean 'label'" in refusal(path, label="lable")
    assert "both column 'text'" in refusal(path, text="text", label="1")
    with pytest.raises(UsageError):
        read_labelled(path, text="3")


@pytest.mark.data
def test_real_files_are_read_with_nothing_said(real_data):
    """The counts that the makers state."""
    for name, n_rows, n_classes in (("sst/sst2.train", 6920, 2), ("sst/sst5.dev", 1101, 5), ("trec/train", 5452, 6)):
        examples = read_labelled(str(real_data / f"{name}.tsv.gz"))
        assert (len(examples), len({example.label for example in examples})) == (n_rows, n_classes)
        assert min(len(example.text.split()) for example in examples) > 0
        assert ("finer" in examples.note) == (name == "trec/train")
    reviews = read_labelled(str(real_data / "movie_reviews/train.tsv.gz"))
    assert Counter(example.label for example in reviews) == {"0": 900, "1": 900}
    assert reviews[0].text.startswith("plot : two teen couples")
