"""`regard predict`: files of every task go in, what was there comes out with the answers, and a stop loses nothing."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from calling import call_here, commands_of, done, environment, refused, told

from regard.cli.main import main
from regard.data.table_writer import Delimited
from regard.run.answer_file import predict_file
from regard.run.run import load
from regard.storage import disk
from regard.tasks import task

USAGE, DATA, RESOURCE, IN_USE, INTERRUPTED = 2, 3, 6, 7, 130
FITTED = {
    "labelled": ("reviews.csv", "naive_bayes"),
    "pairs": ("pairs.tsv", "nearest"),
    "tagged": ("words.conll", "most_frequent"),
    "captions": ("pictures", "nearest_picture"),
    "series": ("prices.csv", "naive"),
    "text": ("my.txt", "ngram"),
    "masked": ("my.txt", "cloze"),
}
PAGE = Path(__file__).parents[2] / "docs" / "predict.md"
NAMES_ON_THE_PAGE = {
    "reviews": "labelled",
    "translation": "pairs",
    "tags": "tagged",
    "shapes": "captions",
    "prices": "series",
    "mine": "text",
    "bert": "masked",
}
# As people have them: a mark, CRLF, semicolons, a quoted line end and quotes, other alphabets, and no labels.
AWKWARD = (
    "\ufeffid;comment;note\r\n"
    '007;"a fine film; really";"two\r\nlines"\r\n'
    '008;"a ""dull"" film";größer\r\n'
    "009;скучный dull film;日本語\r\n"
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every task, each fitted in a moment, and the data of each."""
    folder = tmp_path_factory.mktemp("predict")
    reviews = [
        f"{i},a {'fine' if i % 2 else 'dull'} film number {i % 7},{'good' if i % 2 else 'bad'}" for i in range(40)
    ]
    write(folder / "reviews.csv", "id,comment,stars\n" + "\n".join(reviews) + "\n")
    write(folder / "pairs.tsv", "".join(f"one {n}\teins {n}\ntwo {n}\tzwei {n}\n" for n in range(20)))
    write(
        folder / "words.conll", "".join(f"the DT\ndog NN\nruns{n} VB\n\na DT\ncat NN\nsits{n} VB\n\n" for n in range(9))
    )
    text = "".join(
        f"the {animal} sat on the {place} .\n" for animal in ("cat", "dog", "fox") for place in ("mat", "log")
    )
    write(folder / "my.txt", text * 12)
    times = np.datetime64("2024-01-01T00:00:00") + np.arange(24 * 40) * np.timedelta64(3600, "s")
    rows = [f"{time},{20 + 5 * np.sin(i / 4):.3f}\n" for i, time in enumerate(times)]
    write(folder / "prices.csv", "time,price\n" + "".join(rows))
    pictures(folder / "pictures")
    before = Path.cwd()
    os.chdir(folder)
    try:
        for name, (data, model) in FITTED.items():
            sets = ("--set", "data.text=comment") if name == "labelled" else ()
            done("train", data, "--task", name, "--model", model, "--out", name, "--quiet", *sets)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def at(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder with the runs beside it."""
    monkeypatch.chdir(tmp_path)
    for name in FITTED:
        (tmp_path / name).symlink_to(runs / name)
    return tmp_path


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few inputs are answered at a time, so that a small file has many parts."""
    monkeypatch.setattr(task, "MANY_AT_ONCE", 4)


def write(path: Path, text: str) -> str:
    path.write_bytes(text.encode())
    return str(path)


def pictures(folder: Path) -> None:
    from PIL import Image

    folder.mkdir()
    for number in range(20):
        Image.new("RGB", (32, 32), (250 - number, 0, 0) if number % 2 else (0, 0, 250 - number)).save(
            folder / f"{number:02}.png"
        )
    names = [f"{n:02}.png\ta {'red' if n % 2 else 'blue'} square\n" for n in range(20)]
    write(folder / "captions.tsv", "file\tcaption\n" + "".join(names))


def texts(path: str, count: int) -> str:
    words = ("fine", "dull")
    return write(Path(path), "id,comment\n" + "".join(f"{i},a {words[i % 2]} film {i}\n" for i in range(count)))


def rows(text: str, mark: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=mark))


