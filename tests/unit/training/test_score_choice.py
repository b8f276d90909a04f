"""The task's own score, not the loss, chooses the weights that are kept and tells when to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.storage import tensors
from regard.training import metrics, run_folder
from regard.training.loop import train
from regard.training.problem import Metric
from regard.training.resume import Resume
from tiny_run import SETTINGS, Recorder, Steps, model_of, task_of, weight_hash


class Marks:
    """A score that follows a list, one value an evaluation, and remembers the weights it judged."""

    def __init__(self, *values: float) -> None:
        self.values, self.judged = list(values), []

    def __call__(self, model: torch.nn.Module) -> float:
        assert not model.training
        self.judged.append(weight_hash(model))
        return self.values[len(self.judged) - 1]


def run(path: Path, marks: Marks, *, lower: bool = False, sampler: Any = None, resume: Any = "no", **settings: Any):
    model, display = model_of(), Recorder()
    task = replace(task_of(model, sampler), metric=Metric("mark", marks, lower))
    result = train(model, task, replace(SETTINGS, **settings), path, display=display, resume=Resume(resume))
    return model, result, display


def kept(path: Path) -> str:
    model = model_of()
    tensors.load_weights(model, run_folder.verified_weights(path))
    return weight_hash(model)


@pytest.mark.parametrize(
    ("values", "lower", "step", "place"),
    [
        ((0.1, 0.9, 0.5), False, 8, 1),
        ((0.9, 0.1, 0.5), False, 4, 0),
        ((0.9, 0.1, 0.5), True, 8, 1),
        ((0.5, 0.5, 0.5), False, 12, 2),  # of equal scores the lower loss, which here is the last
    ],
)
def test_the_best_weights_are_those_of_the_best_score(tmp_path, values, lower, step, place):
    marks = Marks(*values)
    _, result, display = run(tmp_path / "run", marks, lower=lower)
    losses = [evaluation.loss for evaluation in display.evaluations]
    assert losses == sorted(losses, reverse=True)  # by the loss the last would always win
    assert result.best_step == step
    assert kept(tmp_path / "run") == marks.judged[place]
    told = [
        record["valid_mark"] for record in metrics.read(tmp_path / "run" / run_folder.METRICS) if "valid_loss" in record
    ]
    assert told == list(values)


def test_a_person_may_choose_by_the_loss(tmp_path):
    marks = Marks()
    _, result, _ = run(tmp_path / "run", marks, choose_by="loss")
    assert result.best_step == 12
    assert marks.judged == []


def test_patience_is_lost_by_the_score(tmp_path):
    _, result, display = run(tmp_path / "run", Marks(0.9, 0.8, 0.7, 0.6), budget="40steps", patience=2)
    assert (result.reason, result.step, result.best_step) == ("patience", 12, 4)
    assert [evaluation.is_best for evaluation in display.evaluations] == [True, False, False]


def test_the_best_score_outlives_a_resume(tmp_path):
    class Cut(Steps):
        def batch(self, step: int, batch_size: int):
            if step == 7:
                raise InterruptedError
            return super().batch(step, batch_size)

    with pytest.raises(InterruptedError):
        run(tmp_path / "run", Marks(0.9), sampler=Cut())
    marks = Marks(0.2, 0.3)
    _, result, _ = run(tmp_path / "run", marks, resume="last")
    assert result.best_step == 4
    assert kept(tmp_path / "run") not in marks.judged
