"""docs/data.md: its commands, its Python, and its table of formats and tasks, on files as people have them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calling import call_here

from regard.data.choices import TextChoices
from regard.data.settings import DataSettings
from regard.data.tabular import held, table_of
from regard.data.text_source import joined_documents, text_stream
from regard.errors import RegardError
from regard.tasks import task_named

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
Columns = dict[str, list[Any]]
TEXTS = [
    'He said "hi", then left',
    "two\nlines; and a bar | here",
    "größer als zuvor",
    "日本語のテキスト、です",
    "Все счастливые семьи",
    "a tab\tin between",
    "the same again",
    "the same again",
    None,
    "nan",
    '😀 ends with a quote"',
]
LABELS = ["gut", "ja, nein", "gut", "ja, nein", "да", "gut", "да", "да", "gut", None, "ja, nein"]
NUMBERS = [None if label is None else 7.5 - 2.25 * i for i, label in enumerate(LABELS)]
SETS = [None if label is None else ("b", "a|b|c", "a")[i % 3] for i, label in enumerate(LABELS)]
KEPT = [i for i in range(len(TEXTS)) if TEXTS[i] is not None]
WORDS = [["ein", "Hund", "läuft"], ["日本", "です"], ['"hi"', ",", "x"]] * 3
TAGS = [["DET", "NOUN", "VERB"], ["PROPN", "AUX"], ["X", "PUNCT", "X"]] * 3
TIMES = [f"2024-01-{day:02} {hour:02}:00:00" for day in range(1, 6) for hour in range(24)]
PRICES = [round(20 + 5 * np.sin(i / 4), 3) for i in range(len(TIMES))]


def delimited(path: Path, columns: Columns, mark: str) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=mark, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(zip(*[[joined(cell) for cell in column] for column in columns.values()], strict=True))
    path.write_bytes(b"\xef\xbb\xbf" + text.getvalue().encode())
    return str(path)


def joined(cell: Any) -> Any:
    """Lists of words as tables of text have them."""
    return " ".join(cell) if isinstance(cell, list) else cell


def rows(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def json_array(path: Path, columns: Columns) -> str:
    path.write_text(json.dumps(rows(columns), indent=1, ensure_ascii=False), encoding="utf-8")
    return str(path)


def json_lines(path: Path, columns: Columns) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(columns)), encoding="utf-8")
    return str(path)


def parquet(path: Path, columns: Columns) -> str:
    import pyarrow
    from pyarrow.parquet import write_table

    write_table(pyarrow.table(columns), path)
    return str(path)


def feather(path: Path, columns: Columns) -> str:
    import pyarrow
    from pyarrow.feather import write_feather

    write_feather(pyarrow.table(columns), str(path))
    return str(path)


def excel(path: Path, columns: Columns) -> str:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(list(columns))
    for row in zip(*columns.values(), strict=True):
        sheet.append([joined(cell) for cell in row])
    book.save(path)
    return str(path)


def saved_dataset(path: Path, columns: Columns) -> str:
    """What `datasets` writes with save_to_disk, label classes by number: an Arrow stream and two files about it."""
    import pyarrow

    folder = path.with_suffix("")
    part = folder / "train"
    part.mkdir(parents=True)
    names = sorted({label for label in columns.get("label", []) if label is not None})
    numbers = {"label": [None if one is None else names.index(one) for one in columns["label"]]} if names else {}
    table = pyarrow.table(columns | numbers)
    sink = pyarrow.OSFile(str(part / "data-00000-of-00001.arrow"), "wb")
    with sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    features = {"label": {"names": names, "_type": "ClassLabel"}} if names else {}
    (part / "dataset_info.json").write_text(json.dumps({"features": features}), encoding="utf-8")
    (part / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}), encoding="utf-8")
    return str(folder)


WRITERS: dict[str, tuple[str, Callable[[Path, Columns], str]]] = {
    "CSV, commas": (".csv", lambda path, columns: delimited(path, columns, ",")),
    "CSV, semicolons": (".csv", lambda path, columns: delimited(path, columns, ";")),
    "TSV": (".tsv", lambda path, columns: delimited(path, columns, "\t")),
    "bars between cells": (".psv", lambda path, columns: delimited(path, columns, "|")),
    "JSON array": (".json", json_array),
    "JSON lines": (".jsonl", json_lines),
    "Parquet": (".parquet", parquet),
    "Arrow, Feather": (".feather", feather),
    "Excel": (".xlsx", excel),
    "Hugging Face": (".dataset", saved_dataset),
}
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in re.findall(r"^\|.*\|$", PAGE.partition("## Columns")[0], re.MULTILINE)
]
TASKS = TABLE[0][2:]
SAYS = {row[0]: dict(zip(TASKS, row[2:], strict=True)) for row in TABLE[2:]}


def columns_for(task: str, folder: Path) -> Columns:
    if task == "captions":
        from PIL import Image

        for number in range(4):
            Image.new("RGB", (4, 4), (60 * number, 0, 0)).save(folder / f"{number}.png")
        return {"file": [f"{number}.png" for number in range(4)], "caption": [TEXTS[number] for number in (0, 2, 3, 4)]}
    return {
        "text, masked": {"text": TEXTS, "id": list(range(len(TEXTS)))},
        "labelled": {"id": list(range(len(TEXTS))), "text": TEXTS, "label": LABELS},
        "regression": {"id": list(range(len(TEXTS))), "text": TEXTS, "score": NUMBERS},
        "multilabel": {"id": list(range(len(TEXTS))), "text": TEXTS, "labels": SETS},
        "pairs": {"source": TEXTS, "target": [None if text is None else text[::-1] for text in TEXTS]},
        "tagged": {"tokens": WORDS, "tags": TAGS},
        "series": {"time": TIMES, "price": PRICES},
    }[task]


def read(task: str, data: str) -> Any:
    """What a task makes of data, in plain values."""
    if task == "text, masked":
        return joined_documents(text_stream(data, "auto", TextChoices(missing="drop")))
    settings = DataSettings(path=data, history=24, missing="refuse")
    drop = ("labelled", "pairs", "regression", "multilabel")
    settings = replace(settings, missing="drop") if task in drop else settings
    found = task_named(task).examples(data, settings, 0)  # pyright: ignore[reportAttributeAccessIssue]
    if task == "series":
        return found[0].series.target.tolist()
    fields = {"regression": ("text", "number"), "multilabel": ("text", "labels")}
    fields |= {"labelled": ("text", "label"), "pairs": ("source", "target"), "tagged": ("words", "tags")}
    return [tuple(getattr(one, name) for name in fields.get(task, ("text",))) for one in found]


EXPECTED: dict[str, Any] = {
    "text, masked": [TEXTS[i] for i in KEPT],
    "labelled": [(TEXTS[i], LABELS[i]) for i in KEPT if LABELS[i] is not None],
    "regression": [(TEXTS[i], NUMBERS[i]) for i in KEPT if NUMBERS[i] is not None],
    "multilabel": [(TEXTS[i], tuple((SETS[i] or "").split("|")) if SETS[i] else ()) for i in KEPT],
    "pairs": [(TEXTS[i], str(TEXTS[i])[::-1]) for i in KEPT],
    "tagged": [(tuple(words), tuple(tags)) for words, tags in zip(WORDS, TAGS, strict=True)],
    "captions": [(TEXTS[number],) for number in (0, 2, 3, 4)],
    "series": PRICES,
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("form", WRITERS)
def test_every_task_reads_the_same_from_every_format(tmp_path: Path, form: str, task: str):
    suffix, write = WRITERS[form]
    data = write(tmp_path / f"captions{suffix}", columns_for(task, tmp_path))
    if SAYS[form][task] == "no":
        with pytest.raises(RegardError):
            read(task, data)
    else:
        assert SAYS[form][task] == "yes"
        assert read(task, data) == EXPECTED[task]


@pytest.mark.parametrize("task", [task for task in TASKS if SAYS["in memory"][task] == "yes"])
def test_every_task_reads_what_somebody_has_in_memory(tmp_path: Path, task: str):
    import pandas
    import pyarrow

    columns = columns_for(task, tmp_path)
    for data in (columns, rows(columns), pandas.DataFrame(columns), pyarrow.table(columns)):
        with ExitStack() as stack:
            address = stack.enter_context(held(table_of(data)))
            assert read(task, address) == EXPECTED[task]


def test_packed_piped_marked_and_matched_files_read_as_plain_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import zstandard

    columns = columns_for("labelled", tmp_path)
    plain = Path(delimited(tmp_path / "a.csv", columns, ",")).read_bytes()
    packers = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.ZstdCompressor().compress}
    for suffix, pack in packers.items():
        (tmp_path / f"a.csv{suffix}").write_bytes(pack(plain))
        assert read("labelled", str(tmp_path / f"a.csv{suffix}")) == EXPECTED["labelled"]
    (tmp_path / "cut.csv.zst").write_bytes(packers[".zst"](plain)[:-9])
    with pytest.raises(RegardError, match="cut short"):
        read("labelled", str(tmp_path / "cut.csv.zst"))
    (tmp_path / "wide.csv").write_bytes(plain.decode("utf-8-sig").encode("utf-16"))
    assert read("labelled", str(tmp_path / "wide.csv")) == EXPECTED["labelled"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(plain)))
    assert read("labelled", "-") == EXPECTED["labelled"]
    for number in range(3):
        shutil.copy(tmp_path / "a.csv", tmp_path / f"part-{number}.csv")
    assert read("labelled", str(tmp_path / "part-*.csv")) == EXPECTED["labelled"] * 3


@pytest.fixture
def files(here: Path) -> Path:
    """The files that the page names."""
    reviews = "".join(f"{i},a {'fine' if i % 2 else 'dull'} film no {i},{1 + i % 2}\n" for i in range(40))
    Path("reviews.csv").write_text("id,comment,stars\n" + reviews, encoding="utf-8")
    Path("holes.csv").write_text("text,label\na b,x\nc d,\ne f,y\ng h,NaN\ni j,x\n", encoding="utf-8")
    Path("pairs.csv").write_text("id;en;de\n" + "".join(f"{i};Go {i}!;Geh {i}!\n" for i in range(9)), encoding="utf-8")
    credit = "CC-BY 2.0 (France) Attribution: tatoeba.org"
    Path("deu.tsv").write_text("".join(f"Go {i}!\tGeh {i}!\t{credit} #{i}\n" for i in range(9)), encoding="utf-8")
    Path("export.txt").write_text("".join(f"x{i};a text of {i} words;{'ab'[i % 2]}\n" for i in range(9)))
    return here


def test_the_commands_and_the_lines_of_python_work(files: Path, capsys: pytest.CaptureFixture[str]):
    blocks = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) > 7
    for line in lines:
        outcome = call_here(*re.sub(r"^regard ", "", line).split(), *(["--quiet"] if " train " in line else []))
        assert outcome.code == 0, (line, outcome.err)
    (python,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(python, "data.md", "exec"), {})
    assert "memory:mine" in capsys.readouterr().out


def test_what_was_understood_is_said_before_training_kept_and_shown(files: Path):
    told = json.loads(call_here("inspect", "reviews.csv", "--json").out)
    assert (told["task"], told["target"], told["columns"]) == (
        "labelled",
        "stars",
        {"text": "comment", "label": "stars"},
    )
    assert (told["ignored"], told["read"], told["train"] + told["valid"]) == (["id"], 40, 40)
    assert told["first"] == {"text": "a dull film no 0", "label": "1"}
    assert not list(files.glob("runs"))
    trained = call_here("train", "reviews.csv", "--model", "naive_bayes", "--out", "r", "--json")
    assert json.loads(trained.out)["understood"] == told
    for words in (
        "target: stars",
        "text = comment",
        "ignored: id",
        "40 rows read",
        f"{told['valid']} held out",
        "no 0",
    ):
        assert words in trained.err
    assert json.loads(call_here("show", "r", "--json").out)["config"]["understood"] == told
    shown = call_here("show", "r").out
    assert re.search(r"target +stars", shown)
    assert "40 rows read" in shown


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            "inspect holes.csv",
            3,
            "holes.csv, line 3: no label in column 'label'; 2 of 5 rows lack it; mend it, or data.miss",
        ),
        ("inspect holes.csv --set data.missing=empty", 3, "no label in column 'label'"),
        ("inspect holes.csv --set data.missing=keep", 3, "line 3: no label"),
        (
            "inspect export.txt",
            3,
            "export.txt looks like a table of 3 columns with semicolons between them, and its name",
        ),
        ("inspect deu.tsv --set data.source=4", 2, "data.source=4: deu.tsv has no such column"),
        ("inspect pairs.csv --set data.source=en --set data.target=en", 2, "both column 'en'"),
        ("inspect reviews.csv --set data.delimiter=::", 2, "data.delimiter: '::' is no delimiter"),
        ("inspect reviews.csv --set data.encoding=klingon", 2, "there is no encoding 'klingon'"),
        ("inspect reviews.csv --task text", 2, "is a table with the columns id, comment, stars"),
        ("train reviews.csv --valid reviews.csv", 2, "--valid reviews.csv is reviews.csv itself, or a copy of it"),
        ("train reviews.csv --valid copy.csv", 2, "leave --valid out"),
        ("inspect book.csv", 3, "book.csv looks like an Excel workbook"),
        ("inspect notes.txt", 3, "notes.txt looks like JSON"),
        ("inspect one.csv --task labelled", 3, "1 rows in one.csv, all the same"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line_with_a_way_out(files: Path, words: str, code: int, message: str):
    shutil.copy("reviews.csv", "copy.csv")
    excel(Path("book.xlsx"), {"text": ["a"], "label": ["b"]})
    Path("book.xlsx").rename("book.csv")
    Path("notes.txt").write_text(json.dumps([{"text": "a", "label": 1}] * 9), encoding="utf-8")
    Path("one.csv").write_text("text,label\na,b\n", encoding="utf-8")
    outcome = call_here(*words.split())
    assert (outcome.code, outcome.err.count("\n")) == (code, 1), outcome.err
    assert message in outcome.err


@pytest.mark.parametrize(
    ("words", "task", "columns", "n"),
    [
        ("inspect pairs.csv", "pairs", {"source": "en", "target": "de"}, 9),
        ("inspect pairs.csv --set data.source=3 --set data.target=2", "pairs", {"source": "de", "target": "en"}, 9),
        ("inspect deu.tsv", "pairs", {"source": "1", "target": "2"}, 9),
        ("inspect holes.csv --set data.missing=drop", "labelled", {"text": "text", "label": "label"}, 5),
        ("inspect export.txt --set data.format=csv --set data.label=3", "labelled", {"text": "2", "label": "3"}, 9),
        ("inspect table", "labelled", {"text": "comment", "label": "stars"}, 40),
        ("inspect strings.json", "text", {"text": "text"}, None),
    ],
)
def test_tables_as_people_have_them_are_understood(files: Path, words: str, task: str, columns: dict[str, str], n: int):
    shutil.copy("reviews.csv", "table")
    Path("strings.json").write_text(json.dumps([f"text number {i} of all" for i in range(30)]), encoding="utf-8")
    outcome = call_here(*words.split(), "--json")
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    assert (told["task"], told["columns"]) == (task, columns)
    assert n is None or told["read"] == n


def test_a_format_whose_library_is_missing_names_what_to_install(files: Path, monkeypatch: pytest.MonkeyPatch):
    parquet(Path("a.parquet"), {"text": ["a", "b"], "label": ["x", "y"]})
    excel(Path("a.xlsx"), {"text": ["a", "b"], "label": ["x", "y"]})
    for module in ("pyarrow", "pyarrow.parquet", "openpyxl", "datasets"):
        monkeypatch.setitem(sys.modules, module, None)
    for name, package in (("a.parquet", "pyarrow"), ("a.xlsx", "openpyxl")):
        outcome = call_here("inspect", name)
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert f"needs {package}, which is not installed; pip install 'regard[tables]'" in outcome.err
    assert "pip install datasets" in call_here("inspect", "hf:imdb").err