def test_a_table_as_people_have_it_keeps_its_cells_and_gets_answer_and_probability(at: Path):
    write(at / "awkward.csv", AWKWARD)
    told_line = done("predict", "labelled", "awkward.csv", "--out", "answers.csv")
    assert "3 inputs answered; added: answer, probability" in told_line
    found = rows((at / "answers.csv").read_bytes().decode())
    assert [row["answer"] for row in found] == ["good", "bad", "bad"]
    assert all(0.5 < float(row["probability"]) <= 1 for row in found)
    kept = [{key: row[key] for key in ("id", "comment", "note")} for row in found]
    assert kept == rows(AWKWARD.removeprefix("\ufeff"), ";")
    assert not list(at.glob("*.partial*"))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_every_form_holds_the_same_and_is_read_again_as_a_table(at: Path, ending: str):
    write(at / "in.jsonl", '{"n": 1, "comment": "a fine film", "tags": ["a"]}\n{"n": 2.5, "comment": "dull"}\n')
    done("predict", "labelled", "in.jsonl", "--out", f"out.{ending}")
    done("predict", "labelled", f"out.{ending}", "--out", "again.jsonl")
    first, second = (json.loads(line) for line in (at / "again.jsonl").read_text(encoding="utf-8").splitlines())
    assert (first["comment"], first["answer"], first["answer_2"]) == ("a fine film", "good", "good")
    assert (second["answer"], second["answer_2"]) == ("bad", "bad")
    is_typed = ending not in ("csv", "tsv")
    assert (first["n"], second["n"]) == ((1, 2.5) if is_typed else ("1", "2.5"))
    assert first["tags"] == (["a"] if is_typed else '["a"]')
    assert not second["tags"]


def test_without_out_rows_go_to_standard_output_as_csv_or_as_an_object_a_line(at: Path):
    texts("in.csv", 3)
    assert rows(done("predict", "labelled", "in.csv", "--limit", "2"))[1]["answer"] == "bad"
    objects = [json.loads(line) for line in done("predict", "labelled", "in.csv", "--json").splitlines()]
    assert [one["answer"] for one in objects] == ["good", "bad", "good"]
    assert list(objects[0]) == ["id", "comment", "answer", "probability"]
    told_object = told("predict", "labelled", "in.csv", "--out", "a.csv")
    assert told_object["inputs"] == 3
    assert told_object["columns"] == ["answer", "probability"]


def test_a_table_without_a_header_gets_none_and_a_text_is_an_input_a_line(at: Path):
    write(at / "bare.csv", "1,a fine film\n2,a dull film\n" * 3)
    assert done("predict", "labelled", "bare.csv").splitlines()[1].startswith("2,a dull film,bad,0.")
    write(at / "texts.txt", "a fine film\n\na dull film\n")
    outcome = call_here("predict", "labelled", "texts.txt")
    assert outcome.err == "texts.txt is plain text: 3 lines, an input each\n"
    lines = outcome.out.splitlines()
    assert (lines[0], lines[2], len(lines)) == ("good", "bad", 3)
    done("predict", "labelled", "texts.txt", "--out", "t.csv")
    assert rows((at / "t.csv").read_text(encoding="utf-8"))[2]["text"] == "a dull film"


def test_columns_are_told_by_training_by_name_by_setting_or_refused(at: Path):
    write(at / "named.csv", "id,review\n1,a dull film\n")
    outcome = call_here("predict", "labelled", "named.csv")
    assert rows(outcome.out)[0]["answer"] == "bad"
    assert "named.csv: review is read; the run was trained on comment" in outcome.err
    write(at / "two.csv", "left,right\na fine film,a dull film\n")
    two = ("predict", "labelled", "two.csv", "--set", "data.header=yes")
    line = refused(*two)
    assert "the run reads the column 'comment', and the table has left, right" in line
    assert "say which with --set data.text=NAME" in line
    assert rows(done(*two, "--set", "data.text=right"))[0]["answer"] == "bad"
    assert rows(done(*two, "--set", "data.text=1"))[0]["answer"] == "good"


