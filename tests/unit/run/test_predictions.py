"""Answers to many inputs in the shape of the task, probabilities, vectors; and what no task can mean."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import regard
from plugin_example import copied
from regard import tasks
from regard.core import registry
from regard.data.example import Labelled
from regard.errors import RegardError, UsageError
from regard.run.answer_file import predict_file, settings_with
from regard.tasks.forecast import Forecast

TEXTS = [f"a {word} film, part {n}" for n in range(20) for word in ("fine", "dull")]
LABELS = ["good", "bad"] * 20
REVIEWS = pandas.DataFrame({"id": range(40), "comment": TEXTS, "stars": LABELS})
TAGGED = [(["the", noun, verb], ["DET", "NOUN", "VERB"]) for noun in ("dog", "cat", "hen") for verb in ("runs", "sees")]
PAIRS = [(f"le chien {n}", f"the dog {n * 7}") for n in range(30)]
HOURS = pandas.DataFrame(
    {"price": 20 + np.sin(np.arange(480) / 4)}, index=pandas.date_range("2024-01-01", periods=480, freq="h")
)
DATA: dict[str, tuple[str, Any]] = {
    "labelled": ("classifier", REVIEWS),
    "framed": ("bert", TEXTS),
    "text": ("lstm", TEXTS),
    "attention": ("gpt", TEXTS),
    "tagged": ("tagger", TAGGED),
    "pairs": ("transformer", PAIRS),
    "reversed": ("seq2seq", PAIRS),
    "captions": ("captioner", "world:shapes?train=12&valid=4"),
    "series": ("dlinear", HOURS),
}
ENCODING = ("labelled", "framed", "text", "attention", "tagged", "pairs", "reversed")
ONE = {"captions": np.zeros((8, 8, 3), np.uint8), "series": HOURS, "framed": "a [MASK] film"}
MORE = {"attention": {"position": "learned"}, "reversed": {"model.reverse": True}}
FEW = {"text": {"max_tokens": 3}, "attention": {"max_tokens": 3}}


class Runs:
    """A run of each task, trained for two steps when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.made = folder, dict[str, regard.Run]()

    def __getitem__(self, name: str) -> regard.Run:
        if name not in self.made:
            model, data = DATA[name]
            steps: dict[str, Any] = {"size": "tiny", "budget": "2steps", "batch_size": 4, "length": 24}
            short = {} if name == "series" else steps | MORE.get(name, {})
            self.made[name] = regard.train(model, data, out=self.folder / name, quiet=True, device="cpu", **short)
        return self.made[name]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("predict"))


def test_one_answer_for_each_input_from_whatever_holds_them(runs: Runs):
    run, some = runs["labelled"], TEXTS[:3]
    expected = [run.generate(text) for text in some]
    frame = REVIEWS.head(3)
    for inputs in (
        *(some, tuple(some), iter(some), np.array(some), pandas.Series(some), polars.Series(some)),
        *(frame, polars.DataFrame(frame), pyarrow.Table.from_pandas(frame), {"comment": some}, {"q": some}),
        [{"comment": text} for text in some],
        [Labelled(text, "good") for text in some],
    ):
        assert run.predict(inputs) == expected
    assert run.generate(some) == run.generate(iter(some)) == expected


def test_probabilities_are_those_of_the_answers_and_sum_to_one(runs: Runs):
    run = runs["labelled"]
    found = run.predict_proba(REVIEWS)
    assert (run.classes, found.shape) == (["bad", "good"], (40, 2))
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-12)
    assert [run.classes[place] for place in found.argmax(1)] == run.predict(REVIEWS)
    with pytest.raises(UsageError, match="task text, and this needs one of labelled or tagged"):
        runs["text"].predict_proba(["a"])
    with pytest.raises(UsageError, match="this needs one of labelled or tagged"):
        _ = runs["series"].classes


def test_every_word_has_chances_of_its_tags_whatever_stands_beside_its_sentence(runs: Runs):
    run, texts = runs["tagged"], ["the dog runs", "a", "", "the old cat sees a hen"]
    found = run.predict_proba(texts)
    assert [one.shape for one in found] == [(len(text.split()), 3) for text in texts]
    for text, chances in zip(texts, found, strict=True):
        np.testing.assert_allclose(chances.sum(1), 1, atol=1e-9)
        np.testing.assert_allclose(run.predict_proba([text])[0], chances, atol=1e-5)
        assert [run.classes[place] for place in chances.argmax(1)] == run.predict([text])[0]


