"""Captions as a task: rows and batches, answers, scores by category, resumes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from regard.core.registry import entry
from regard.data.example import Captioned
from regard.data.ragged import ragged
from regard.data.rows import CaptionRows, Shuffled
from regard.data.settings import DataSettings
from regard.data.worlds import world
from regard.errors import UsageError
from regard.run.settings import Origin
from regard.run.train import plan, train_run
from regard.tasks import task_named
from regard.tasks.captions import CaptionProcessor, Captions
from regard.tasks.dataset import ExampleDataset
from regard.tasks.verbs import Answer
from regard.tasks.writing import Written
from regard.training.settings import TrainSettings

SMALL = DataSettings(path="world:shapes?train=24&valid=12", task="captions")


@pytest.fixture(scope="module")
def dataset() -> ExampleDataset[CaptionProcessor]:
    return Captions().prepare(SMALL, 0)


def built(dataset: ExampleDataset[CaptionProcessor], **settings: Any) -> nn.Module:
    torch.manual_seed(3)
    return entry("captioner").config(dataset.spec, "tiny", **settings).build().eval()


def test_the_task_is_known():
    assert task_named("captions").shape == "1-N"
    assert task_named("captions").model == "captioner"


def test_a_batch_holds_pictures_and_what_is_read_and_written_of_them():
    pictures = np.arange(3 * 2 * 2 * 3, dtype=np.uint8).reshape(3, 2, 2, 3)
    rows = CaptionRows(pictures, ragged([np.array([5]), np.array([6, 7, 8]), np.array([9, 4])]), eos_id=1)
    assert rows.n_targets == 1 + 3 + 2 + 3
    batch = rows.batch_of(np.array([2, 0]), np.array([12, 10]))
    assert batch.tokens.tolist() == [[1, 9, 4], [1, 5, 1]]
    assert batch.targets.tolist() == [[9, 4, 1], [5, 1, -100]]
    assert batch.lengths.tolist() == [3, 2]
    assert batch.indices == [12, 10]
    assert batch.source_lengths is None
    assert batch.source is not None
    # Row 2, green of the lower left pixel: byte 2 * 12 + 1 * 6 + 0 * 3 + 1.
    assert batch.source[0, 1, 1, 0].item() == pytest.approx(31 / 127.5 - 1)
    assert batch.source.shape == (2, 3, 2, 2)


def test_every_pixel_and_every_token_is_part_of_the_hash():
    pictures, target = np.zeros((2, 2, 2, 3), np.uint8), ragged([np.array([5]), np.array([6])])
    changed = pictures.copy()
    changed[1, 1, 1, 2] = 1
    hashes = {
        CaptionRows(pictures, target, 1).hash,
        CaptionRows(changed, target, 1).hash,
        CaptionRows(pictures, ragged([np.array([5]), np.array([7])]), 1).hash,
    }
    assert len(hashes) == 3


@pytest.mark.parametrize("decoder", ["transformer", "bahdanau", "lstm"])
def test_a_batch_is_answered_like_its_members(dataset: ExampleDataset[CaptionProcessor], decoder: str):
    model = built(dataset, decoder=decoder)
    kind, examples = Captions(), dataset.examples[:5]
    together = list(kind.answers(model, dataset.processor, examples))
    alone = [next(kind.answers(model, dataset.processor, [example])) for example in examples]
    assert [answer.text for answer in together] == [answer.text for answer in alone]
    found, expected = ([answer.details["log_prob"] for answer in answers] for answers in (together, alone))
    assert found == pytest.approx(expected, rel=1e-4)
    assert len({round(number, 4) for number in found}) > 1, "the pictures make no difference"


def test_the_processor_comes_back_from_its_files(dataset: ExampleDataset[CaptionProcessor], tmp_path: Path):
    for name, content in dataset.processor.files().items():
        (tmp_path / name).write_bytes(content)
    processor = Captions().load_processor(lambda name: tmp_path / name)
    assert processor.hash == dataset.processor.hash
    assert (processor.size, processor.longest) == (32, 10)
    assert processor.tokenizer.kind == "words"


def test_pictures_are_brought_to_the_size_that_is_asked_for():
    found = Captions().prepare(DataSettings(path="world:shapes?train=4&valid=4", task="captions", size=16), 0)
    assert found.spec.picture == (3, 16, 16)
    assert found.train.batch_of(np.arange(4), np.arange(4)).source.shape == (4, 3, 16, 16)  # pyright: ignore


def test_scores_by_category(dataset: ExampleDataset[CaptionProcessor], monkeypatch: pytest.MonkeyPatch):
    picture = np.zeros((32, 32, 3), np.uint8)
    examples = [Captioned(picture, text, kind) for text, kind in (("a b", "x"), ("c d", "x"), ("e f", "y"))]
    said = ["a b", "c e", "e f"]
    monkeypatch.setattr(Captions, "written", lambda *_: [Written(text, (), 0.0, 0.0, "eos") for text in said])
    report = Captions().evaluate(built(dataset), dataset.processor, examples)
    assert report.scores["exact_match"] == pytest.approx(2 / 3)
    assert report.scores["captions"] == 3
    assert 0 < report.scores["chrf"] < 100
    rows = [(row["category"], row["captions"], row["exact_match"]) for row in report.tables["by_category"]]
    assert rows == [("x", 2, 0.5), ("y", 1, 1.0)]
    alone = Captions().evaluate(built(dataset), dataset.processor, examples[:2] + examples[:1])
    assert not alone.tables["by_category"]


def test_weights_are_judged_by_examples_from_all_of_the_held_out_part(
    dataset: ExampleDataset[CaptionProcessor], monkeypatch: pytest.MonkeyPatch
):
    """Of 500 sorted by kind, 200 are taken; the first 200 would all be of one kind."""
    picture = np.zeros((32, 32, 3), np.uint8)
    examples = [Captioned(picture, str(i), "x" if i < 250 else "y") for i in range(500)]
    seen: list[Captioned] = []

    def written(
        _self: Captions, _model: nn.Module, _processor: CaptionProcessor, inputs: list[Captioned], _options: Any
    ) -> Any:
        seen.extend(inputs)
        return [Written("7", (), 0.0, 0.0, "eos") for _ in inputs]

    monkeypatch.setattr(Captions, "written", written)
    training = Captions().training(replace(dataset, examples=examples), built(dataset), TrainSettings(), SMALL)
    assert training.metric is not None
    training.metric.measure(built(dataset))
    assert len(seen) == 200
    assert {one.category for one in seen} == {"x", "y"}


def test_words_can_be_hidden(dataset: ExampleDataset[CaptionProcessor]):
    training = Captions().training(dataset, built(dataset), TrainSettings(word_dropout=0.9), SMALL)
    tokens = training.sampler.batch(0, 8).tokens
    share = (tokens[:, 1:] == dataset.processor.tokenizer.unknown_id).double().mean()
    assert share > 0.3


def test_a_sample_shows_the_caption_and_the_right_one():
    example = Captioned(np.zeros((2, 2, 3), np.uint8), "a dog", file="dog.png")
    assert Captions().describe(example, Answer("a dog")) == "a dog ="
    assert Captions().describe(example, Answer("a cat")) == "a cat (right: a dog)"
    assert Captions().command("runs/x", example) == "regard generate runs/x dog.png"
    scene = world("shapes").examples("valid", 1)[0]  # pyright: ignore[reportAttributeAccessIssue]
    assert Captions().command("runs/x", scene) == "regard generate runs/x 'world:shapes?valid=3'"


def test_a_picture_with_several_captions_is_never_on_both_sides(tmp_path: Path):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (30, 8, 8, 3), dtype=np.uint8).repeat(2, 0)
    np.savez(tmp_path / "my.images.npz", images=images)
    (tmp_path / "my.captions.tsv").write_text("".join(f"caption {i}\n" for i in range(60)), encoding="utf-8")
    settings = DataSettings(path=str(tmp_path / "my.images.npz"), task="captions", size=8, valid="hash:0.3")
    found = Captions().prepare(settings, 0)
    held = {example.picture.tobytes() for example in found.examples}
    learnt = {picture.tobytes() for picture in found.train.pictures}  # pyright: ignore[reportAttributeAccessIssue]
    assert 0 < len(held) < 30
    assert not held & learnt
    assert len(found.examples) == 2 * len(held)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"path": "world:dates"}, "holds pairs, not captions"),
        ({"path": "world:shapes", "reverse": True}, "data.reverse means nothing to the task captions"),
        ({"path": "world:shapes", "label": "x"}, "data.label means nothing"),
    ],
)
def test_what_means_nothing_is_refused(settings: dict[str, Any], words: str):
    with pytest.raises(UsageError, match=words):
        Captions().prepare(DataSettings(task="captions", **settings), 0)


@pytest.mark.parametrize("text", ["", "a.png\n\nb.png"])
def test_an_empty_line_is_no_picture(text: str):
    with pytest.raises(UsageError, match=r"line \d is empty"):
        Captions().inputs(text)


def test_a_resumed_run_has_the_weights_of_one_that_was_never_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Cut between two saves; dropout makes the weights depend on the restored chance too."""
    given: dict[str, Any] = {
        "data.path": SMALL.path,
        "model.size": "tiny",
        "model.dropout": 0.2,
        "train.budget": "8steps",
        "train.batch_size": 4,
        "train.save_every": 3,
        "train.evaluate_every": 4,
        "train.device": "cpu",
        "train.threads": 1,
    }
    changes = {key: Origin(value, "test") for key, value in given.items()}
    train_run(plan(recipe=None, changes=changes, out=tmp_path / "whole"))
    with monkeypatch.context() as patch:
        patch.setattr(Shuffled, "batch", _until(5, Shuffled.batch))
        with pytest.raises(InterruptedError):
            train_run(plan(recipe=None, changes=changes, out=tmp_path / "cut"))
    run, result = train_run(plan(recipe=None, changes={}, out=tmp_path / "cut", resume="last"))
    assert result.step == 8
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut"))
    assert one == other
    assert json.loads((tmp_path / "cut" / "codec.json").read_text()) == {"size": 32, "longest": 10}
    assert run.config["model"]["name"] == "captioner"


def _until(stop: int, batch: Any) -> Any:
    def cut(self: Shuffled, step: int, batch_size: int) -> Any:
        if step >= stop:
            raise InterruptedError
        return batch(self, step, batch_size)

    return cut