def test_missing_texts_are_refused_dropped_or_empty_as_asked(at: Path):
    write(at / "holes.csv", "id,comment\n1,a dull film\n2,\n3,a fine film\n")
    assert "holes.csv, line 3: no text in column 'comment'" in refused("predict", "labelled", "holes.csv")
    dropped = call_here("predict", "labelled", "holes.csv", "--set", "data.missing=drop")
    assert [row["id"] for row in rows(dropped.out)] == ["1", "3"]
    assert "dropped 1 without a text" in dropped.err
    assert len(rows(done("predict", "labelled", "holes.csv", "--set", "data.missing=empty"))) == 3


def test_pairs_are_answered_beside_their_sources_and_line_by_line(at: Path):
    sources = ["two 5", "one 3", "one 7"]
    answers = [done("generate", "pairs", source) for source in sources]
    write(at / "sources.csv", "id,source\n" + "".join(f"x,{source}\n" for source in sources))
    assert [row["answer"] + "\n" for row in rows(done("predict", "pairs", "sources.csv"))] == answers
    write(at / "sources.txt", "\n".join(sources) + "\n")
    done("predict", "pairs", "sources.txt", "--out", "targets.txt")
    assert (at / "targets.txt").read_text(encoding="utf-8") == "".join(answers)


def test_conll_keeps_its_lines_with_a_tag_more_and_conll_u_its_ten_columns(at: Path):
    write(at / "in.conll", "-DOCSTART- -X-\n\nthe DT\ndog XX\n\n\na DT\ncat NN\n")
    expected = "-DOCSTART- -X-\n\nthe DT DT\ndog XX NN\n\n\na DT DT\ncat NN NN\n"
    assert done("predict", "tagged", "in.conll") == expected
    write(at / "bare.conll", "the\r\ndog\r\n\r\na\r\n")
    done("predict", "tagged", "bare.conll", "--out", "out.conll")
    assert (at / "out.conll").read_text(encoding="utf-8") == "the\tDT\ndog\tNN\n\na\tDT\n"
    word = "{}\t{}\t_\t{}\t_\t_\t0\troot\t_\t_\n"
    sentence = (
        "# text = the dogs\n" + word.format(1, "the", "_") + "1-2\tx" + "\t_" * 8 + "\n" + word.format(2, "dog", "_")
    )
    write(at / "in.conllu", sentence + "\n" + word.format(1, "a", "_"))
    lines = done("predict", "tagged", "in.conllu").splitlines()
    assert [line.split("\t")[3] for line in lines if "\troot" in line] == ["DT", "NN", "DT"]
    assert all(len(line.split("\t")) == 10 for line in lines if line and not line.startswith("#"))
    assert (lines[0], lines[4]) == ("# text = the dogs", "")


def test_sentences_of_tables_and_of_plain_text_are_tagged_as_lists(at: Path):
    write(at / "in.jsonl", '{"tokens": ["the", "dog"]}\n{"tokens": ["a"]}\n')
    found = [json.loads(line) for line in done("predict", "tagged", "in.jsonl", "--json").splitlines()]
    assert found == [{"tokens": ["the", "dog"], "answer": ["DT", "NN"]}, {"tokens": ["a"], "answer": ["DT"]}]
    write(at / "in.txt", "the dog runs1\na cat\n")
    assert [json.loads(row["answer"]) for row in rows(done("predict", "tagged", "in.txt"))] == [
        ["DT", "NN", "VB"],
        ["DT", "NN"],
    ]


def test_sentences_without_words_and_rows_that_hold_none_are_told(at: Path):
    write(at / "in.jsonl", '{"tokens": []}\n{"tokens": ["the", "dog"]}\n{"tokens": null}\n')
    found = [json.loads(line)["answer"] for line in done("predict", "tagged", "in.jsonl", "--json").splitlines()]
    assert found == [[], ["DT", "NN"], []]
    write(at / "bad.jsonl", '{"tokens": ["a"]}\n{"tokens": [["a"]]}\n')
    assert "bad.jsonl, line 2, column 'tokens': expected a list of words" in refused("predict", "tagged", "bad.jsonl")


