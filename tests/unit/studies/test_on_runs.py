"""Studies on a run: what they measure of models whose answers are known, and what they refuse."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from look_run import text_run
from regard.errors import CheckpointError, DataError, UsageError
from regard.explain.probe import placed_words
from regard.studies import reproduce
from regard.studies.claims.study import Lab
from regard.studies.imported.study import StudyOnRun
from regard.studies.registry import ON_RUNS, study_on

CPU = Lab("quick", 0, Path())


def on(name: str, run: Any, data: Path | None = None) -> StudyOnRun:
    made = study_on(name, "runs/mine", None if data is None else str(data))
    made.run = lambda lab: run
    return made


def test_senses_are_told_by_the_nearest_example_after_attention_and_not_before(tmp_path: Path) -> None:
    rows = ["dog\t0\tsmall\t2\tthe small dog", "dog\t1\tseen\t2\ta cat dog"] * 6
    (tmp_path / "senses.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    found = on("meaning", text_run("gpt"), tmp_path / "senses.tsv").measure(CPU)
    assert found["words"] == 1
    right = found["right"]
    assert right["before"] < 0.9  # the word is the same in both: the first example is as near as any
    assert right["layer 1"] == right["output"] == 1
    assert right["most frequent"] <= 2 / 3


class Reader:
    """A run whose vectors tell the label in 10 of 16 numbers."""

    def embed(self, texts: list[str]) -> np.ndarray:
        noise = np.random.default_rng(0).normal(size=(len(texts), 16))
        return noise + 3 * np.array([[1.0 if text.startswith("good") else -1.0] * 10 + [0] * 6 for text in texts])


def test_vectors_that_tell_the_label_need_few_labels_and_words_that_never_come_again_many(tmp_path: Path) -> None:
    rows = [f"{number % 2}\t{'good' if number % 2 else 'bad'}{number} film{number}" for number in range(720)]
    (tmp_path / "texts.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    study = on("pretraining", Reader(), tmp_path / "texts.tsv")
    found = study.measure(CPU)
    assert min(found["vectors"].values()) > 0.95
    assert max(found["words"].values()) < 0.6
    assert study.judge([found]).outcome == "holds"
    assert study.figure([found]).startswith("<svg")


def test_heads_of_an_untrained_model_copy_nothing() -> None:
    study = on("in_context", text_run("gpt"))
    found = study.measure(CPU)
    assert abs(found["second"] - found["first"]) < 1
    assert study.judge([found]).outcome == "does not hold"
    met = {"induction": 0.9, "layer": 2, "previous": 0.5, "first": -9.0, "second": -1.0}
    assert study.judge([met]).outcome == "holds"


def test_tags_are_probed_layer_by_layer(tmp_path: Path) -> None:
    lines = "the\tD\ndog\tN\nsees\tV\n\na\tD\ncat\tN\nruns\tV\n\n" * 6
    (tmp_path / "tags.conll").write_text(lines, encoding="utf-8")
    study = on("bert_layers", text_run("gpt"), tmp_path / "tags.conll")
    right = study.measure(CPU)["right"]
    assert list(right) == ["before", "layer 1", "layer 2"]
    assert right["before"] > 0.9  # every word has one tag
    assert study.judge([{"right": {"before": 0.5, "layer 1": 0.7, "layer 2": 0.6, "layer 3": 0.5}}]).outcome == "holds"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    how: dict[str, Any] = {"budget": "1steps", "size": "tiny", "length": 24, "device": "cpu", "quiet": True}
    for seed, name in enumerate(("one", "other")):
        regard.train("gpt", "world:stories?train=40&valid=9", out=folder / name, seed=seed, **how)
    regard.train("majority", "world:reviews?train=40&valid=9", out=folder / "labels", quiet=True)
    return folder


def test_a_result_is_known_by_the_weights_and_the_data_and_not_by_their_names(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained / "one", "runs/mine")
    rows = ["dog\t0\tsmall\t2\tthe small dog", "dog\t1\tseen\t2\ta cat dog"] * 6
    data = Path("senses.tsv")
    data.write_text("\n".join(rows) + "\n", encoding="utf-8")
    asked: list[str] = []

    def measure(self: StudyOnRun, lab: Lab) -> dict[str, Any]:
        asked.append(self.about["run_sha256"] + self.about["data_sha256"])
        return {"words": 1, "right": {"before": 0.5, "layer 1": 0.9, "most frequent": 0.6}}

    monkeypatch.setattr(type(study_on("meaning", "x", "y")), "measure", measure)

    def found(run: str = "runs/mine", **options: Any) -> reproduce.Result:
        return next(iter(reproduce.reproduce([study_on("meaning", run, str(data))], "quick", **options)))

    first = found()
    assert (first.study, len(asked)) == ("meaning@mine", 1)
    assert first.versions["run"] == "runs/mine"
    assert [one.study for one in reproduce.every_kept(reproduce.OUT)] == ["meaning@mine"]
    assert found() == found(str(tmp_path / "runs" / "mine")) == first  # by another name of the same
    data.write_text("\n".join(rows[:6]) + "\n", encoding="utf-8")
    found()
    shutil.rmtree("runs/mine")
    shutil.copytree(trained / "other", "runs/mine")
    found()
    assert len(set(asked)) == len(asked) == 3


def test_what_cannot_be_asked_is_refused_and_a_verdict_stays(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "out" / "meaning@one.json"
    data, wrong = tmp_path / "senses.tsv", tmp_path / "wrong.tsv"
    data.write_text("dog\t0\tsmall\t2\tthe small dog\n" * 8, encoding="utf-8")
    wrong.write_text("no table\n", encoding="utf-8")

    def result(run: str, data: Path) -> list[reproduce.Result]:
        study = study_on("meaning", str(trained / run), str(data))
        return list(reproduce.reproduce([study], "quick", out=kept.parent, force=True))

    result("one", data)
    before = kept.read_bytes()
    for run, of, error, told in [
        ("one", tmp_path / "no.tsv", DataError, "no.tsv"),
        ("one", wrong, DataError, "line 1: expected a table"),
        ("none/one", data, CheckpointError, "no such run folder"),
        ("labels", data, UsageError, "meaning asks for vectors of tokens"),
    ]:
        with pytest.raises(error, match=told):
            result(run, of)
    data.write_text("dog\t0\tsmall\t2\tthe small dog\n", encoding="utf-8")  # which is found out by measuring alone
    with pytest.raises(DataError, match="no word of it"):
        result("one", data)
    assert kept.read_bytes() == before
    assert [file.name for file in kept.parent.glob("*.json")] == [kept.name]


def test_words_are_placed_also_where_a_point_is_a_part_of_the_word_before() -> None:
    run, words = text_run("gpt"), ["the", "small", "dog"]
    ids, places = placed_words(run, words)
    assert (len(ids), places) == (4, [1, 2, 3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.explain.probe.word_numbers", lambda *_: [None, 0, 1, 1])
        assert placed_words(run, words)[1] == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("mask", None, "mask has no form on a run; meaning, pretraining"),
        ("maks", None, "did you mean 'mask'"),
        ("meaning", None, "needs labelled text, a table of word"),
        ("in_context", "x.tsv", "needs no data"),
    ],
)
def test_what_a_study_cannot_do_is_told_in_a_line(name: str, data: str | None, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        study_on(name, "runs/mine", data)


def test_a_table_of_another_form_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("dog\t0\tsmall\t9\tthe small dog\n", encoding="utf-8")
    for name in ("meaning", "pretraining"):
        (tmp_path / "y.tsv").write_text("no tab\n", encoding="utf-8")
        path = tmp_path / ("x.tsv" if name == "meaning" else "y.tsv")
        with pytest.raises(DataError, match="line 1: expected a table of"):
            assert on(name, None, path).rows


def test_every_form_on_a_run_is_of_a_study_of_the_same_name() -> None:
    assert set(ON_RUNS) <= set(reproduce.names())
