"""An ensemble is the mean of its parts, which are runs of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.core.model import logits_of
from regard.errors import UsageError
from regard.run.run import load
from regard.tasks.dataset import ExampleDataset
from regard.training.losses import inputs_of

WORLDS = {
    "series": "world:electricity?train=20&valid=4",
    "labelled": "world:reviews?train=60&valid=20",
    "tagged": "world:tags?train=60&valid=20",
}


def trained(task: str, out: Path, **more):
    return regard.train(None, WORLDS[task], size="tiny", budget="6steps", ensemble=2, out=out, quiet=True, **more)


@pytest.mark.parametrize("task", WORLDS)
def test_its_answer_is_the_mean_of_those_of_its_parts(task: str, tmp_path: Path):
    run = trained(task, tmp_path / "e")
    assert isinstance(run.dataset, ExampleDataset)
    batch = run.dataset.valid.batch_of(np.arange(3), np.arange(3))
    parts = [load(tmp_path / "e" / "parts" / str(number)) for number in range(2)]
    assert [part.seed for part in parts] == [0, 1]
    assert [part.config["train"]["budget"] for part in parts] == ["3steps", "3steps"]
    with torch.no_grad():
        whole, first, second = (logits_of(one.model, inputs_of(batch)) for one in (run, *parts))
    assert not torch.allclose(first, second)
    if task == "series":
        assert torch.allclose(whole, (first + second) / 2)
    else:
        assert torch.allclose(whole.exp(), (first.softmax(-1) + second.softmax(-1)) / 2, atol=1e-6)
    again = load(tmp_path / "e").evaluate().scores[run.task.metric]
    assert again == run.evaluate().scores[run.task.metric]


def test_of_a_language_model_the_probabilities_are_averaged(tmp_path: Path):
    run = regard.train(
        *("lstm", "world:stories?train=30&valid=9"), size="tiny", budget="4steps", ensemble=2, out=tmp_path / "e",
        quiet=True,
    )  # fmt: skip
    parts = [load(tmp_path / "e" / "parts" / str(number)) for number in range(2)]
    whole, first, second = (np.exp(one.score("the").log_prob) for one in (run, *parts))
    assert whole == pytest.approx((first + second) / 2, rel=1e-5)
    assert run.generate("the", max_tokens=3, seed=1)


@pytest.mark.parametrize(("task", "data"), [("pairs", "world:dates"), ("captions", "world:shapes")])
def test_of_what_writes_from_a_source_the_chances_of_the_next_token_are_averaged(
    task: str, data: str, tmp_path: Path
) -> None:
    run = regard.train(
        *(None, f"{data}?train=30&valid=8"), size="tiny", budget="4steps", ensemble=2, out=tmp_path / "e", quiet=True
    )  # fmt: skip
    assert isinstance(run.dataset, ExampleDataset)
    batch = run.dataset.valid.batch_of(np.arange(3), np.arange(3))
    parts = [load(tmp_path / "e" / "parts" / str(number)) for number in range(2)]
    with torch.no_grad():
        whole, first, second = (logits_of(one.model, inputs_of(batch)).softmax(-1) for one in (run, *parts))
    assert not torch.allclose(first, second)
    torch.testing.assert_close(whole, (first + second) / 2, atol=1e-6, rtol=0)
    again = load(tmp_path / "e")
    assert again.evaluate().scores == run.evaluate().scores
    if task == "pairs":
        found = again.answers(["3 May 2001"], beam=3)[0]
        assert again.score(f"3 May 2001\t{found.text}").log_prob == pytest.approx(found.details["log_prob"], abs=1e-4)


def test_parts_whose_tables_are_tied_are_tied_in_the_whole(tmp_path: Path) -> None:
    run = regard.train(
        *("gpt", "world:stories?train=30&valid=9"), size="tiny", budget="4steps", ensemble=2, tied=True,
        out=tmp_path / "e", quiet=True,
    )  # fmt: skip
    parts = [load(tmp_path / "e" / "parts" / str(number)) for number in range(2)]
    whole, first, second = (np.exp(one.score("the").log_prob) for one in (load(run.path), *parts))
    assert whole == pytest.approx((first + second) / 2, rel=1e-5)


def test_it_goes_on_with_a_larger_budget_and_a_resume_that_is_refused_changes_nothing(tmp_path: Path):
    trained("series", tmp_path / "e")
    before, said = load(tmp_path / "e").model.state_dict(), (tmp_path / "e" / "config.json").read_bytes()
    with pytest.raises(UsageError, match=r"train\.batch_size: the run was started with"):
        regard.train(out=tmp_path / "e", resume=True, batch_size=5, quiet=True)
    assert (tmp_path / "e" / "config.json").read_bytes() == said
    more = regard.train(out=tmp_path / "e", resume=True, budget="10steps", quiet=True)
    parts = [load(tmp_path / "e" / "parts" / str(number)) for number in range(2)]
    assert [part.config["train"]["budget"] for part in parts] == ["5steps", "5steps"]
    assert more.config["train"]["budget"] == "10steps"
    assert any(not torch.equal(before[name], tensor) for name, tensor in more.model.state_dict().items())


def test_one_that_was_stopped_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    undisturbed = trained("series", tmp_path / "a")
    from regard.run import ensemble

    joined, stop = ensemble._part, RuntimeError("stopped")

    def part(number: int, *given):
        if number == 1:
            raise stop
        return joined(number, *given)

    monkeypatch.setattr(ensemble, "_part", part)
    with pytest.raises(RuntimeError, match="stopped"):
        trained("series", tmp_path / "b")
    with pytest.raises(regard.errors.RegardError, match="has no weights yet; continue"):
        load(tmp_path / "b")
    monkeypatch.undo()
    again = regard.train(out=tmp_path / "b", resume=True, quiet=True)
    for a, b in zip(undisturbed.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_task_that_has_no_mean_of_answers_refuses_it_and_leaves_nothing(tmp_path: Path):
    with pytest.raises(UsageError, match=r"train\.ensemble: the task masked has no mean"):
        regard.train(
            "bert",
            "world:stories?train=20&valid=5",
            size="tiny",
            budget="1steps",
            ensemble=2,
            out=tmp_path / "e",
            quiet=True,
        )
    assert not (tmp_path / "e").exists()


def test_tags_that_are_chosen_together_are_those_of_the_mean_chances_of_words(tmp_path: Path):
    run = trained("tagged", tmp_path / "e", head="crf")
    parts = [load(tmp_path / "e" / "parts" / str(number)) for number in range(2)]
    words = "the doctor saw the red book ."
    whole, first, second = (one.task.reading(one, words, None) for one in (run, *parts))
    with torch.no_grad():
        found, *each = (one.forward(one.inputs[0]).exp() for one in (whole, first, second))
    assert not torch.allclose(*each)
    assert torch.allclose(found, (each[0] + each[1]) / 2, atol=1e-6)
    best = [run.dataset.processor.classes[tag] for tag in found[0].argmax(-1).tolist()]
    assert run.answers([words])[0].details["tags"] == best
