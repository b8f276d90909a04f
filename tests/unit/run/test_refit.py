"""What is solved for learns the held-out part at last, and what is told of that part is from before."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.cli.main import main
from regard.core.data_spec import DataSpec
from regard.core.fitted import FitSettings, Nobody
from regard.core.model import logits_of
from regard.data.example import Labelled
from regard.models.linear import linear
from regard.run.settings import Origin
from regard.run.train import plan, train_run
from regard.storage import tensors
from regard.training.before_refit import BEFORE_REFIT, kept_before
from regard.training.run_folder import CALIBRATION, METRICS, WEIGHTS, claim, verify_run

ASKED = ["a fine film", "dull story and long", "w3 plot", "superb music"]
PLAIN: dict[str, Any] = {"size": "tiny", "budget": "8steps", "device": "cpu", "threads": 1, "quiet": True, "lr": 0.02}


@dataclass(frozen=True)
class Given:
    """Examples as a model that is fitted at once is given them."""

    texts: list[str]
    labels: np.ndarray

    @property
    def rows(self) -> Given:
        return self

    def column(self, name: str) -> list[str]:
        return self.texts


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels that follow from one word of a text, six times of seven."""
    path, chance = tmp_path_factory.mktemp("labels") / "films.tsv", random.Random(0)
    lines = []
    for i in range(500):
        is_good = chance.random() < 0.5
        told = ("fine", "great", "superb") if is_good == (chance.random() < 0.86) else ("dull", "long", "poor")
        words = [chance.choice(("film", "plot", "story", "cast", "music")) for _ in range(4)]
        lines.append(f"{'good' if is_good else 'bad'}\t{' '.join(words)} {chance.choice(told)} w{i % 50}")
    path.write_text("\n".join(lines) + "\n")
    return path


def trained(table: Path, out: Path, **more: Any) -> Any:
    told: dict[str, Any] = {**PLAIN, "valid": "hash:0.3", **more}
    return regard.train(None, table, out=out, task="labelled", **told)


@pytest.fixture(scope="module")
def runs(table: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Any]:
    folder = tmp_path_factory.mktemp("runs")
    return {on: trained(table, folder / str(on), refit="auto" if on else False) for on in (True, False)}


def halves_of(run: Any) -> torch.Tensor:
    """The probabilities of the half that is solved for, of a few texts."""
    rows = run.processor.texts([Labelled(text, "good") for text in ASKED])
    return torch.cat([run.model.linear(rows.padded(np.array([i]), 0)[0]) for i in range(len(ASKED))]).exp()


def test_the_half_is_in_the_end_the_linear_classifier_of_all_texts(runs: dict[bool, Any]):
    run = runs[True]
    every = [*run.dataset.training, *run.dataset.examples]
    labels = np.array([run.classes.index(one.label) for one in every])
    fitted = linear(DataSpec(n_classes=2), tolerance=1e-6).build()
    fitted.fit(Given([one.text for one in every], labels), FitSettings(), Nobody())
    codes = [torch.tensor([[ord(letter) for letter in text]]) for text in ASKED]
    expected = torch.cat([logits_of(fitted, one) for one in codes]).exp()
    assert len(every) == 500
    assert torch.allclose(halves_of(run), expected, atol=5e-3)
    assert not torch.allclose(halves_of(runs[False]), expected, atol=5e-3)


def test_nothing_that_is_told_of_the_held_out_part_has_met_it(runs: dict[bool, Any], tmp_path: Path):
    with_it, without = runs[True], runs[False]
    held_out = [one.text for one in with_it.dataset.examples]
    assert with_it.evaluate().to_dict() == without.evaluate().to_dict()
    assert regard.load(with_it.path).evaluate().to_dict() == without.evaluate().to_dict()
    assert (with_it.path / CALIBRATION).read_bytes() == (without.path / CALIBRATION).read_bytes()
    valid = [
        [{key: one[key] for key in one if key.startswith("valid")} for one in map(json.loads, file.open())]
        for file in (with_it.path / METRICS, without.path / METRICS)
    ]
    assert valid[0] == valid[1]
    assert float(with_it.model.head.share) == float(without.model.head.share)
    assert not np.allclose(with_it.predict_proba(held_out), without.predict_proba(held_out), atol=1e-3)
    file = tmp_path / "held_out.tsv"
    file.write_text("".join(f"{one.label}\t{one.text}\n" for one in with_it.dataset.examples))
    with pytest.warns(UserWarning, match="this is the held-out part: told by the run as it was before"):
        assert with_it.evaluate(file).to_dict() == without.evaluate(file).to_dict()
    pairs = [(one.label, one.text) for one in with_it.dataset.examples]
    with pytest.warns(UserWarning, match="as it was before"):
        assert regard.load(with_it.path).evaluate(pairs, limit=9).to_dict() == without.evaluate(limit=9).to_dict()


