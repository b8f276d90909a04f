"""A comparison of tiny trainings: fair, reported, continued, and honest about what failed."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import xml.etree.ElementTree as ElementTree
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.charts.page import SCRIPT
from regard.core import registry
from regard.errors import ResourceError, Stopped, UsageError
from regard.run.settings import Origin, Settings, resolve
from regard.studies import compare as comparing
from regard.studies import training as racing
from regard.studies.board import LineBoard
from regard.studies.compare import compare
from regard.studies.comparison import Comparison, from_report, read_report
from regard.studies.entrant import common_size, count, entrants_for, read_entrant, sized
from regard.studies.notes import notes
from regard.studies.protocol import Protocol, seeds_for
from regard.studies.row import SCORES, trainings
from regard.studies.summary import ranking
from regard.training.budget import share

STORIES = "world:stories?train=60&valid=24"
QUIET = LineBoard(None)
MODELS = ["ngram", "fnn", "rnn"]
FNN, RNN = "fnn?lr=0.01", "rnn?lr=0.01"  # at a rate that is given no rates are searched: one training, not five


def run(out: Path, models: list[str] | None = None, data: str = STORIES, **settings: Any) -> Comparison:
    settings = {"budget": "24steps", "seeds": 1, "size": "tiny", "board": QUIET} | settings
    return compare(models or MODELS, data, out=out, **settings)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return run(tmp_path_factory.mktemp("compare") / "c")


def test_without_data_every_model_has_the_same_steps_whatever_the_machine_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "FIRST_DATA", "world:witness?train=40&valid=16")
    found = compare(["ngram"], out=tmp_path / "c", board=QUIET)
    protocol = found.protocol
    assert (protocol.budget, protocol.main_budget, protocol.trial_budget) == ("700 steps", "525steps", "29steps")
    assert protocol.seeds == 1
    settings = json.loads((tmp_path / "c" / "comparison.json").read_text(encoding="utf-8"))["settings"]
    assert settings["train.batch_size"] == 16
    with pytest.raises(UsageError, match="at least 1"):
        compare(["ngram"], out=tmp_path / "d", board=QUIET, seeds=0)


def test_every_model_gets_the_same_budget_and_its_rates_come_out_of_it(done: Comparison) -> None:
    for label in ("fnn", "rnn"):
        row = done.row(label)
        rates = [regard.load(done.out / "rates" / f"{label}-{lr:g}").config["train"]["budget"] for lr, _ in row.rates]
        assert rates == ["1steps"] * len(rates)
        assert 3 <= len(rates) <= 6
        assert row.runs[0]["step"] == 18
        assert row.lr in [lr for lr, _ in row.rates]


def test_the_same_data_split_and_order_for_all(done: Comparison) -> None:
    configs = [regard.load(row.runs[0]["path"]).config for row in done.rows]
    assert len({config["data"]["hash"] for config in configs}) == 1
    assert {config["data"]["path"] for config in configs} == {f"{STORIES}&seed=0"}
    assert {config["train"]["batch_size"] for config in configs[1:]} == {configs[1]["train"]["batch_size"]}


def test_parameters_are_matched_and_the_exception_is_stated(done: Comparison) -> None:
    fnn, rnn = (done.row(label).parameters for label in ("fnn", "rnn"))
    assert abs(fnn / rnn - 1) <= 0.1
    assert done.row("ngram").note == "is fitted at once"
    assert any("ngram is fitted at once" in note for note in notes(done))


def test_the_test_part_is_neither_trained_on_nor_chosen_by(done: Comparison) -> None:
    fnn: Any = regard.load(done.row("fnn").runs[0]["path"])
    assert fnn.evaluate(part="test").scores["loss"] == pytest.approx(done.row("fnn").runs[0]["score"])
    valid, test = (fnn.dataset.valid, fnn.dataset.test)
    texts = [{fnn.tokenizer.decode(part.document(i)) for i in range(part.n_documents)} for part in (valid, test)]
    assert not texts[0] & texts[1]


def test_the_score_of_every_document_is_kept_beside_its_run(done: Comparison) -> None:
    for row in done.rows:
        (each,) = trainings([row], by_time=False)[row.label]
        assert len(each) == done.verdict.examples == len(regard.load(row.runs[0]["path"]).held_out("test"))
        assert each.score == pytest.approx(row.runs[0]["score"])
    assert all(one.low is not None for one in done.order)


def test_a_comparison_says_the_same_from_its_folder(done: Comparison) -> None:
    again = from_report(read_report(done.out), done.out)
    assert again.verdict == done.verdict


def test_where_a_run_has_lost_its_examples_wholes_are_compared(done: Comparison, tmp_path: Path) -> None:
    out = shutil.copytree(done.out, tmp_path / "c")
    (out / "fnn" / SCORES).unlink()
    again = from_report(read_report(out), out)
    assert [one.label for one in again.order] == [one.label for one in done.order]
    for one in again.order:
        assert (one.mean, one.low) == (pytest.approx(again.row(one.label).runs[0]["score"]), None)
    assert "Test examples were not told one by one: there are no intervals." in notes(again)


def test_a_report_of_an_earlier_protocol_is_still_read(done: Comparison) -> None:
    told = read_report(done.out)
    earlier = told | {"protocol": told["protocol"] | {"factors": [0.3, 1.0, 3.0]}}
    assert from_report(earlier, done.out).verdict == done.verdict


def test_ranking_sentence_and_commands(done: Comparison) -> None:
    order = [one.label for one in done.order]
    assert sorted(order) == sorted(MODELS)
    scores = [one.mean for one in done.order]
    assert scores == sorted(scores)
    screen = io.StringIO()
    done.show(screen)
    text = screen.getvalue()
    assert "rank" in text
    assert "Held equal" in text
    assert "Chosen on validation alone; each training is tested once, when it has ended." in text
    assert f"regard generate {done.row(order[0]).runs[0]['path']}" in text


def test_reports_are_self_contained_and_whole(done: Comparison) -> None:
    page = (done.out / "report.html").read_text()
    assert re.findall("<script.*?</script>", page, re.DOTALL) == [f"<script>{SCRIPT}</script>"]
    digest = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'; " in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    pictures = page.split("<svg")[1:]
    assert len(pictures) > 4
    for picture in pictures:
        ElementTree.fromstring("<svg" + picture.split("</svg>")[0] + "</svg>")
    told = json.loads((done.out / "report.json").read_text())
    assert [one["model"] for one in told["ranking"]] == [one.label for one in done.order]
    assert (done.out / "report.md").read_text().startswith("| rank | model |")


def test_tokens_that_one_model_knew_and_another_did_not_are_shown(done: Comparison) -> None:
    from regard.studies.measure import disagreements

    sure = {"scored": [[("a ", 0.9), ("b ", 0.2)]]}
    unsure = {"scored": [[("a ", 0.1), ("b ", 0.3)]]}
    assert disagreements([("x", sure), ("y", unsure)]) == [{"text": " [a]", "x": "90%", "y": "10%"}]
    words = [(f"w{place} ", 0.9) for place in range(30)] + [("w3 ", 0.9), ("w3 ", 0.1)]
    (shown,) = disagreements([("x", {"scored": [words]}), ("y", {"scored": [[(one, 0.2) for one, _ in words]]})], 1)
    assert shown["text"].startswith("w0 w1 w2 w3 ... 14 more ... w18 ")
    told = json.loads((done.out / "report.json").read_text())["differ"]
    assert all({"text", *MODELS} == one.keys() for one in told)


def test_an_input_is_shown_once_with_what_each_model_says_to_it() -> None:
    from regard.studies.measure import disagreements

    both = {"answers": ["in -> a", "x"], "inputs": ["in", "x"], "truths": ["a", "b"]}
    first = both | {"right": [True, True], "said": ["a 90%", "b 80%"]}
    second = both | {"right": [False, True], "said": ["b 60%", "b 70%"]}
    assert disagreements([("m", first), ("n", second)]) == [{"input": "in", "right": "a", "m": "a 90% =", "n": "b 60%"}]


def test_what_is_finished_is_not_trained_again(done: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing, "train_run", lambda *_: pytest.fail("trained again"))
    again = run(done.out)
    assert [one.mean for one in again.order] == [one.mean for one in done.order]


def test_a_comparison_that_was_cut_off_reports_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = racing.train_run, []

    def cut(*arguments: Any) -> Any:
        calls.append(arguments[0].out.name)
        if arguments[0].out.name == "rnn":
            raise Stopped("stopped")
        return real(*arguments)

    monkeypatch.setattr(racing, "train_run", cut)
    models = [FNN, "rnn", "lstm?lr=0.01"]
    found = run(tmp_path / "c", models, budget="6steps")
    assert found.stopped
    assert [one.label for one in found.order] == [FNN]
    assert models[-1] not in calls
    assert (tmp_path / "c" / "report.html").exists()
    monkeypatch.setattr(racing, "train_run", real)
    whole = run(tmp_path / "c", models, budget="6steps")
    assert sorted(one.label for one in whole.order) == sorted(models)


def test_a_model_that_fails_is_a_row_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = racing.train_run

    def fail(*arguments: Any) -> Any:
        if "rnn" in arguments[0].out.name:
            raise ResourceError("out of memory")
        return real(*arguments)

    monkeypatch.setattr(racing, "train_run", fail)
    found = run(tmp_path / "c", ["rnn", FNN])
    assert found.row("rnn").failed == "out of memory"
    assert [one.label for one in found.order] == [FNN]
    assert "out of memory" in (tmp_path / "c" / "report.html").read_text()


def test_seeds_have_intervals(tmp_path: Path) -> None:
    found = run(tmp_path / "c", [FNN], seeds=2, budget="4steps")
    row = found.row(FNN)
    assert [one["seed"] for one in row.runs] == [0, 1]
    assert found.order[0].seeds == 2
    assert row.runs[0]["score"] != row.runs[1]["score"]


@pytest.mark.parametrize(
    ("data", "models"),
    [
        ("world:dates?train=40&valid=16", ["seq2seq", "bahdanau?lr=0.01"]),
        ("world:reviews?train=40&valid=40", ["dan", "lstm?lr=0.01"]),
        ("world:tags?train=40&valid=16", ["rnn", "tagger?encoder=fnn&lr=0.01"]),
        ("world:electricity?train=60&valid=20", ["lstm", "forecaster?form=decoder_only&lr=0.01"]),
    ],
)
def test_every_task_is_compared_by_its_own_score(data: str, models: list[str], tmp_path: Path) -> None:
    found = run(tmp_path / "c", models, data, budget="6steps")
    assert not [row.failed for row in found.rows if row.failed]
    assert len(found.order) == 2
    assert found.protocol.metric in {"chrf", "accuracy", "mae", "macro_f1"}
    assert (tmp_path / "c" / "report.html").exists()


def test_a_model_from_outside_is_on_the_ladder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.load_kinds()  # what is imported later is registered in the copy alone, and gone with it
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))

    @regard.register("outsider", sizes={"tiny": {"d_model": 8}, "small": {"d_model": 16}}, paper="a test")
    def outsider(vocab_size: int, *, d_model: int = 8) -> Any:
        """A recurrence by another name."""
        return registry.entry("rnn").config(vocab_size, "tiny", d_model=d_model)

    assert "outsider" in [one.label for one in entrants_for("text", None)]
    found = run(tmp_path / "c", ["outsider"], budget="6steps")
    assert [one.label for one in found.order] == ["outsider"]


@pytest.mark.parametrize(
    ("models", "settings", "words"),
    [
        (["lsmt"], {}, "did you mean 'lstm'"),
        (["classifier"], {}, "is for labelled"),
        (["lstm", "lstm"], {}, "named twice"),
        (["lstm?d_modle=3"], {}, "did you mean 'd_model'"),
        (["lstm"], {"seeds": 0}, "--seeds"),
        (["lstm"], {"folds": 5}, "--folds is for examples"),
        (["dan"], {"folds": 5, "data": "world:reviews"}, "as many test examples as are asked for"),
        (["lstm?valid=tail:0.5"], {}, "data.valid is the same for all models"),
        (["lstm"], {"budget": "1tokens"}, "the smallest budget that works is"),
        (["lstm"], {"budget": "0.001s"}, "the smallest budget that works is"),
        (["lstm"], {"data": "-"}, "save standard input to a file"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    models: list[str], settings: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        run(tmp_path / "c", models, **settings)
    assert not (tmp_path / "c").exists()


def test_a_full_disk_is_told_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(ResourceError, match="GB free"):
        run(tmp_path / "c")


def test_entrants_are_read_with_their_settings() -> None:
    one = read_entrant("lstm?n_layers=3&lr=0.01")
    assert {key: origin.value for key, origin in one.changes.items()} == {
        "model.name": "lstm",
        "model.n_layers": 3,
        "train.lr": 0.01,
    }


def test_a_mixer_is_an_entrant_where_the_task_has_a_head_for_encoders() -> None:
    (one,) = entrants_for("labelled", ["ssd?n_layers=3"])
    assert {key: origin.value for key, origin in one.changes.items()} == {"model.name": "ssd", "model.n_layers": 3}
    with pytest.raises(UsageError, match="unknown model 'ssd'"):
        entrants_for("text", ["ssd"])


def test_sizes_are_within_a_twentieth_where_the_family_allows() -> None:
    settings = [
        resolve({"model.name": Origin(name, "x")})
        for name in ("ngram", "dan", "fnn", "rnn", "lstm", "gru", "gpt", "s4d")
    ]
    found = [sized(one, 100, 300_000) for one in settings]
    for size in found[1:]:
        assert abs(size.parameters / 300_000 - 1) <= 0.05 or "off the common size" in size.note
    assert sum(abs(size.parameters / 300_000 - 1) <= 0.05 for size in found[1:]) >= 6


def test_an_ensemble_has_the_size_of_all_its_parts() -> None:
    def of(**more: Any) -> Settings:
        told = {"model.name": "dan", "model.d_model": 32, **more}
        return resolve({key: Origin(value, "--models") for key, value in told.items()})

    one = sized(of(), 100, count(of(), 100) or 0)
    several = sized(of(**{"train.ensemble": 3}), 100, one.parameters)
    assert several.parameters == 3 * one.parameters
    assert several.note.startswith("is an ensemble of 3, together +200% off the common size")


def test_the_common_size_suits_the_budget_within_reason() -> None:
    settings = [resolve({"model.name": Origin(name, "x")}) for name in ("ngram", "lstm", "gpt")]
    small, middle, large = (common_size(settings, 100, suitable) for suitable in (1, 300_000, 10**9))
    assert small < middle < large
    assert abs(middle / 300_000 - 1) < 0.1
    assert common_size(settings[:1], 100, 1000) == 0


def test_scaling_trains_sizes_and_fits_a_law(tmp_path: Path) -> None:
    found = run(tmp_path / "c", ["ngram", FNN], scaling=True, parameters=20_000, budget="4steps")
    labels = [row.label for row in found.rows]
    assert labels == ["ngram", *(f"{FNN}@{size}" for size in ("0.25", "0.5", "1", "2"))]
    counts = [row.parameters for row in found.rows[1:]]
    assert counts == sorted(counts)
    told = json.loads((tmp_path / "c" / "report.json").read_text())["scaling"][FNN]
    assert len(told["parameters"]["points"]) == 4
    assert {"a", "b", "low", "high", "r2"} == told["parameters"]["law"].keys()
    assert "Test loss by parameters" in (tmp_path / "c" / "report.html").read_text()


def test_shares_of_a_budget_and_seeds_that_fit_it() -> None:
    assert share("2m", 0.5) == "60s"
    assert share("7steps", 0.01) == "1steps"
    assert [seeds_for(text, None) for text in ("20s", "80s", "10m", "1Mtokens")] == [1, 2, 3, 3]
    assert seeds_for("20s", 5) == 5
    protocol = Protocol("x", "text", "100s", 3)
    assert protocol.main_budget == "25s"
    assert protocol.trial_budget == "4.16667s"


def test_a_folder_with_other_settings_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    given = {"data": STORIES, "seeds": 1, "out": tmp_path / "c", "board": LineBoard(None), "size": "tiny"}
    first = compare(["ngram", RNN], budget="4steps", **given)
    report = (tmp_path / "c" / "report.html").read_bytes()
    with pytest.raises(UsageError, match="budget 4steps there and 6steps here"):
        compare(["ngram", RNN], budget="6steps", **given)
    assert (tmp_path / "c" / "report.html").read_bytes() == report
    # One more model joins at the size that the others had.
    again = compare(["ngram", RNN, FNN], budget="4steps", **given)
    assert [row.failed for row in again.rows] == ["", "", ""]
    assert again.row(RNN).parameters == first.row(RNN).parameters
    assert again.row(RNN).runs[0]["seconds"] == first.row(RNN).runs[0]["seconds"]
    assert compare([RNN], budget="6steps", force=True, **given).row(RNN).runs[0]["step"] == 6


def test_what_says_little_is_said(done: Comparison) -> None:
    told = " ".join(notes(done))
    assert "Fewer than 30 steps" in told
    assert "tokens: with so few, chance decides much" in told


def test_a_device_that_is_not_there_is_told_before_anything(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(UsageError, match="0 CUDA devices"):
        compare(["rnn"], STORIES, budget="12steps", out=tmp_path / "c", device="cuda")
    assert not (tmp_path / "c").exists()


def test_the_distance_from_the_best_possible_score_is_a_column(done: Comparison) -> None:
    columns, rows = ranking(done)
    place = columns.index("over best#")
    assert done.optimum is not None
    for one, cells in zip(done.order, rows, strict=False):
        assert len(cells) == len(columns)
        assert float(cells[place]) == pytest.approx(one.mean - done.optimum, rel=0.01)


def test_sentences_are_wrapped_between_words_and_only_on_a_terminal(done: Comparison) -> None:
    from regard.studies.summary import commands, finding, lines, recalled

    whole, narrow = lines(done), lines(done, 60)
    told = [finding(done), recalled(done), *notes(done)]
    assert all(note in whole for note in told)
    first = next(place for place, line in enumerate(narrow) if "is ahead" in line)
    wrapped = narrow[first : narrow.index("", first)]
    assert max(map(len, wrapped)) <= 60
    assert " ".join(wrapped) == " ".join(told)
    assert narrow[-len(commands(done)) :] == commands(done)


def test_how_samples_came_is_held_equal_only_where_it_was(done: Comparison) -> None:
    """Stories are read document by document by all; a long text in windows by some, on and on by others."""
    assert "split, order of samples, and a budget" in notes(done)[0]
    fnn, rnn = (replace(done.row(label), runs=[dict(done.row(label).runs[0])]) for label in ("fnn", "rnn"))
    assert fnn.runs[0]["samples"] == rnn.runs[0]["samples"]
    fnn.runs[0]["samples"], rnn.runs[0]["samples"] = ["windows", 8, 64], ["lanes", 8, 64]
    told = notes(replace(done, rows=(fnn, rnn)))
    assert "order of samples" not in told[0]
    unlike = "fnn read windows drawn at random, 8 of 64 at a time; rnn read on from where the batch before"
    assert any(unlike in note for note in told)


def test_three_seeds_and_a_fit_are_compared(tmp_path: Path) -> None:
    found = run(tmp_path / "c", ["ngram", FNN], seeds=3, budget="6steps")
    assert found.verdict.winner == "ngram"
    assert "ngram is best at 6steps a model" in (tmp_path / "c" / "report.md").read_text()
    told = json.loads((tmp_path / "c" / "report.json").read_text())
    assert (told["verdict"]["winner"], told["verdict"]["examples"]) == ("ngram", found.verdict.examples)
    assert any("the chance of the test and of 3 trainings" in note for note in notes(found))


def test_models_in_other_tokens_are_ranked_by_bits_a_byte(tmp_path: Path) -> None:
    draw = random.Random(0)
    (tmp_path / "my.txt").write_text(" ".join(draw.choice(("the", "cat", "sat", "on", "mats")) for _ in range(1500)))
    models = ["ngram", "ngram?tokens=bytes", f"{FNN}&tokens=bytes"]
    found = run(tmp_path / "c", models, str(tmp_path / "my.txt"), budget="4steps", length=16, batch_size=2)
    assert not [row.failed for row in found.rows if row.failed]
    assert (found.protocol.metric, found.protocol.lower_is_better) == ("bits_per_byte", True)
    first, second = (found.row(label).runs[0] for label in models[:2])
    # Every letter of this text is a byte: both count the same grams.
    assert first["score"] == pytest.approx(second["score"], rel=0.05)
    assert first["score"] == pytest.approx(first["scores"]["bits_per_byte"], rel=0.05)
    assert "data, split" in notes(found)[0]
    assert "bits per byte" in (tmp_path / "c" / "report.md").read_text()


def test_every_example_is_tested_once_in_folds(tmp_path: Path) -> None:
    data = tmp_path / "d.tsv"
    data.write_text(
        "text\tlabel\n" + "".join(f"it is {word} {n}\t{word}\n" for n in range(30) for word in ("good", "bad"))
    )
    found = run(tmp_path / "c", ["majority", "dan?lr=0.01"], str(data), budget="12steps", folds=3, seeds=2)
    assert not [row.failed for row in found.rows if row.failed]
    assert [len(row.runs) for row in found.rows] == [3, 6]
    assert {run["step"] for run in found.row("dan?lr=0.01").runs} == {2}
    tested = [set(regard.load(done["path"]).held_out("test")) for done in found.row("majority").runs]
    assert not tested[0] & tested[1] | tested[1] & tested[2] | tested[0] & tested[2]
    assert found.verdict.examples == sum(map(len, tested)) == found.facts["test"]
    assert found.facts["folds"] == 3
    assert "2 seeds on 3 folds" in notes(found)[0]
    assert from_report(read_report(found.out), found.out).verdict == found.verdict