def test_tags_are_a_list_for_each_sentence_given_as_a_text_or_as_words(runs: Runs):
    run = runs["tagged"]
    found = run.predict(["the dog runs", ["a", "cat"]])
    assert [len(tags) for tags in found] == [3, 2]
    assert {tag for tags in found for tag in tags} <= {"DET", "NOUN", "VERB"}
    assert run.predict({"tokens": [["a", "cat"]]}) == run.predict([("a", "cat")]) == found[1:]
    assert run.generate(["the dog runs"])[0].startswith("the/")
    for wrong in ([], ["a", 5], ["a", " "]):
        with pytest.raises(UsageError, match="predict, input 1: expected a sentence, or its words in a list"):
            run.predict([wrong])


def test_a_forecast_is_times_and_quantiles_as_arrays_records_and_a_frame(runs: Runs):
    run = runs["series"]
    (told,) = run.predict(HOURS)
    assert isinstance(told, Forecast)
    assert told.times[0] == np.datetime64("2024-01-21T00:00:00")
    assert told.values.shape == (24, len(told.quantiles)) == (len(told), 9)
    assert (np.diff(told.values) >= 0).all(), "quantiles do not cross"
    np.testing.assert_array_equal(told.median, told.quantile(0.5))
    np.testing.assert_allclose(told.median, 20 + np.sin(np.arange(480, 504) / 4), atol=0.1)
    frame = told.to_frame()
    assert list(frame)[:3] == ["time", "forecast", "q0.1"]
    assert frame["time"][1] - frame["time"][0] == pandas.Timedelta("1h")
    assert (len(run.predict([HOURS, HOURS])), len(run.generate([HOURS, HOURS]))) == (2, 2)
    rows = [{"time": str(time), "price": price} for time, price in HOURS["price"].items()]
    assert run.generate(HOURS) == run.generate(rows) == run.generate(iter(rows))
    with pytest.raises(UsageError, match=r"no quantile 0\.55; the run was trained on 0\.1"):
        told.quantile(0.55)
    with pytest.raises(RegardError, match="no column holds times"):
        run.predict({"price": [1, 2, 3]})


def test_a_caption_is_told_of_a_path_an_array_or_a_picture_of_pillow(runs: Runs, tmp_path: Path):
    from PIL import Image

    array = np.random.default_rng(0).integers(0, 255, (40, 30, 3), dtype=np.uint8)
    picture = Image.fromarray(array)
    picture.save(tmp_path / "a.png")
    found = runs["captions"].predict([tmp_path / "a.png", str(tmp_path / "a.png"), array, picture])
    assert len(set(found)) == 1
    for wrong in (np.zeros((4, 4)), picture.convert("L"), np.zeros((4, 4, 3))):
        with pytest.raises(UsageError, match="expected a picture of height x width x 3 unsigned bytes"):
            runs["captions"].predict([wrong])


@pytest.mark.parametrize("name", DATA)
def test_many_inputs_are_a_list_in_and_a_list_out(runs: Runs, name: str):
    run, one = runs[name], ONE.get(name, "a dull film")
    found = run.generate([one, one], **FEW.get(name, {}))
    assert len(found) == 2
    assert all(isinstance(text, str) for text in found)
    assert len(run.predict([one, one], **FEW.get(name, {}))) == 2


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("verb", ["generate", "predict", "answers"])
def test_what_no_task_can_mean_gets_one_line(runs: Runs, name: str, verb: str):
    for wrong in (None, 5, 2.5, True, b"bytes", [], [[]], [None], [["a", None]], [5], object(), {}):
        with pytest.raises(RegardError) as caught:
            getattr(runs[name], verb)(wrong)
        assert "\n" not in str(caught.value)


def test_what_cannot_be_scored_or_gone_on_with_gets_one_line(runs: Runs):
    for wrong in (None, 5, ["a"], b"a"):
        for verb in ("score", "stream", "encode"):
            with pytest.raises(UsageError, match=f"{verb}: expected a text, found"):
                getattr(runs["text"], verb)(wrong)
    with pytest.raises(UsageError, match="write takes several inputs at once"):
        runs["text"].write("a")


def test_a_single_text_where_several_are_asked_for_names_the_way_out(runs: Runs):
    for verb in ("predict", "predict_proba", "embed", "answers"):
        with pytest.raises(UsageError, match=rf"{verb} takes several inputs at once: give a list, \['a fine film'\]"):
            getattr(runs["labelled"], verb)("a fine film")
    with pytest.raises(UsageError, match="the run reads the column 'comment', and the table has q, z; rename it"):
        runs["labelled"].predict({"q": ["a"], "z": ["b"]})
    with pytest.raises(UsageError, match="row 2: there is nothing in the column 'comment'"):
        runs["labelled"].predict({"comment": ["a", None]})


