"""The estimators of scikit-learn that are runs: what goes in and comes out, and what they carry."""

from __future__ import annotations

import copy
import hashlib
import importlib
import os
import pickle
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load, save
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline

import regard
from plugin_example import copied
from regard.core import registry
from regard.core.context import Context
from regard.core.model import logits_of
from regard.errors import CheckpointError, DataError, RegardError, Stopped
from regard.interop.sklearn import SequenceClassifier, SequenceTagger, SeriesForecaster, TextVectors, calls
from regard.interop.sklearn.holding_out import held_out
from regard.interop.sklearn.kept_run import TEMPORARY, KeptRun
from regard.interop.sklearn.past import made_up, step_named
from regard.interop.sklearn.refusal import refused

TEXTS = [
    f"{word} {thing} {number}"
    for number in range(8)
    for word, thing in (("good", "film"), ("bad", "film"), ("fine", "day"), ("awful", "day"))
]
LABELS = [1, 0, 1, 0] * 8
WORDS = [["the", "dog", "runs"], ["dogs", "run"], ["a", "cat", "sleeps"], ["cats", "sleep"], []] * 3
TAGS = [[7, 8, 9], [8, 9], [7, 8, 9], [8, 9], []] * 3
DAYS = np.arange(130)
SERIES = np.sin(DAYS * 2 * np.pi / 7) + 0.01 * DAYS
NETWORK: dict[str, Any] = {"size": "tiny", "budget": "4steps", "device": "cpu"}


