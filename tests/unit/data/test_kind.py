"""What data is for: told from names and first lines, quickly and without torch."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys

import pytest

from regard.errors import DataError, UsageError
from regard.tasks.kind import kind_of

TEXTS = "".join(f"This is sentence {i}\tDies ist Satz {i}\n" for i in range(20))
LABELS = "".join(f"{i % 2}\tThis is sentence {i}\n" for i in range(20))
HOURS = "time,price,load\n" + "".join(f"2020-01-01 {i:02}:00:00,{i}.5,{i}\n" for i in range(20))


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.txt", "words", "text"),
        ("a.md", "words", "text"),
        ("notes", "words", "text"),
        ("train.en", "words", "text"),
        ("a.tsv", TEXTS, "pairs"),
        ("a.tsv", "Hello\tHallo\n", "pairs"),
        ("a.tsv", "".join(sorted(f"Go {i // 2}\tGeh {i}\n" for i in range(400))), "pairs"),
        ("a.tsv", LABELS, "labelled"),
        ("a.tsv", "id\tlabel\ttext\n" + "".join(f"{i}\t{i % 2}\tsentence {i}\n" for i in range(9)), "labelled"),
        ("a.csv", LABELS.replace("\t", ","), "labelled"),
        ("a.jsonl", '{"text": "a", "label": "b"}\n', "labelled"),
        ("a.conll", "a\tX\n", "tagged"),
        ("a.conllu", "# text\n", "tagged"),
        ("a.csv", HOURS, "series"),
        ("a.csv", HOURS.replace("time", "when"), "series"),
        ("a.csv", HOURS.replace("2.5", "nan").replace(",3.5", ","), "series"),
        ("a.tsv", "image\tcaption\na.png\ta dog\n", "captions"),
        ("a.npz", "", "captions"),
    ],
)
def test_files(name, content, kind, tmp_path):
    (tmp_path / name).write_text(content)
    assert kind_of(str(tmp_path / name)) == kind
    if content:
        with gzip.open(tmp_path / f"{name}.gz", "wt") as stream:
            stream.write(content)
        assert kind_of(str(tmp_path / f"{name}.gz")) == kind


def test_labels_with_dates_are_no_series(tmp_path):
    rows = "".join(f"2020-01-{i + 1:02},{'good' if i % 2 else 'bad'},sentence {i}\n" for i in range(20))
    (tmp_path / "a.csv").write_text("date,label,text\n" + rows)
    assert kind_of(str(tmp_path / "a.csv")) == "labelled"


def test_folders(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_text("a")
    (tmp_path / "texts/b.txt.gz").write_bytes(gzip.compress(b"b"))
    (tmp_path / "texts/logo.png").write_bytes(b"")
    assert kind_of(str(tmp_path / "texts")) == "text"
    (tmp_path / "pictures/train").mkdir(parents=True)
    (tmp_path / "pictures/README.md").write_text("a")
    for name in "ab":
        (tmp_path / f"pictures/train/{name}.PNG").write_bytes(b"")
    assert kind_of(str(tmp_path / "pictures")) == "captions"


def test_two_files_worlds_and_standard_input(monkeypatch):
    assert kind_of("any.en", "any.de") == "pairs"
    assert kind_of("world:stories?train=5") == "text"
    for content, kind in (
        ("some words\n", "text"),
        (TEXTS, "pairs"),
        ("label,text\n" + LABELS.replace("\t", ","), "labelled"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        assert kind_of("-") == kind


def test_what_cannot_be_told_is_refused_in_one_line(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"word {i}\tterm {i}\t{i / 7:.2f}\n" for i in range(30)))
    with pytest.raises(UsageError, match=r"its columns are 1, 2, 3.*--task: text, pairs"):
        kind_of(str(path))
    with pytest.raises(DataError, match=r"there is no file .*did you mean"):
        kind_of(str(tmp_path / "a.tvs"))
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match="is empty"):
        kind_of(str(tmp_path / "empty.csv"))


def test_a_large_file_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(LABELS.encode() * 100 + b"\xff not utf-8 and one column\n")
    assert kind_of(str(path)) == "labelled"


def test_telling_does_not_import_torch():
    code = (
        "import sys; from regard.tasks.kind import kind_of; kind_of('world:stories'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tatoeba/fra-eng.train.tsv.gz", "pairs"),
        ("tatoeba/deu-eng.valid.tsv.gz", "pairs"),
        ("sst/sst2.train.tsv.gz", "labelled"),
        ("trec/train.tsv.gz", "labelled"),
        ("movie_reviews/train.tsv.gz", "labelled"),
        ("ud_english_ewt/en_ewt-ud-dev.conllu.gz", "tagged"),
        ("wnut17/dev.conll.gz", "tagged"),
        ("epf/NP.train.csv.gz", "series"),
        ("ett/ETTh1.train_val.csv.gz", "series"),
        ("emoji_captions", "captions"),
        ("emoji_captions/valid.images.npz", "captions"),
        ("emoji_captions/valid.captions.tsv.gz", "captions"),
        ("classic_books", "text"),
        ("names/names.txt.gz", "text"),
    ],
)
def test_real_data(name, kind, real_data):
    assert kind_of(str(real_data / name)) == kind