@pytest.mark.parametrize(
    "table",
    [
        {"comment": ["a dull film"], "review": ["a fine film"]},
        {"id": ["1"], "Review": ["a fine film"]},
        {"q": ["a fine film"], "z": ["7"]},
        {"only": ["a fine film"]},
    ],
)
def test_the_same_column_is_read_of_a_table_in_memory_and_of_a_file(runs: Runs, table: dict[str, list[str]], tmp_path):
    pandas.DataFrame(table).to_csv(tmp_path / "asked.csv", index=False)
    settings = settings_with(runs["labelled"], {"data.header": "yes"})
    predict_file(runs["labelled"], tmp_path / "asked.csv", tmp_path / "answers.csv", settings=settings)
    told = pandas.read_csv(tmp_path / "answers.csv")["answer"].tolist()
    assert runs["labelled"].predict(table) == told


@pytest.mark.parametrize("name", ENCODING)
def test_the_vector_of_a_text_in_a_batch_is_that_of_the_text_alone(runs: Runs, name: str):
    run = runs[name]
    texts = ["a fine film", "a", "a dull film, part 7", "the dog runs"] * 20
    alone = [run.encode(text).numpy() for text in texts]
    pooled = {
        "mean": [h.mean(0) for h in alone],
        "max": [h.max(0) for h in alone],
        "first": [h[0] for h in alone],
        "last": [h[-1] for h in alone],
    }
    for form, expected in pooled.items():
        found = run.embed(texts, pooling=form)  # type: ignore[arg-type]
        assert (found.shape, found.dtype) == ((80, 16), np.float32)
        np.testing.assert_allclose(found, np.stack(expected), atol=1e-5)


def test_of_an_encoder_that_reads_backward_the_vectors_stand_in_the_order_of_the_words(runs: Runs):
    one, other = (runs["reversed"].encode(text) for text in ("1 le chien", "2 le chien"))
    moved = (one - other).abs().amax(1)
    assert moved[0] > 0, "what differs is read last"
    assert moved[-1] == 0, "and the end of the text before it"


def test_vectors_that_are_not_there_are_told(runs: Runs):
    with pytest.raises(UsageError, match="embed, input 2: an empty text has no vectors"):
        runs["text"].embed(["a", ""])
    with pytest.raises(UsageError, match="pooling: 'meen' is not a choice, did you mean 'mean'"):
        runs["text"].embed(["a"], pooling="meen")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="the task captions has no vectors"):
        runs["captions"].embed(["a"])
    with pytest.raises(UsageError, match=r"input 1 has 2401 tokens and the model \d+ positions; shorten it"):
        runs["attention"].embed(["a fine film " * 200])


@pytest.mark.parametrize("blank", ["", " ", "\t", "\n"])
def test_a_sentence_without_words_has_no_vectors(runs: Runs, blank: str):
    with pytest.raises(UsageError, match="input 1 has no words"):
        runs["tagged"].embed([blank])
    with pytest.raises(UsageError, match="input 2 has no words"):
        runs["tagged"].embed(["the dog", blank])
    with pytest.raises(UsageError, match="has no words"):
        runs["tagged"].encode(blank)


def test_a_model_that_is_fitted_at_once_has_probabilities_and_no_vectors(tmp_path: Path):
    run = regard.train("linear", REVIEWS, out=tmp_path / "r", quiet=True)
    assert run.predict(["a fine film", "a dull film"]) == ["good", "bad"]
    assert run.predict_proba(["a fine film"])[0, 1] > 0.5
    with pytest.raises(UsageError, match="linear is fitted at once and has no vectors"):
        run.embed(["a"])


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.load_kinds()
    tasks.tasks()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(tasks, "_registered", dict(tasks._registered))
    monkeypatch.syspath_prepend(str(tmp_path))
    package = copied(tmp_path, "stranger")
    for module in ("retnet", "grader", "ordinal"):
        importlib.import_module(f"{package}.{module}")


@pytest.mark.usefixtures("outside")
def test_a_task_from_outside_predicts_classifies_and_embeds(tmp_path: Path):
    texts = [f"a {word} meal {n}" for n in range(8) for word in ("cold", "fair", "fine")]
    meals = {"text": texts, "grade": [1, 3, 5] * 8}
    short: dict[str, Any] = {"size": "tiny", "budget": "2steps", "batch_size": 4}
    run = regard.train("stranger_grader", meals, out=tmp_path / "r", quiet=True, **short)
    assert run.task.name == "stranger_ordinal"
    found = run.predict(["a fine meal", "a cold one"])
    assert all(type(grade) is int and 1 <= grade <= 5 for grade in found)
    assert (run.classes, run.predict_proba(pandas.DataFrame(meals)).shape) == (list("12345"), (24, 5))
    assert run.embed(texts[:2]).shape == (2, 16)
    with pytest.raises(UsageError, match="generate: expected a text, found None"):
        run.generate(None)
