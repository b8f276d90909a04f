"""Masked text as a task: training goes on bit for bit, masks are filled in, and padding changes nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.core.model import logits_of
from regard.core.registry import entry
from regard.data.batch import NOT_COUNTED
from regard.data.rows import once
from regard.data.settings import DataSettings
from regard.errors import UsageError
from regard.tasks.masked import HELD_OUT_SEED, MaskedText
from regard.training.losses import model_loss
from tiny_run import weight_hash

WORLD = "world:stories?train=60&valid=12"
TINY: dict[str, Any] = {"size": "tiny", "device": "cpu", "length": 24, "batch_size": 4, "quiet": True}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("runs") / "bert"
    return regard.train("bert", WORLD, budget="20steps", out=out, **TINY)


@pytest.fixture
def dataset() -> Any:
    return MaskedText(length=200).prepare(DataSettings(path=WORLD, task="masked"), 0)


def double_model(dataset: Any) -> Any:
    return entry("bert").config(dataset.spec, "tiny").build().double().eval()


def test_the_mask_is_one_token_more_and_travels_with_the_run(run: Any) -> None:
    tokenizer = run.processor.tokenizer
    assert run.processor.masking.mask_id == tokenizer.vocab_size
    assert run.model.vocab_size == tokenizer.vocab_size + 1
    saved = json.loads((run.path / "codec.json").read_bytes())
    assert saved == {"whole_words": False}


@torch.no_grad()
def test_loss_is_that_of_the_hidden_tokens_alone(dataset: Any) -> None:
    model = double_model(dataset)
    batch = next(once(dataset.valid, 4))
    loss, count, _ = model_loss(model, batch, None)
    by_hand, n = 0.0, 0
    for row, length in enumerate(batch.lengths.tolist()):
        chances = logits_of(model, batch.tokens[row : row + 1, :length])[0].log_softmax(-1)
        for t in range(length):
            if batch.targets[row, t] != NOT_COUNTED:
                by_hand -= float(chances[t, batch.targets[row, t]])
                n += 1
    assert int(count) == n > 4
    assert float(loss) == pytest.approx(by_hand, abs=1e-9)


@torch.no_grad()
def test_padding_changes_no_loss_and_a_batch_is_its_rows(dataset: Any) -> None:
    model = double_model(dataset)
    rows = np.argsort(dataset.valid.sizes)[[0, -1]]
    assert len(set(dataset.valid.sizes[rows])) == 2
    together = model_loss(model, dataset.valid.batch_of(rows, rows), None)[0]
    alone = [model_loss(model, dataset.valid.batch_of(rows[i : i + 1], rows[i : i + 1]), None)[0] for i in (0, 1)]
    assert float(together) == pytest.approx(float(sum(alone)), abs=1e-9)


def test_answers_in_a_batch_are_those_one_by_one(run: Any) -> None:
    texts = ["Once there was a [MASK] boy", "[MASK]", "the [MASK] [MASK] was shining because [MASK] was late"]
    together = run.answers(texts)
    assert [answer.text for answer in together] == [run.generate(text) for text in texts]
    for answer, text in zip(together, texts, strict=True):
        assert len(answer.details["masks"]) == text.count("[MASK]")
        for mask in answer.details["masks"]:
            chances = [one["probability"] for one in mask["top"]]
            assert len(chances) == 5
            assert chances == sorted(chances, reverse=True)
            assert mask["token"] == mask["top"][0]["token"] not in ("<eos>", "<mask>")


def test_the_answer_is_the_text_with_its_masks_filled(run: Any) -> None:
    answer = run.answers(["zebra  [MASK] , quux"])[0]
    assert answer.text == f"zebra  {answer.details['masks'][0]['token']} , quux"


def test_the_first_mask_filled_is_the_one_that_is_most_certain(run: Any) -> None:
    masking, tokenizer = run.processor.masking, run.processor.tokenizer
    ids = [tokenizer.eos_id, masking.mask_id, *tokenizer.encode("was a"), masking.mask_id, tokenizer.eos_id]
    tokens = torch.tensor([ids])
    order = []
    for _ in range(2):
        chances = logits_of(run.model, tokens)[0].detach().clone()
        chances[:, tokenizer.eos_id :] = float("-inf")
        best = chances.softmax(-1).max(-1)
        places = (tokens[0] == masking.mask_id).nonzero()[:, 0]
        place = int(places[best.values[places].argmax()])
        tokens[0, place] = best.indices[place]
        order.append(place)
    assert sorted(order) == [1, 4]
    words = [tokenizer.token_text(int(tokens[0, place])) for place in (1, 4)]
    assert run.generate("[MASK] was a [MASK]") == f"{words[0]} was a {words[1]}"


def test_subwords_bring_their_space(tmp_path: Path) -> None:
    path = tmp_path / "my.txt"
    path.write_text("the cat sat on the mat .\nthe dog sat on the log .\n" * 30)
    run: Any = regard.train("bert", str(path), budget="2steps", out=tmp_path / "r", valid="tail:0.1", **TINY)
    assert run.processor.tokenizer.kind == "bpe"
    answer = run.answers(["the [MASK] sat on the mat"])[0]
    token = answer.details["masks"][0]["token"]
    assert answer.text == f"the{token} sat on the mat"


def test_evaluation_is_the_mean_over_fixed_masks(run: Any) -> None:
    found = run.evaluate().scores
    assert found == run.evaluate().scores
    total, right, n = 0.0, 0, 0
    for passage in run.dataset.examples:
        read, targets = run.processor.masking.hide(
            passage.ids[None], np.array([len(passage.ids)]), np.array([passage.number]), HELD_OUT_SEED
        )
        logits = logits_of(run.model, torch.from_numpy(read))[0].double().log_softmax(-1)
        for t in np.flatnonzero(targets[0] != NOT_COUNTED):
            total -= float(logits[t, targets[0, t]])
            right += int(logits[t].argmax()) == targets[0, t]
            n += 1
    assert found["hidden_tokens"] == n
    assert found["loss"] == pytest.approx(total / n, abs=1e-5)
    assert found["accuracy"] == pytest.approx(right / n)
    assert found["perplexity"] == pytest.approx(math.exp(total / n), rel=1e-5)


def test_evaluation_of_a_loaded_run_and_of_a_file(run: Any, tmp_path: Path) -> None:
    loaded: Any = regard.load(run.path, device="cpu")
    assert loaded.task.length == 24
    assert loaded.evaluate().scores == run.evaluate().scores
    (tmp_path / "other.txt").write_text("Once there was a boy . " * 40)
    report = loaded.evaluate(str(tmp_path / "other.txt"))
    assert report.scores["passages"] > 5
    assert report.scores["hidden_tokens"] > 15


def test_encode_gives_a_vector_for_each_token(run: Any) -> None:
    vectors = run.encode("Once there was a boy")
    assert vectors.shape == (5, 16)
    changed = run.encode("Once there was a girl")
    assert not torch.allclose(vectors[0], changed[0]), "the first word has not seen the last"


def test_resume_is_bit_identical(tmp_path: Path) -> None:
    settings = TINY | {"save_every": 5, "evaluate_every": 5, "schedule": "constant", "warmup": 0.0}
    whole: Any = regard.train("bert", WORLD, budget="12steps", out=tmp_path / "whole", **settings)
    regard.train("bert", WORLD, budget="5steps", out=tmp_path / "parts", **settings)
    parts: Any = regard.train(out=tmp_path / "parts", budget="12steps", resume=True, quiet=True)
    for name in ("00000012/model.safetensors", "00000012/optimiser.safetensors"):
        pair = [(path / "checkpoints" / name).read_bytes() for path in (whole.path, parts.path)]
        assert pair[0] == pair[1], name
    assert weight_hash(whole.model) == weight_hash(parts.model)


def test_training_learns_to_use_what_stands_around(tmp_path: Path) -> None:
    path, other = tmp_path / "pairs.txt", tmp_path / "other.txt"
    lines = [f"{a}{b} likes {b}{a}\n" for a in "abc" for b in "xyz"]
    path.write_text("".join(lines))
    other.write_text("".join(reversed(lines)))
    settings = {"lr": 0.01, "d_model": 32, "documents": "line", "tokens": "words", "valid": str(other)}
    settings |= TINY | {"evaluate_every": 250, "batch_size": 16}
    run: Any = regard.train("bert", str(path), budget="250steps", out=tmp_path / "r", **settings)
    for a in "abc":
        for b in "xyz":
            assert run.generate(f"{a}{b} likes [MASK]") == f"{a}{b} likes {b}{a}"
            assert run.generate(f"[MASK] likes {b}{a}") == f"{a}{b} likes {b}{a}"


def test_a_text_without_a_mask_is_refused_in_one_line(run: Any) -> None:
    with pytest.raises(UsageError, match=r"^input 2 has no \[MASK\]: write it where a token is to be filled in$"):
        run.answers(["a [MASK]", "Once there was"])


def test_positions_that_turn_have_no_end(run: Any) -> None:
    assert len(run.answers(["a [MASK] " * 20])[0].details["masks"]) == 20


def test_a_text_beyond_the_trained_positions_is_refused(tmp_path: Path) -> None:
    run: Any = regard.train("bert", WORLD, budget="1steps", out=tmp_path / "r", position="learned", **TINY)
    with pytest.raises(UsageError, match="27 tokens and the model 24 positions"):
        run.generate("a " * 24 + "[MASK]")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": 2}, "train.length: 2 leaves no room"),
        ({"length": 600, "position": "learned"}, "train.length: 600 is above the 512 positions"),
        ({"shared": False}, "data.shared means nothing to the task masked"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        regard.train("bert", WORLD, budget="1steps", out=tmp_path / "r", **TINY | settings)
    assert not (tmp_path / "r" / "config.json").exists()


def test_a_text_and_bert_make_the_task(tmp_path: Path) -> None:
    from regard.run.settings import Origin
    from regard.run.train import plan

    def planned(**named: str) -> tuple[str, str]:
        changes = {key.replace("_", ".", 1): Origin(value, "test") for key, value in named.items()}
        job = plan(recipe=None, changes=changes, out=tmp_path / "r")
        return job.settings["data.task"], job.settings["model.name"]

    assert planned(data_path="world:stories", model_name="bert") == ("masked", "bert")
    assert planned(data_path="world:stories", data_task="masked") == ("masked", "bert")
    assert planned(data_path="world:stories") == ("text", "gpt")
    with pytest.raises(UsageError, match="gpt is for text"):
        planned(data_path="world:stories", data_task="masked", model_name="gpt")