def test_a_folder_of_pictures_becomes_a_table_that_it_could_be_trained_with(at: Path, runs: Path):
    done("predict", "captions", str(runs / "pictures"), "--out", "captions.tsv")
    found = rows((at / "captions.tsv").read_text(encoding="utf-8"), "\t")
    assert found[:2] == [{"file": "00.png", "caption": "a blue square"}, {"file": "01.png", "caption": "a red square"}]
    (at / "pictures").symlink_to(runs / "pictures")
    write(at / "list.csv", "who,file\nme,pictures/03.png\n")
    assert rows(done("predict", "captions", "list.csv")) == [
        {"who": "me", "file": "pictures/03.png", "caption": "a red square"}
    ]
    write(at / "wrong.csv", "who,file\nme,pictures/99.png\n")
    assert "wrong.csv, line 2: there is no picture" in refused("predict", "captions", "wrong.csv")


def test_a_series_is_forecast_from_its_end_on_as_generate_does(at: Path, runs: Path):
    found = rows(done("predict", "series", str(runs / "prices.csv")))
    generated = rows(done("generate", "series", str(runs / "prices.csv")))
    assert (len(found), found[0]["time"]) == (24, "2024-02-10T00:00:00")
    for one, other in zip(found, generated, strict=True):
        assert one.keys() == other.keys()
        assert float(one["q0.5"]) == pytest.approx(float(other["q0.5"]), abs=1e-4)


def test_prompts_go_on_with_what_is_most_probable_and_masks_are_filled_in(at: Path):
    write(at / "prompts.jsonl", '{"text": "the cat sat"}\n{"text": "the dog"}\n')
    found = [
        json.loads(line)
        for line in done("predict", "text", "prompts.jsonl", "--json", "--max-tokens", "9").splitlines()
    ]
    for one in found:
        written = done("generate", "text", one["text"], "--temperature", "0", "--max-tokens", "9")
        assert written == one["text"] + one["answer"] + "\n"
    write(at / "gaps.txt", "the [MASK] sat\nthe cat [MASK]\n")
    assert done("predict", "masked", "gaps.txt").splitlines()[1].startswith("the cat ")
    write(at / "none.csv", "text\nthe [MASK] sat\nno gap\n")
    assert "none.csv, line 3: the input has no [MASK]" in refused("predict", "masked", "none.csv")


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_a_stop_leaves_what_was_answered_and_going_on_gives_the_same_bytes(
    at: Path, few: None, ending: str, monkeypatch: pytest.MonkeyPatch
):
    texts("in.csv", 18)
    done("predict", "labelled", "in.csv", "--out", f"whole.{ending}")
    append, count = disk.append, [0]

    def stopped(path: Path, data: bytes) -> None:
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt
        append(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "append", stopped)
        outcome = call_here("predict", "labelled", "in.csv", "--out", f"a.{ending}")
    assert outcome.code == INTERRUPTED
    assert "go on with --resume" in outcome.err
    assert not (at / f"a.{ending}").exists()
    assert "holds 8 rows" in refused("predict", "labelled", "in.csv", "--out", f"a.{ending}")
    assert "18 inputs answered, 8 of them before" in done(
        "predict", "labelled", "in.csv", "--out", f"a.{ending}", "--resume"
    )
    assert (at / f"a.{ending}").read_bytes() == (at / f"whole.{ending}").read_bytes()
    assert not list(at.glob("*.partial*"))


def test_a_killed_process_is_gone_on_with_to_the_same_bytes(at: Path, few: None):
    texts("in.csv", 18)
    done("predict", "labelled", "in.csv", "--out", "whole.csv")
    program = (
        "import os, signal, sys\nfrom regard.storage import disk\nfrom regard.tasks import task\n"
        "task.MANY_AT_ONCE = 4\nappend, count = disk.append, [0]\n"
        "def killed(path, data):\n"
        "    append(path, data)\n    count[0] += 1\n"
        "    if count[0] == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "disk.append = killed\n"
        "from regard.cli.main import main\nmain(sys.argv[1:])\n"
    )
    argv = [sys.executable, "-c", program, "predict", "labelled", "in.csv", "--out", "a.csv"]
    process = subprocess.run(argv, env=environment(), cwd=at, capture_output=True, timeout=60, check=False)
    assert process.returncode == -signal.SIGKILL
    assert (at / "a.csv.partial").exists()
    with (at / "a.csv.partial").open("ab") as partial:
        partial.write(b"half of a ro")  # as a write that was cut short leaves it
    assert "12 of them before" in done("predict", "labelled", "in.csv", "--out", "a.csv", "--resume")
    assert (at / "a.csv").read_bytes() == (at / "whole.csv").read_bytes()


