"""Every task: many inputs are answered as one by one, a run goes on bit for bit, and too long texts are told."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.core import registry
from regard.data.example import Labelled, Pair, Tagged
from regard.data.ragged import in_batches
from regard.data.rows import Shuffled
from regard.data.settings import DataSettings
from regard.errors import DataError, UsageError
from regard.storage import tensors
from regard.tasks import task_named
from regard.training import run_folder
from regard.training.loop import train
from regard.training.resume import Resume
from tiny_run import SETTINGS

ANIMALS, VERBS = ("cat", "dog", "bird", "fox"), ("sees", "likes", "hears")
WORDS = {"cat": "katze", "dog": "hund", "bird": "vogel", "fox": "fuchs", "sees": "sieht", "likes": "mag"}


def sentences(count: int = 80) -> list[list[str]]:
    chance = random.Random(0)
    return [
        [chance.choice(VERBS if place % 2 else ANIMALS) for place in range(chance.randint(1, 7))] for _ in range(count)
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    here = tmp_path_factory.mktemp("data")
    lines = sentences()
    texts = {
        "pairs": [f"{' '.join(line)}\t{' '.join(WORDS.get(word, word) for word in line)}" for line in lines],
        "labelled": ["text\tlabel", *(f"{' '.join(line)}\t{'cats' if 'cat' in line else 'none'}" for line in lines)],
        "tagged": ["\n".join(f"{word}\t{'N' if word in ANIMALS else 'V'}" for word in line) + "\n" for line in lines],
    }
    for name, rows in texts.items():
        (here / f"{name}.{'conll' if name == 'tagged' else 'tsv'}").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return {name: str(here / f"{name}.{'conll' if name == 'tagged' else 'tsv'}") for name in texts}


def load_dataset(name: str, data: dict[str, str], model: str | None = None, **settings: Any) -> tuple[Any, Any, Any]:
    """The task, its dataset, and a tiny model of it."""
    kind = task_named(name)
    dataset = kind.prepare(DataSettings(path=data[name], **settings), 0)
    torch.manual_seed(0)
    built = registry.entry(model or kind.model).config(dataset.spec, "tiny").build()
    return kind, dataset, built


INPUTS = {
    "pairs": ["cat sees dog", "", "bird", "fox likes bird hears cat sees dog", "never seen words", "cat"],
    "labelled": ["cat sees dog", "", "bird", "fox likes bird hears cat sees dog", "never seen words", "cat"],
    "tagged": ["cat sees dog", "", "bird", "fox likes bird hears cat sees dog", "never seen Wörter", "  "],
}


def numbers(answer: Any) -> list[float]:
    chances = answer.details.get("probabilities", {})
    return [*chances.values()] or [answer.details.get("log_prob", 0.0)]


@pytest.mark.parametrize("name", INPUTS)
def test_many_inputs_are_answered_as_one_by_one_in_their_order(name, data, monkeypatch):
    for module in ("pairs", "reading", "tagged"):
        monkeypatch.setattr(f"regard.tasks.{module}.in_batches", lambda sizes: in_batches(sizes, at_once=2))
    kind, dataset, model = load_dataset(name, data)
    model = model.double().eval()
    together = list(kind.answers(model, dataset.processor, INPUTS[name]))
    for given, answer in zip(INPUTS[name], together, strict=True):
        (alone,) = kind.answers(model, dataset.processor, [given])
        assert answer.text == alone.text
        assert numbers(answer) == pytest.approx(numbers(alone), abs=1e-10)
    assert list(kind.answers(model, dataset.processor, [])) == []


@pytest.mark.parametrize("name", INPUTS)
def test_the_loss_of_a_batch_is_that_of_its_members(name, data):
    kind, dataset, model = load_dataset(name, data)
    model = model.double().eval()
    objective, rows = kind.objective(SETTINGS), dataset.train
    chosen = np.array([3, 0, 11, 5])
    loss, count, _ = objective(model, rows.batch_of(chosen, chosen), None)
    alone = [objective(model, rows.batch_of(row[None], row[None]), None) for row in chosen]
    assert int(count) == sum(int(one[1]) for one in alone) == rows.batch_of(chosen, chosen).n_counted
    assert float(loss) == pytest.approx(sum(float(one[0]) for one in alone), abs=1e-4)  # summed in float32


@pytest.mark.parametrize(
    ("name", "model"), [("pairs", "transformer"), ("pairs", "bahdanau"), ("labelled", None), ("tagged", None)]
)
def test_a_run_that_was_cut_off_goes_on_bit_for_bit(name, model, data, tmp_path):
    settings = replace(SETTINGS, budget="8steps", label_smoothing=0.1)

    def go(path: Path, resume: Any = "no", cut: int | None = None) -> Any:
        kind, dataset, built = load_dataset(name, data, model)
        job = kind.training(dataset, built, settings, DataSettings(path=data[name]))
        sampler = job.sampler if cut is None else Cut(job.sampler, cut)
        train(built, replace(job, sampler=sampler), settings, path, resume=Resume(resume))
        return built

    whole = go(tmp_path / "whole")
    with pytest.raises(InterruptedError):
        go(tmp_path / "cut", cut=5)
    resumed = go(tmp_path / "cut", resume="last")
    assert all(torch.equal(one, other) for one, other in zip(whole.parameters(), resumed.parameters(), strict=True))
    kept = [run_folder.verified_weights(tmp_path / run).read_bytes() for run in ("whole", "cut")]
    assert kept[0] == kept[1]
    tensors.load_weights(whole, run_folder.verified_weights(tmp_path / "cut"))


class Cut:
    """A sampler that breaks off at a step."""

    def __init__(self, inner: Any, step: int) -> None:
        self.inner, self.step = inner, step

    def batch(self, step: int, batch_size: int) -> Any:
        if step == self.step:
            raise InterruptedError
        return self.inner.batch(step, batch_size)


class Asked:
    """Rows of unequal length that only remember which were asked for."""

    def __init__(self, count: int) -> None:
        self.sizes, self.asked = np.arange(count) % 7, []

    def batch_of(self, rows: np.ndarray, numbers: np.ndarray) -> None:
        self.asked.append((rows.tolist(), numbers.tolist()))


def test_an_epoch_is_every_example_once_and_a_batch_joins_similar_lengths():
    rows: Any = Asked(4 * 32)
    sampler = Shuffled(rows, seed=5)
    for step in range(32):
        sampler.batch(step, 4)
    assert sorted(row for batch, _ in rows.asked for row in batch) == list(range(128))
    assert sorted(number for _, batch in rows.asked for number in batch) == list(range(128))
    spread = [max(rows.sizes[batch]) - min(rows.sizes[batch]) for batch, _ in rows.asked]
    assert max(spread) <= 1
    again: Any = Asked(4 * 32)
    Shuffled(again, seed=5).batch(17, 4)
    assert again.asked[0] == rows.asked[17]


def test_separate_vocabularies_are_saved_and_read_again(data, tmp_path):
    settings = {"size": "tiny", "budget": "3steps", "batch_size": 4, "device": "cpu", "quiet": True}
    run: Any = regard.train("bahdanau", data["pairs"], out=tmp_path / "run", shared=False, tokens="words", **settings)
    loaded: Any = regard.load(tmp_path / "run")
    assert loaded.processor.source is not loaded.processor.target
    lines = ["cat sees dog", "bird"]
    assert [a.text for a in run.answers(lines)] == [a.text for a in loaded.answers(lines)]
    assert loaded.evaluate().to_dict() == run.evaluate().to_dict()


@pytest.mark.parametrize("name", ["transformer", "gnmt"])
def test_a_shared_table_is_saved_once_and_read_for_both_sides(name, data, tmp_path):
    settings = {"size": "tiny", "budget": "3steps", "batch_size": 4, "device": "cpu", "quiet": True}
    run: Any = regard.train(name, data["pairs"], out=tmp_path / "run", **settings)
    loaded: Any = regard.load(tmp_path / "run")
    assert loaded.model.encoder.embedding.token_to_vector is loaded.model.decoder.embedding.token_to_vector
    for (key, one), (_, other) in zip(run.model.state_dict().items(), loaded.model.state_dict().items(), strict=True):
        assert torch.equal(one, other), key


def test_a_keyword_may_say_the_task_and_the_other_side(tmp_path):
    lines = sentences(30)
    (tmp_path / "a.txt").write_text("".join(f"{' '.join(line)}\n" for line in lines))
    (tmp_path / "b.txt").write_text("".join(f"{' '.join(line[::-1])}\n" for line in lines))
    settings = {"size": "tiny", "budget": "2steps", "batch_size": 4, "device": "cpu", "quiet": True}
    run: Any = regard.train(
        None, tmp_path / "a.txt", target=str(tmp_path / "b.txt"), out=tmp_path / "pairs", **settings
    )
    assert (run.task.name, run.config["model"]["name"]) == ("pairs", "transformer")
    (tmp_path / "t.tsv").write_text("".join(f"{' '.join(line)}\t{' '.join(line[::-1])}\n" for line in lines))
    text: Any = regard.train(
        "lstm", tmp_path / "t.tsv", task="text", format="text", length=16, out=tmp_path / "text", **settings
    )
    assert text.config["data"]["task"] == "text"


LEARNED = {"position": "learned", "max_length": 6}


def test_a_source_beyond_the_positions_is_refused_before_anything_is_written(data, tmp_path):
    settings = {"size": "tiny", "budget": "2steps", "device": "cpu", "quiet": True, "tokens": "words", **LEARNED}
    with pytest.raises(DataError, match=r"source of pair \d+ has 8 tokens and the model 6 positions.*data\.truncate"):
        regard.train("transformer", data["pairs"], out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_a_run_on_cut_sources_trains_is_judged_and_answers(data, tmp_path):
    settings = {"size": "tiny", "budget": "2steps", "device": "cpu", "quiet": True, "tokens": "words", **LEARNED}
    settings |= {"evaluate_every": 1, "batch_size": 4, "truncate": True}
    run: Any = regard.train("transformer", data["pairs"], out=tmp_path / "run", **settings)
    loaded: Any = regard.load(tmp_path / "run")
    long, short = " ".join(["cat"] * 30), " ".join(["cat"] * 6)
    assert loaded.generate(long) == loaded.generate(short) == run.generate(long)
    assert loaded.evaluate().scores["sentences"] == len(loaded.dataset.examples)


def test_an_input_beyond_the_positions_of_a_run_is_refused(data):
    kind, dataset, _ = load_dataset("pairs", data, tokens="words")
    model = registry.entry("transformer").config(dataset.spec, "tiny", **LEARNED).build().eval()
    with pytest.raises(UsageError, match="input 2 has 9 tokens and the model 6 positions"):
        list(kind.answers(model, dataset.processor, ["cat", " ".join(["cat"] * 8)]))


@pytest.mark.parametrize(
    ("name", "example", "words"),
    [
        (
            "labelled",
            Labelled("cat", "zebras", "f.tsv, line 7"),
            r"f\.tsv, line 7: the label 'zebras'.*known: cats, none",
        ),
        ("tagged", Tagged(("cat",), ("NN",), "f.conll, line 7"), r"f\.conll, line 7: the tag 'NN'"),
    ],
)
def test_what_training_never_saw_is_refused_where_it_stands(name, example, words, data):
    kind, dataset, model = load_dataset(name, data)
    with pytest.raises(DataError, match=words):
        kind.evaluate(model.eval(), dataset.processor, [example])
    with pytest.raises(DataError, match=words):
        dataset.processor.rows([example])


def test_pairs_with_an_empty_side_are_judged_too(data):
    kind, dataset, model = load_dataset("pairs", data)
    empty = [Pair("", ""), Pair("cat", ""), Pair("", "katze")]
    report = kind.evaluate(model.eval(), dataset.processor, empty)
    assert report.scores["sentences"] == 3
