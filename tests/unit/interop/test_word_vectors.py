"""Files of word vectors: read as they are written, runs that give vectors, and what models begin with."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.data.word_vectors import read_vectors
from regard.errors import DataError, UsageError
from regard.studies.compare import compare

WORDS = ["the", "cat", "dog", "über", "good", "bad", "<unk>", ". . .", "the"]
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 8)).round(4).astype(np.float32)
LINES = [f"{word} {' '.join(map(str, row))}" for word, row in zip(WORDS, VECTORS, strict=True)]


def file_of(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_files_of_glove_and_of_fasttext_are_read_packed_or_not(tmp_path: Path) -> None:
    glove = file_of(tmp_path / "glove.txt", LINES)
    fast = file_of(tmp_path / "fast.vec", [f"{len(LINES)} 8", *(f"{line} \r" for line in LINES)])
    packed = tmp_path / "glove.txt.gz"
    packed.write_bytes(gzip.compress(glove.read_bytes()))
    for path in (glove, fast, packed):
        found = read_vectors(path)
        assert (found.words, found.read) == (WORDS[:-1], len(WORDS))
        assert np.array_equal(found.vectors, VECTORS[:-1])
        some = read_vectors(path, {"dog", "wolf"})
        assert some.words == ["dog"]
        assert np.array_equal(some.vectors, VECTORS[2:3])


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([*LINES, "fox 1 2"], "line 10: has 2 numbers, expected 8"),
        ([*LINES, "fox 1 2 3 4 5 6 7 eight"], "line 10: 'eight' is no number"),
        ([*LINES, "fox 1 2 3 4 5 6 7 nan"], "line 10: 'nan' is no number"),
        ([""], "line 1: has 0 numbers"),
        ([f"{len(LINES) + 1} 8", *LINES], "cut short: its first line says 10 words, and it has 9"),
        ([f"{len(LINES)} 0", *LINES], "line 1: says that vectors have 0 numbers"),
    ],
)
def test_a_line_that_is_none_is_told_by_its_number(lines: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=told):
        regard.import_run(file_of(tmp_path / "my.txt", lines), tmp_path / "run")
    (tmp_path / "my.vec").write_bytes(b"the 1 2\n\xff\xfe 1 2\n")
    with pytest.raises(DataError, match="line 2: is no UTF-8"):
        read_vectors(tmp_path / "my.vec")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("damage", ["bits", "cut", "head"])
def test_a_damaged_packed_file_is_told_in_a_line(damage: str, tmp_path: Path) -> None:
    whole = gzip.compress("\n".join(LINES * 40).encode())
    bytes_of = {"bits": whole[:10] + b"\xff" + whole[11:], "cut": whole[: len(whole) // 2], "head": b"no gzip" + whole}
    (tmp_path / "my.vec.gz").write_bytes(bytes_of[damage])
    with pytest.raises(DataError, match=r"my\.vec\.gz is (cut short|no good \.gz file)[^\n]*copy or download it again"):
        read_vectors(tmp_path / "my.vec.gz")


def test_a_run_of_vectors_gives_those_of_words_and_of_texts(tmp_path: Path) -> None:
    told = regard.import_run(file_of(tmp_path / "my.txt", LINES), tmp_path / "run")
    assert (told.architecture, told.lost) == ("vectors", ("words that hold blanks: 1",))
    run = regard.load(tmp_path / "run", device="cpu")
    words = run.encode("the über dog")
    torch.testing.assert_close(words, torch.from_numpy(VECTORS[[0, 3, 2]]), rtol=0, atol=0)
    vector = run.embed(["the über dog"])[0]
    mean = VECTORS[[0, 3, 2]].mean(0)
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)
    rows = "".join(f"the {thing} {i}\t{thing}\n" for thing in ("cat", "dog") for i in range(10))
    (tmp_path / "my.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    start = {"start": str(tmp_path / "run"), "device": "cpu", "quiet": True}
    tuned = regard.train("classifier", tmp_path / "my.tsv", budget="1steps", out=tmp_path / "tuned", **start)
    assert tuned.generate("the cat") in ("cat", "dog")


@pytest.mark.parametrize("model", ["classifier", "lstm"])
def test_embeddings_begin_with_the_vectors_of_their_words(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = file_of(tmp_path / "my.txt", LINES)
    regard.import_run(source, tmp_path / "vectors")
    rows = "".join(f"The {thing} fox{i},{thing}\n" for thing in ("cat", "dog") for i in range(10))
    data = tmp_path / ("my.csv" if model == "classifier" else "text.txt")
    data.write_text("text,label\n" + rows if model == "classifier" else rows.replace(",", " "), encoding="utf-8")
    for number, given in enumerate((source, tmp_path / "vectors")):
        settings = {"tokens": "words", "d_model": 8, "vectors": str(given), "lr": 1e-12, "device": "cpu"}
        run = regard.train(model, data, budget="1steps", out=tmp_path / f"run{number}", **settings)
        (table,) = [part.weight for name, part in run.model.named_modules() if name.endswith("token_to_vector")]  # pyright: ignore[reportAttributeAccessIssue]
        tokens = [int(run.tokenizer.encode(word)[0]) for word in ("The", "cat")]
        found = table[tokens].detach().double().numpy()
        cosine = (found * VECTORS[:2]).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(VECTORS[:2], axis=1)
        np.testing.assert_allclose(cosine, 1.0, atol=1e-5)
        assert f"words found among {len(WORDS) - number * 2:,} in {given}" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"choose --set model\.d_model=8"):
        regard.train(
            model, data, budget="1steps", out=tmp_path / "wide", d_model=16, tokens="words", vectors=str(source)
        )
    with pytest.raises(UsageError, match="no file of word vectors"):
        regard.train(model, data, budget="1steps", out=tmp_path / "none", tokens="words", vectors="nowhere.vec")


def test_what_is_imported_from_vectors_has_no_head_to_go_on_with(tmp_path: Path) -> None:
    regard.import_run(file_of(tmp_path / "my.txt", LINES), tmp_path / "run")
    (tmp_path / "text.txt").write_text("the cat and the dog\n" * 40, encoding="utf-8")
    with pytest.raises(
        UsageError, match=r"has no head to go on with; start one of these tasks from it: [^\n]*labelled"
    ):
        regard.train(None, tmp_path / "text.txt", start=str(tmp_path / "run"), out=tmp_path / "on", quiet=True)
    assert not (tmp_path / "on").exists()


def test_vectors_of_words_beside_the_embeddings_of_another_run_are_refused(tmp_path: Path) -> None:
    source = file_of(tmp_path / "my.txt", LINES)
    regard.import_run(source, tmp_path / "run")
    rows = "".join(f"the {thing} {i}\t{thing}\n" for thing in ("cat", "dog") for i in range(10))
    (tmp_path / "my.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    given = {"vectors": str(source), "start": str(tmp_path / "run")}
    told = r"train\.vectors: the embeddings are those of --from .*run; leave one of them out"
    with pytest.raises(UsageError, match=told):
        regard.train("classifier", tmp_path / "my.tsv", out=tmp_path / "on", quiet=True, **given)
    assert not (tmp_path / "on").exists()
    with pytest.raises(UsageError, match=told):
        compare([str(tmp_path / "run")], str(tmp_path / "my.tsv"), out=str(tmp_path / "c"), vectors=str(source))