def interrupted(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """a.csv.partial with the first eight rows of in.csv."""
    texts("in.csv", 18)
    append, count = disk.append, [0]

    def full(path: Path, data: bytes) -> None:
        count[0] += 1
        if count[0] == 3:
            raise OSError(28, "No space left on device")
        append(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "append", full)
        outcome = call_here("predict", "labelled", "in.csv", "--out", "a.csv")
    assert outcome.code == RESOURCE
    assert "No space left on device; free some space" in outcome.err.splitlines()[-1]


def test_only_the_same_run_settings_and_rows_are_gone_on_with(at: Path, few: None, monkeypatch: pytest.MonkeyPatch):
    interrupted(at, monkeypatch)
    go_on = ("predict", "labelled", "in.csv", "--out", "a.csv", "--resume")
    assert "another settings" in refused(*go_on, "--set", "data.missing=drop")
    assert "another limit" in refused(*go_on, "--limit", "9")
    done("train", str(at / "labelled" / ".." / "reviews.csv"), "--model", "majority", "--out", "other", "--quiet")
    assert "another run" in refused("predict", "other", *go_on[2:])
    whole = Path("in.csv").read_text(encoding="utf-8")
    texts("in.csv", 6)
    assert "its first 8 inputs are not the same" in refused(*go_on)
    write(at / "in.csv", whole.replace("dull film 3", "dull film x"))
    assert "was begun with other data" in refused(*go_on)
    write(at / "in.csv", whole.replace("dull film 9", "fine film 9"))  # of what was not answered yet
    assert "8 of them before" in done(*go_on)
    done("predict", "labelled", "in.csv", "--out", "b.csv")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_a_file_is_replaced_only_by_force_and_written_by_one_at_a_time(
    at: Path, few: None, monkeypatch: pytest.MonkeyPatch
):
    interrupted(at, monkeypatch)
    assert "begin anew with --force" in refused("predict", "labelled", "in.csv", "--out", "a.csv")
    done("predict", "labelled", "in.csv", "--out", "a.csv", "--force")
    whole = Path("a.csv").read_bytes()
    assert "a.csv is there already" in refused("predict", "labelled", "in.csv", "--out", "a.csv")
    descriptor = disk.try_lock(at / "b.csv.partial")
    outcome = call_here("predict", "labelled", "in.csv", "--out", "b.csv")
    assert outcome.code == IN_USE
    assert "is being written by another process" in outcome.err
    assert descriptor is not None
    disk.close(descriptor)
    assert "is the data itself" in refused("predict", "labelled", "in.csv", "--out", "in.csv", "--force")
    assert Path("a.csv").read_bytes() == whole


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("empty.csv",), "empty.csv is empty"),
        (("header.csv",), "holds a header and nothing else"),
        (("twice.csv",), "2 columns are called 'comment'; rename all but one"),
        (("none.csv",), "there is no file none.csv"),
        (("latin.csv",), "not UTF-8"),
        (("in.csv", "--out", "a.ods"), "answers are written to .csv .tsv .jsonl .json .parquet"),
        (("in.csv", "--out", "nowhere/a.csv"), "there is no folder nowhere"),
        (("in.csv", "--out", "/dev/null"), "is no regular file"),
        (("in.csv", "--resume"), "name it with --out"),
        (("in.csv", "--beam", "2"), "beam means nothing to a run of the task labelled"),
        (("in.csv", "--set", "train.lr=1"), "data is read by settings such as data.text"),
        (("in.csv", "--set", "data.gaps=skip"), "data.gaps means nothing to the task labelled"),
        (("in.csv", "--set", "data.text=nobody"), "has no such column"),
        (("in.csv", "--limit", "0"), "--limit: expected 1 or more"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_line_and_leaves_nothing(
    at: Path, argv: tuple[str, ...], message: str
):
    texts("in.csv", 3)
    for name, content in (("empty", b""), ("header", b"id,comment\n"), ("twice", b"comment,comment\na,b\n")):
        (at / f"{name}.csv").write_bytes(content)
    (at / "latin.csv").write_bytes(b"id,comment\n1,caf\xe9\n")
    before = sorted(at.iterdir())
    outcome = call_here("predict", "labelled", *argv)
    assert outcome.code in (USAGE, DATA), outcome.err
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert sorted(at.iterdir()) == before


def test_generate_says_what_it_takes_for_a_path(at: Path, runs: Path):
    texts("in.csv", 3)
    for prompt, words in (("in.csv", "is a file"), ("data/clean.csv", "looks like a file, which is not there")):
        line = refused("generate", "labelled", prompt)
        assert words in line
        assert f"regard predict labelled {prompt}" in line
        assert "--text" in line
        assert done("generate", "labelled", prompt, "--text") in ("good\n", "bad\n")
    assert done("generate", "labelled", "see docs/data.md for a fine film")
    assert done("generate", "labelled", "in.csv\nfine") == done("generate", "labelled", "in.csv\nfine", "--text")
    assert done("generate", "captions", str(runs / "pictures" / "01.png")) == "a red square\n"
    assert done("generate", "series", str(runs / "prices.csv")).startswith("time,")


@pytest.mark.parametrize(("name", "opened"), [("a.csv.gz", gzip.open), ("a.tsv.xz", lzma.open)])
def test_a_packed_file_holds_the_bytes_of_the_plain_one_and_always_the_same(name: str, opened, at: Path):
    texts("in.csv", 10)
    plain = Path(name).stem
    for out in (plain, name):
        done("predict", "labelled", "in.csv", "--out", out)
    with opened(name) as file:
        assert file.read() == Path(plain).read_bytes()
    before = Path(name).read_bytes()
    done("predict", "labelled", "in.csv", "--out", name, "--force")
    assert Path(name).read_bytes() == before
    assert "packed already" in refused("predict", "labelled", "in.csv", "--out", "a.parquet.gz")


def test_a_workbook_holds_texts_as_texts_and_numbers_as_numbers(at: Path):
    openpyxl = pytest.importorskip("openpyxl")
    write(at / "in.jsonl", '{"id": 7, "comment": "=1+1 \\u0007"}\n{"id": null, "comment": "a dull film"}\n')
    done("predict", "labelled", "in.jsonl", "--out", "a.xlsx", "--set", "data.text=comment")
    rows = list(openpyxl.load_workbook("a.xlsx").active.iter_rows(values_only=True))
    assert rows[0] == ("id", "comment", "answer", "probability")
    assert rows[1][:2] == (7, "=1+1 \ufffd")
    assert (rows[2][0], rows[2][2]) == (None, "bad")
    assert all(isinstance(row[3], float) for row in rows[1:])
    # What Excel cannot hold as a number is a text.
    given = [999_999_999_999_999, 12_345_678_901_234_567, -(10**15), 0.5, float("inf"), float("-inf"), 1e300, True]
    write(at / "in.jsonl", "".join(json.dumps({"id": one, "comment": "fine"}) + "\n" for one in given))
    done("predict", "labelled", "in.jsonl", "--out", "b.xlsx", "--set", "data.text=comment")
    told = [row[0] for row in openpyxl.load_workbook("b.xlsx").active.iter_rows(values_only=True)][1:]
    assert told == [given[0], "12345678901234567", "-1000000000000000", 0.5, "inf", "-inf", 1e300, True]


def test_a_parquet_column_of_long_whole_numbers_loses_no_digit(at: Path):
    parquet = pytest.importorskip("pyarrow.parquet")
    for name, given, expected in [
        ("a", [2**53 + 1, 7], [2**53 + 1, 7]),
        ("b", [2**53 + 1, 0.5], ["9007199254740993", "0.5"]),
        ("c", [7, 0.5], [7.0, 0.5]),
    ]:
        write(at / "in.jsonl", "".join(json.dumps({"id": one, "comment": "fine"}) + "\n" for one in given))
        done("predict", "labelled", "in.jsonl", "--out", f"{name}.parquet", "--set", "data.text=comment")
        assert parquet.read_table(f"{name}.parquet")["id"].to_pylist() == expected


def test_texts_are_drawn_by_temperature_and_a_block_is_drawn_unlike_the_one_before(at: Path, monkeypatch):
    monkeypatch.setattr(task, "FEW_AT_ONCE", 2)
    write(at / "p.jsonl", '{"text": "the cat"}\n' * 6)
    drawn = ("predict", "text", "p.jsonl", "--temperature", "1.5", "--max-tokens", "12", "--json")
    found = done(*drawn, "--seed", "3")
    assert done(*drawn, "--seed", "3") == found != done(*drawn, "--seed", "4")
    answers = [json.loads(line)["answer"] for line in found.splitlines()]
    assert answers[:2] != answers[2:4] != answers[4:]
    assert "say --temperature too" in refused("predict", "text", "p.jsonl", "--seed", "3")
    assert "temperature means nothing" in refused("predict", "labelled", "p.jsonl", "--temperature", "1")


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_rows_are_read_again_by_the_csv_module_as_they_were(mark: str):
    column = ["plain", "", 'a "quote"', "a, b; c\td", "line\nend", "line\rend", " blank "]
    columns = {"one": column, "two": [1, 2.5, None, True, ["a", "b,c"], "x", ""]}
    written = Delimited(mark).rows(columns, 0)
    found = list(csv.reader(io.StringIO(written, newline=""), delimiter=mark))
    assert [row[0] for row in found] == column
    assert [row[1] for row in found] == ["1", "2.5", "", "true", '["a", "b,c"]', "x", ""]
    alone = Delimited(mark).rows({"one": column}, 0)
    assert [row for (row,) in csv.reader(io.StringIO(alone, newline=""), delimiter=mark)] == column


def test_python_has_the_same_and_answers_as_in_memory(at: Path, few: None):
    texts("in.csv", 10)
    run = load("labelled")
    found = predict_file(run, "in.csv", "a.jsonl", limit=9)
    assert (found.inputs, found.columns, found.resumed) == (9, ("answer", "probability"), 0)
    written = [json.loads(line) for line in Path("a.jsonl").read_text(encoding="utf-8").splitlines()]
    answers = run.answers([row["comment"] for row in written])
    assert [row["answer"] for row in written] == [answer.text for answer in answers]
    assert main(["predict", "labelled", "in.csv", "--out", "a.jsonl"]) == USAGE


def test_every_command_and_the_python_of_the_page_work_in_their_order(
    at: Path, runs: Path, capsys: pytest.CaptureFixture[str]
):
    (at / "runs").mkdir()
    for name, own in NAMES_ON_THE_PAGE.items():
        (at / "runs" / name).symlink_to(runs / own)
    for name in ("pictures", "prices.csv", "words.conll"):
        (at / name).symlink_to(runs / name)
    texts("new.csv", 9)
    write(at / "sources.txt", "one 3\n\ntwo 5\n")
    write(at / "prompts.jsonl", '{"text": "the cat"}\n')
    write(at / "gaps.txt", "the [MASK] sat\n")
    write(at / "other.csv", "remark,reply\na fine film,a dull film\n" * 2)
    write(at / "holes.csv", "id,comment\n1,a dull film\n2,\n")
    found = commands_of(PAGE)
    assert len(found) > 12
    for argv in found:
        if "--resume" in argv:
            (at / argv[argv.index("--out") + 1]).unlink()
        outcome = call_here(*argv)
        assert outcome.code == 0, (argv, outcome.err)
        assert outcome.out, argv
    (python,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile(python, "predict.md", "exec"), {})
    assert "9 ('answer', 'probability')" in capsys.readouterr().out