@pytest.fixture(scope="module", autouse=True)
def _undurable() -> Iterator[None]:
    """What is fitted here need not outlive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module")
def fitted() -> SequenceClassifier:
    return SequenceClassifier("naive_bayes").fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def network() -> SequenceClassifier:
    return SequenceClassifier("lstm", settings={"linear": False}, **NETWORK).fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def forecaster() -> SeriesForecaster:
    return SeriesForecaster("naive").fit(SERIES)


def of(state: dict[str, Any], **changes: Any) -> KeptRun:
    """A kept run as unpickling makes it, of a state with some changes."""
    kept = KeptRun.__new__(KeptRun)
    kept.__setstate__(state | changes)
    return kept


def test_scikit_learn_is_imported_by_its_estimators_alone():
    source = Path(regard.__file__).parent
    asking = re.compile(r"^\s*(?:from|import) sklearn\b", re.MULTILINE)
    found = {path.parent for path in source.rglob("*.py") if asking.search(path.read_text(encoding="utf-8"))}
    assert found == {source / "interop" / "sklearn"}


def test_without_scikit_learn_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.startswith("regard.interop.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'regard[sklearn]'")):
        importlib.import_module("regard.interop.sklearn")


@pytest.mark.parametrize(
    "labels",
    [[3, 5], ["yes", "no"], [True, False], [0.0, 2.0], ["NA", "b"], [" a", "a"], ["", "x"]],
    ids=str,
)
def test_labels_keep_their_type_and_their_spelling(labels: Any):
    given = np.array(labels)[np.array(LABELS)]
    model = SequenceClassifier("naive_bayes").fit(TEXTS, given)
    assert model.classes_.tolist() == sorted(np.unique(given).tolist())
    assert model.classes_.dtype == given.dtype
    assert model.predict(["good film", "bad film"]).tolist() == [given[0], given[1]]


def test_probabilities_come_in_the_order_of_classes(fitted: SequenceClassifier):
    found = fitted.predict_proba(TEXTS)
    assert found.shape == (len(TEXTS), 2)
    np.testing.assert_allclose(found.sum(1), 1)
    assert fitted.classes_[found.argmax(1)].tolist() == LABELS
    assert fitted.score(TEXTS, LABELS) == 1


def test_what_is_fitted_at_once_learns_from_all_and_tells_its_own_chances(fitted: SequenceClassifier):
    """Nothing is held out that could change them: what the model learnt from says nothing about how true they are."""
    run = fitted.run_
    assert run.config["fit"]["tokens"] == len(TEXTS)
    ids = torch.from_numpy(run.processor.reader(run.model)(TEXTS[0]))[None]
    chances = logits_of(run.model, ids, context=Context(lengths=torch.tensor([ids.shape[1]]))).softmax(-1)
    np.testing.assert_allclose(fitted.predict_proba(TEXTS[:1]), chances.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "wrap",
    [
        tuple,
        np.array,
        lambda texts: np.array(texts, object),
        lambda texts: np.array(texts)[:, None],
        pd.Series,
        lambda texts: pd.Series(texts, index=range(50, 50 + len(texts))),
        lambda texts: pd.DataFrame({"text": texts}),
        iter,
    ],
)
def test_texts_come_in_whatever_holds_them(wrap: Any, fitted: SequenceClassifier):
    assert fitted.predict(wrap(TEXTS)).tolist() == LABELS


@pytest.mark.parametrize(
    ("X", "y", "told"),
    [
        (TEXTS, LABELS[:3], "32 texts in X and 3 labels in y"),
        ([], [], "0 sample"),
        ("good film", [1], "X must be a list of texts, found 'good film'"),
        (None, [1], "X must be a list of texts, found None"),
        (["a", np.nan], [0, 1], "X[1] must be a text, found nan, which is no value"),
        (["a", None], [0, 1], "X[1] must be a text, found None"),
        (["a", 5], [0, 1], "X[1] must be a text, found 5 (int)"),
        ([["a", "b"], ["c"]], [0, 1], "X[0] must be a text, found ['a', 'b'] (list)"),
        (np.zeros((2, 3)), [0, 1], "has the shape (2, 3)"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), [0], "X has 2 columns, 'a', 'b'"),
        (["a", "b"], None, "y is None"),
        (["a", "b"], ["x", None], "y[1] is missing (None)"),
        (["a", "b"], ["x", np.nan], "y[1] is missing (nan)"),
        (["a", "b"], pd.Series(["x", None], dtype=object), "y[1] is missing"),
        (["a", "b"], [0.5, 0.25], "Unknown label type: continuous"),
        (["a", "b"], [1, 1], "y has one class, 1"),
    ],
)
def test_what_cannot_be_learnt_is_a_value_error_that_says_which_item(X: Any, y: Any, told: str):
    with pytest.raises(ValueError, match=re.escape(told)):
        SequenceClassifier("naive_bayes").fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"model": "liner"}, "did you mean 'linear'?"),
        ({"model": "crf"}, "crf is for tagged"),
        ({"model": "lstm", "size": "huge"}, "has no size 'huge'"),
        ({"model": "lstm", "budget": "5"}, "did you mean 5s or 5steps?"),
        ({"device": "tpu"}, "train.device"),
        ({"settings": {"ordr": 2}}, "did you mean 'order'?"),
        ({"settings": {"train.seed": 2}}, "told by the parameter random_state"),
        ({"settings": "order=2"}, "must be a dict"),
    ],
)
def test_a_wrong_parameter_is_told_when_it_is_used(parameters: dict[str, Any], told: str):
    model = SequenceClassifier("linear").set_params(**parameters)
    with pytest.raises(ValueError, match=re.escape(told)) as caught:
        model.fit(TEXTS, LABELS)
    assert isinstance(caught.value, RegardError)


@pytest.mark.parametrize(
    "use",
    [
        lambda: SequenceClassifier().predict(TEXTS),
        lambda: SequenceClassifier().run_,
        lambda: SequenceTagger().predict(WORDS),
        lambda: TextVectors().transform(TEXTS),
        lambda: SeriesForecaster().predict(3),
        lambda: SeriesForecaster().update([1.0]),
        lambda: SequenceClassifier().save_run("x"),
    ],
)
def test_nothing_is_answered_before_fit(use: Any):
    with pytest.raises(NotFittedError):
        use()


def test_the_same_random_state_gives_the_same_network(network: SequenceClassifier):
    same = clone(network).fit(TEXTS, LABELS)
    other = clone(network).set_params(random_state=np.random.RandomState(5)).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(same.predict_proba(TEXTS), network.predict_proba(TEXTS))
    assert (other.predict_proba(TEXTS) != network.predict_proba(TEXTS)).any()


def test_a_fit_changes_no_generator_and_leaves_no_folder(network: SequenceClassifier):
    np.random.seed(3)
    drawn = np.random.rand()
    np.random.seed(3)
    clone(network).fit(TEXTS, LABELS)
    assert np.random.rand() == drawn
    own = f"{TEMPORARY}{os.getpid()}-"
    assert [name for name in os.listdir(tempfile.gettempdir()) if name.startswith(own)] == []


def test_threads_give_what_one_gives(network: SequenceClassifier):
    alone = cross_val_score(network, TEXTS, LABELS, cv=2)
    with joblib.parallel_config(backend="threading"):
        together = cross_val_score(network, TEXTS, LABELS, cv=2, n_jobs=2)
    np.testing.assert_array_equal(alone, together)


def test_a_class_that_occurs_once_is_learnt_and_duplicates_are_held_out_together():
    keys = [*TEXTS, *TEXTS, "the only zebra"]
    targets = [{label} for label in (*LABELS, *LABELS, 2)]
    held = held_out(keys, targets)
    assert 0 < held.sum() < len(keys) / 3
    assert not held[-1]
    assert held[: len(TEXTS)].tolist() == held[len(TEXTS) : -1].tolist()
    assert not held_out(["same"] * 4, [{0}] * 4).any()
    # Whatever the hash says, no class is unknown to the part that is learnt from.
    for number in range(30):
        held = held_out([*TEXTS, f"zebra {number}"], [*[{label} for label in LABELS], {2}])
        assert not held[-1]


@pytest.mark.parametrize(
    "carried",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)), lambda model: through_joblib(model)],
    ids=["deepcopy", "pickle", "joblib"],
)
def test_a_network_is_carried_as_safetensors_and_answers_the_same(carried: Any, network: SequenceClassifier):
    other = carried(network)
    assert other._kept._run is None
    np.testing.assert_array_equal(other.predict_proba(TEXTS), network.predict_proba(TEXTS))
    np.testing.assert_array_equal(carried(other).predict_proba(TEXTS), network.predict_proba(TEXTS))
    assert b"torch" not in re.sub(rb"[^a-z]", b"", pickle.dumps(network).split(b"safetensors")[0])


def through_joblib(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        joblib.dump(model, Path(folder) / "model.joblib")
        return joblib.load(Path(folder) / "model.joblib")


def test_the_state_is_one_safetensors_file_of_the_files_of_a_run(fitted: SequenceClassifier):
    state = fitted._kept.__getstate__()
    files = load(state["safetensors"])
    assert {"config.json", "model.safetensors", "manifest.json", "tokenizer.json"} <= set(files)
    assert state["sha256"] == hashlib.sha256(state["safetensors"]).hexdigest()
    assert load(files["model.safetensors"].tobytes())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 2}, "not of format 1"),
        ({"safetensors": None}, "no bytes of a run"),
        ({"safetensors": b"abc"}, "its SHA-256 is"),
        ({"sha256": None}, "no bytes of a run"),
    ],
)
def test_a_damaged_state_is_refused_when_it_is_read(change: dict[str, Any], told: str, fitted: SequenceClassifier):
    with pytest.raises(CheckpointError, match=told):
        of(fitted._kept.__getstate__(), **change)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda files: files.pop("model.safetensors"), "model.safetensors: is missing"),
        (lambda files: files.update({"model.safetensors": files["model.safetensors"][::-1].copy()}), "SHA-256 is"),
        (lambda files: files.update({"../evil": files["config.json"]}), "'../evil' is no file of a run"),
        (lambda files: files.update({"config.json": np.zeros(3)}), "'config.json' is no file of a run"),
    ],
)
def test_a_forged_state_is_refused_when_it_is_used(change: Any, told: str, fitted: SequenceClassifier):
    state = fitted._kept.__getstate__()
    files = dict(load(state["safetensors"]))
    change(files)
    packed = save(files)
    kept = of(state, safetensors=packed, sha256=hashlib.sha256(packed).hexdigest())
    with pytest.raises(CheckpointError, match=f"damaged or from elsewhere: .*{re.escape(told)}") as caught:
        _ = kept.run
    assert tempfile.gettempdir() not in str(caught.value)


def test_a_run_inside_is_saved_for_the_commands(fitted: SequenceClassifier, tmp_path: Path):
    fitted.save_run(tmp_path / "run")
    assert regard.load(tmp_path / "run").generate("good film") == "1"
    assert fitted.run_.generate("good film") == "1"
    with pytest.raises(ValueError, match="not empty"):
        fitted.save_run(tmp_path / "run")


def test_an_interrupt_ends_a_search_and_a_note_of_a_fit_is_a_warning(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(KeyboardInterrupt), refused():
        raise Stopped("by somebody")
    with pytest.warns(UserWarning, match="did not|not reached|steps"):
        SequenceClassifier("linear", settings={"tolerance": 1e-30}).fit(TEXTS, LABELS)


def test_a_search_chooses_among_models_and_settings():
    grid = {"model": ["majority", "naive_bayes"], "settings": [None]}
    search = GridSearchCV(SequenceClassifier(), grid, cv=2).fit(TEXTS, LABELS)
    assert search.best_params_["model"] == "naive_bayes"
    assert search.predict(["good film"]).tolist() == [1]


def test_an_encoder_from_outside_is_a_model_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    registry.load_kinds()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.syspath_prepend(tmp_path)
    package = copied(tmp_path, "learn")
    model = SequenceClassifier(f"{package}.retnet:learn_retnet", **NETWORK).fit(TEXTS, LABELS)
    assert model.run_.config["model"]["settings"]["encoder"] == "learn_retnet"
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_tags_keep_their_type_and_empty_sentences_their_place():
    tagger = SequenceTagger("most_frequent").fit(WORDS, TAGS)
    assert tagger.predict([["the", "cats"], [], ["run"]]) == [[7, 8], [], [9]]
    assert tagger.score(WORDS, TAGS) == 1
    assert tagger.classes_.tolist() == [7, 8, 9]
    assert cross_val_score(tagger, WORDS, TAGS, cv=2).tolist() == [1, 1]
    arrays = np.array(WORDS, object), [np.array(one, int) for one in TAGS]
    assert clone(tagger).fit(*arrays).predict(pd.Series(WORDS[:1])) == [[7, 8, 9]]


@pytest.mark.parametrize(
    ("X", "y", "told"),
    [
        (["the dog"], [["D", "N"]], "X[0] must be a list of words, found 'the dog'"),
        ([["the", "dog"]], ["D N"], "y[0] must be a list of tags"),
        ([["the", "dog"]], [["D"]], "X[0] has 2 words and y[0] 1 tags"),
        ([["a", "b"]], [["D", np.nan]], "y[0][1] is missing (nan)"),
        ([["a", " "]], [["D", "N"]], "X[0][1] must be a word and not blank"),
        ([[]], [[]], "X has no words"),
        (WORDS, TAGS[:2], "15 sentences in X and 2 in y"),
        (WORDS, None, "y is None"),
        ([["a", "b"]], [["D", "D"]], "y has one class, 'D'"),
    ],
)
def test_sentences_that_cannot_be_learnt_are_named(X: Any, y: Any, told: str):
    with pytest.raises(ValueError, match=re.escape(told)):
        SequenceTagger("most_frequent").fit(X, y)


def test_vectors_are_those_of_the_run_and_go_into_a_pipeline(tmp_path: Path):
    vectors = TextVectors(model="dan", **NETWORK)
    frame = pd.DataFrame({"text": TEXTS, "number": range(len(TEXTS))})
    columns = ColumnTransformer([("vectors", vectors, "text"), ("number", "passthrough", ["number"])])
    pipeline = make_pipeline(columns, LogisticRegression(max_iter=500)).fit(frame, LABELS)
    assert pipeline.predict(frame).shape == (len(TEXTS),)
    fitted = columns.named_transformers_["vectors"].save_run(tmp_path / "run")
    for pooling, pool in (("mean", np.mean), ("max", np.max)):
        given = TextVectors(tmp_path / "run", pooling=pooling).fit(["anything"])
        own = fitted.run_.encode("good film").numpy()
        np.testing.assert_allclose(given.transform(["good film", ""]), [pool(own, 0), 0 * own[0]], rtol=1e-6)
    named = clone(given).set_output(transform="pandas").fit_transform(["good film"])
    assert list(named.columns[:2]) == ["textvectors0", "textvectors1"]
    assert pickle.loads(pickle.dumps(given)).transform(["x"]).shape == (1, own.shape[1])


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"pooling": "men"}, "did you mean 'mean'?"),
        ({"run": 3}, "must be the folder of a run"),
        ({"run": "nowhere/at/all"}, "no such run folder"),
        ({"model": "ngram"}, "fitted at once and has no vectors"),
        ({"model": "classifier"}, "is for labelled, and texts alone are not that"),
    ],
)
def test_vectors_that_cannot_be_are_refused_before_training(parameters: dict[str, Any], told: str):
    with pytest.raises(RegardError, match=re.escape(told)):
        TextVectors(**parameters).fit(["a text", "another"])
    with pytest.raises(DataError, match="every text is empty"):
        TextVectors().fit(["", " "])


def test_a_series_goes_on(forecaster: SeriesForecaster):
    assert (forecaster.horizon_, forecaster.n_features_in_) == (7, 0)
    whole = forecaster.predict()
    np.testing.assert_allclose(whole, SERIES[-7:], atol=0.1)
    np.testing.assert_array_equal(forecaster.predict(2), whole[:2])
    np.testing.assert_array_equal(forecaster.predict([1, 7]), whole[[0, 6]])
    np.testing.assert_array_equal(forecaster.predict(np.zeros((3, 0))), whole[:3])
    bands = forecaster.predict_quantiles()
    assert bands.shape == (7, len(forecaster.quantiles_))
    assert (np.diff(bands) >= 0).all()
    np.testing.assert_array_equal(bands[:, forecaster.quantiles_.tolist().index(0.5)], whole)


def test_an_update_moves_forecasts_on_without_learning(forecaster: SeriesForecaster):
    later = copy.deepcopy(forecaster).update([100.0, 200.0])
    np.testing.assert_allclose(later.predict()[:5], forecaster.predict()[2:], rtol=1e-6)
    assert later.predict()[6] > 100
    assert forecaster.predict()[6] < 100


def test_what_is_known_ahead_is_told_by_name_and_time():
    times = pd.date_range("2024-01-01", periods=len(SERIES), freq="D", tz="Europe/Berlin")
    X = pd.DataFrame({"plan": SERIES * 2, "wind": np.cos(DAYS)}, index=times)
    model = SeriesForecaster("lear", settings={"penalty": "ridge", "strength": 0.01}).fit(X[:-7], SERIES[:-7])
    told = model.predict(X[-7:])
    np.testing.assert_allclose(told, SERIES[-7:], atol=0.1)
    np.testing.assert_array_equal(model.predict(X[["wind", "plan"]][-7:]), told)
    np.testing.assert_array_equal(model.predict(X[-7:].to_numpy()), told)
    assert model.score(X[-7:], SERIES[-7:]) > 0.9
    assert model.run_.processor.columns == ("plan", "wind")
    for wrong, message in (
        (X[:7], "goes on at 2024-05-03"),
        (X[["plan"]][-7:], "1 features, but it was fitted with 2"),
        (X[-7:].rename(columns={"wind": "sun"}), "columns plan, sun"),
        (X[-3:], "goes on at"),
        (X[-3:].to_numpy(), "7 steps at a time"),
        (X[-7:] * np.nan, "NaN"),
        (3, "a row for each of the 7 steps"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(wrong)


@pytest.mark.parametrize(
    ("y", "parameters", "told"),
    [
        (np.r_[SERIES, np.nan, 1.0], {}, "y[130] is missing (nan)"),
        (np.r_[SERIES, np.nan], {}, "ends with a missing value"),
        (np.r_[SERIES, np.inf], {}, "infinity"),
        (["a", "b"], {}, "series of numbers"),
        (np.c_[SERIES, SERIES], {}, "of one dimension"),
        ([1.0], {}, "1 sample"),
        ([], {}, "0 sample"),
        (SERIES[:20], {}, "give a longer series"),
        (SERIES, {"horizon": 0}, "horizon=0"),
        (SERIES, {"horizon": "7"}, "horizon='7'"),
        (SERIES, {"step": "fortnight"}, "step='fortnight'"),
        (SERIES, {"settings": {"known": "x"}}, "told by the data"),
        (pd.Series(SERIES, index=pd.date_range("2024", periods=130, freq="D")[::-1]), {}, "sort the rows"),
    ],
)
def test_a_series_that_cannot_be_learnt_is_told(y: Any, parameters: dict[str, Any], told: str):
    with pytest.raises(ValueError, match=re.escape(told)):
        SeriesForecaster("naive", **parameters).fit(y)


@pytest.mark.parametrize("asked", [0, 8, 2.5, "tomorrow", [0, 1], []])
def test_steps_that_are_not_forecast_are_refused(asked: Any, forecaster: SeriesForecaster):
    with pytest.raises(ValueError, match="from 1 to"):
        forecaster.predict(asked)


def test_holes_are_mended_where_that_is_said():
    holed = SERIES.copy()
    holed[[5, 120]] = np.nan
    model = SeriesForecaster("naive", settings={"gaps": "interpolate"}).fit(holed)
    np.testing.assert_allclose(model.predict(3), SERIES[-7:-4], atol=0.1)


def test_series_are_searched_by_time():
    cv = TimeSeriesSplit(2, test_size=7)
    search = GridSearchCV(SeriesForecaster(), {"model": ["naive", "dlinear"]}, cv=cv)
    search.fit(np.zeros((len(SERIES), 0)), SERIES)
    assert search.best_params_ == {"model": "dlinear"}
    with pytest.raises(ValueError, match="7 steps at a time"):
        cross_val_score(SeriesForecaster("naive"), np.zeros((130, 0)), SERIES, cv=2, error_score="raise")


def test_times_that_a_series_lacks_end_before_a_monday():
    assert made_up(3, step_named("hour"))[-1] == np.datetime64("2000-12-31T23:00:00")
    assert made_up(3, step_named("15 minutes"))[-1] == np.datetime64("2000-12-31T23:45:00")
    assert made_up(3, step_named("month")).astype(str).tolist()[-1] == "2000-12-01T00:00:00"
    assert np.unique(np.diff(made_up(9, step_named("week")))).tolist() == [np.timedelta64(7, "D")]


def test_warnings_of_a_quiet_fit_are_none(capsys: pytest.CaptureFixture[str]):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SequenceClassifier("naive_bayes").fit(TEXTS, LABELS)
    assert capsys.readouterr() == ("", "")
    assert calls.is_fitted_at_once("naive_bayes")
    assert not calls.is_fitted_at_once("lstm")


@pytest.mark.parametrize("valid", [{}, {"valid": "hash:0.3"}], ids=["tenth", "rule"])
def test_texts_that_are_held_out_are_learnt_at_last_and_judged_from_before(valid: dict[str, str]):
    texts = [f"number {i} was {('great', 'dull')[i % 2]}" for i in range(80)]
    labels = ["good" if i % 2 == (i % 7 > 0) else "bad" for i in range(80)]
    told = {**valid, "threads": 1}
    judge, plain = (
        SequenceClassifier(
            model="classifier", size="tiny", budget="2steps", settings=told | ({} if on else {"train.refit": False})
        ).fit(texts, labels)
        for on in (True, False)
    )
    assert judge.run_.is_refit
    assert judge.run_.evaluate().to_dict() == plain.run_.evaluate().to_dict()
    assert not np.allclose(judge.predict_proba(texts), plain.predict_proba(texts), atol=1e-3)
    again = pickle.loads(pickle.dumps(judge))
    assert again.run_.is_refit
    np.testing.assert_allclose(again.predict_proba(texts), judge.predict_proba(texts), atol=1e-6)