def test_examples_of_which_some_were_held_out_are_told_with_how_many(runs: dict[bool, Any], table: Path):
    run, told = runs[True], list[str]()
    held = {one.text for one in run.dataset.examples}
    count = sum(line.split("\t")[1] in held for line in table.read_text().splitlines())
    run.evaluate(table, tell=told.append)
    assert told == [f"{count:,} of the 500 were held out here and have been learnt since (train.refit)"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.evaluate([("good", "nobody has seen this film")])
        runs[False].evaluate(table)


def test_the_command_judges_a_file_of_ones_own_by_what_has_not_learnt_it(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    lines = table.read_text().splitlines()
    for name, part in (("train", lines[:400]), ("valid", lines[400:])):
        (tmp_path / f"{name}.tsv").write_text("\n".join(part) + "\n")
    valid, out = str(tmp_path / "valid.tsv"), str(tmp_path / "run")
    trained(tmp_path / "train.tsv", tmp_path / "run", valid=valid, refit=True)
    told = []
    for words in (["evaluate", out], ["evaluate", out, valid]):
        assert main(words) == 0
        told.append(capsys.readouterr())
        assert "as it was before it learnt that too (train.refit)" in told[-1].err
    assert told[0].out == told[1].out


def test_it_is_kept_checked_and_answers_the_same_when_it_is_loaded(runs: dict[bool, Any]):
    run = runs[True]
    assert set(verify_run(run.path).values()) == {"ok"}
    assert BEFORE_REFIT in verify_run(run.path)
    assert regard.load(run.path).answers(ASKED) == run.answers(ASKED)
    assert not (runs[False].path / BEFORE_REFIT).exists()
    before, plain = kept_before(run.path), tensors.read(runs[False].path / WEIGHTS)
    assert before.keys() == {"linear.weights", "linear.bias"}
    assert all(torch.equal(before[name], plain[name]) for name in before)


def test_a_run_in_memory_tells_the_same_whatever_becomes_of_its_folder(
    table: Path, runs: dict[bool, Any], tmp_path: Path
):
    expected, path = runs[False].evaluate().to_dict(), tmp_path / "run"
    made = trained(table, path)
    loaded = regard.load(path)
    regard.train(out=path, resume=True, refit=False, quiet=True)
    assert [run.evaluate().to_dict() for run in (made, loaded)] == [expected, expected]
    shutil.rmtree(path)
    assert [run.evaluate().to_dict() for run in (made, loaded)] == [expected, expected]
    judge = made.before_refit()
    assert made.is_refit
    assert not judge.is_refit
    assert judge.before_refit() is judge


def test_a_training_that_goes_on_does_as_if_it_had_not_been(table: Path, runs: dict[bool, Any], tmp_path: Path):
    for on, run in runs.items():
        run.save(tmp_path / str(on))
    for on in runs:
        regard.train(out=tmp_path / str(on), resume=True, budget="16steps", refit=True, quiet=True)
    weights = [tensors.read(tmp_path / str(on) / WEIGHTS) for on in runs]
    assert all(torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items())
    evaluated = [regard.load(tmp_path / str(on)).evaluate().to_dict() for on in runs]
    assert evaluated[0] == evaluated[1]


def test_it_can_be_taken_back_and_a_run_that_has_ended_is_left_as_it_is(runs: dict[bool, Any], tmp_path: Path):
    runs[True].save(tmp_path / "run")
    as_it_was = (tmp_path / "run" / WEIGHTS).read_bytes()
    regard.train(out=tmp_path / "run", resume=True, quiet=True)
    assert (tmp_path / "run" / WEIGHTS).read_bytes() == as_it_was
    again = regard.train(out=tmp_path / "run", resume=True, refit=False, quiet=True)
    assert not again.is_refit
    assert not (tmp_path / "run" / BEFORE_REFIT).exists()
    assert again.answers(ASKED) == regard.load(tmp_path / "run").answers(ASKED) == runs[False].answers(ASKED)


@pytest.mark.parametrize("ensemble", [1, 2])
def test_what_is_said_of_a_run_that_has_ended_holds_when_it_goes_on(
    table: Path, tmp_path: Path, ensemble: int, capsys: pytest.CaptureFixture[str]
):
    trained(table, tmp_path / "run", ensemble=ensemble, budget="4steps")
    again = regard.train(out=tmp_path / "run", resume=True, refit=False)
    told = capsys.readouterr().err
    assert "nothing was changed" not in told
    assert "train.refit=false: the run answers again by what has not learnt the held-out part" in told
    assert again.config == regard.load(tmp_path / "run").config
    assert again.config["train"]["refit"] is False
    assert again.config["origins"]["train.refit"] == "argument"
    assert set(verify_run(tmp_path / "run").values()) == {"ok"}
    assert not regard.train(out=tmp_path / "run", resume=True, budget="8steps", quiet=True).is_refit
    assert regard.train(out=tmp_path / "run", resume=True, refit=True, quiet=True).is_refit
    assert regard.load(tmp_path / "run").config["train"]["refit"] is True


def test_one_that_was_killed_between_its_two_files_tells_the_same_and_is_made_whole(
    runs: dict[bool, Any], tmp_path: Path
):
    runs[False].save(tmp_path / "run")
    with claim(tmp_path / "run") as folder:
        folder.publish({BEFORE_REFIT: tensors.chunks(kept_before(runs[True].path))})
    cut = regard.load(tmp_path / "run")
    assert cut.evaluate().to_dict() == runs[False].evaluate().to_dict()
    assert cut.answers(ASKED) == runs[False].answers(ASKED)
    whole = regard.train(out=tmp_path / "run", resume=True, refit=True, quiet=True)
    assert whole.answers(ASKED) == runs[True].answers(ASKED)


def test_texts_that_somebody_held_out_are_not_learnt_unless_that_is_said(table: Path, tmp_path: Path):
    lines = table.read_text().splitlines()
    train, valid = tmp_path / "train.tsv", tmp_path / "valid.tsv"
    train.write_text("\n".join(lines[:400]) + "\n")
    valid.write_text("\n".join(lines[400:]) + "\n")
    assert not trained(train, tmp_path / "file", valid=str(valid)).is_refit
    assert trained(train, tmp_path / "said", valid=str(valid), refit=True).is_refit
    assert not trained(train, tmp_path / "fold", valid="fold:1/5").is_refit
    assert not trained(train, tmp_path / "net", linear=False).is_refit
    assert not regard.train(None, "world:reviews?train=60&valid=20", out=tmp_path / "world", **PLAIN).is_refit


def test_a_test_part_is_never_learnt(table: Path, tmp_path: Path):
    run = trained(table, tmp_path / "run", test=0.5)
    assert run.is_refit
    assert run.dataset.training and run.dataset.test  # noqa: PT018
    joined = run.task.with_held_out(run.dataset)
    met = {one.text for one in joined.training}
    assert not met & {one.text for one in run.dataset.test}
    assert met >= {one.text for one in run.dataset.examples}


def test_the_parts_of_an_ensemble_have_one_half_and_each_its_own_share(table: Path, tmp_path: Path):
    plain, run = (trained(table, tmp_path / str(on), ensemble=2, refit=on) for on in (False, True))
    first, second = run.model.parts
    assert torch.equal(first.linear.weights, second.linear.weights)
    assert not torch.equal(first.linear.weights, plain.model.parts[0].linear.weights)
    shares = [[float(part.head.share) for part in one.model.parts] for one in (plain, run)]
    assert shares[0] == shares[1]
    assert run.evaluate().to_dict() == plain.evaluate().to_dict()
    assert regard.load(run.path).answers(ASKED) == run.answers(ASKED)


def test_a_run_that_starts_from_it_begins_with_the_half_that_has_not_met_them(
    table: Path, runs: dict[bool, Any], tmp_path: Path
):
    tuned: Any = regard.train(
        None, table, out=tmp_path / "run", start=str(runs[True].path), budget="1steps", quiet=True, device="cpu"
    )
    assert not tuned.is_refit
    assert torch.equal(tuned.model.linear.weights, kept_before(runs[True].path)["linear.weights"])


def test_the_end_of_a_training_says_so_in_one_line(table: Path, tmp_path: Path):
    changes = {"data.path": str(table), "data.valid": "hash:0.3", "model.size": "tiny", "train.budget": "4steps"}
    job = plan(recipe=None, changes={key: Origin(value, "test") for key, value in changes.items()}, out=tmp_path / "r")
    run, result = train_run(job)
    outcome = run.task.outcome(run, result)
    (line,) = (line for line in outcome.lines if "refit" in line)
    count = len(run.held_out("valid"))
    assert f"has now learnt the {count} held-out texts too" in line
    assert "so answers what is asked from here on" in line, "the command below may answer otherwise than the sample"
    assert outcome.facts["sample"] == run.task.sample(run.before_refit().model, run.dataset)
    assert outcome.facts["refit"] == count
    assert outcome.facts["scores"]["accuracy"] == run.evaluate().scores["accuracy"]


def test_in_a_comparison_all_models_learn_from_the_same_texts(table: Path, tmp_path: Path):
    regard.compare(["naive_bayes", "classifier"], table, budget="6steps", seeds=1, out=tmp_path / "all", quiet=True)
    kept = [json.loads(file.read_text()) for file in (tmp_path / "all").rglob("config.json")]
    of_net = [one["train"]["refit"] for one in kept if one["model"]["name"] == "classifier"]
    assert of_net
    assert set(of_net) == {False}
    assert not list((tmp_path / "all").rglob(BEFORE_REFIT))
    (path,) = {file.parent for file in (tmp_path / "all").rglob("config.json") if "classifier" in str(file)}
    assert plan(like=path, recipe=None, changes={}, out=tmp_path / "alone").settings["train.refit"] == "auto"
