"""Layers that are computed a second time on the way back: the same gradient, with less in memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import parallel_steps
from regard.core.data_spec import EXAMPLE
from regard.core.registry import entry
from regard.core.stack import outer_blocks
from regard.core.tap import record
from regard.errors import UsageError
from regard.training.estimate import estimate
from regard.training.losses import model_loss
from tiny_run import model_of, run, weight_hash

NAMES = ("gpt", "lstm", "mamba", "transformer")


def built(name: str, recomputes: bool, **said: Any) -> Any:
    """A tiny model in float64 that drops a fifth wherever it can."""
    torch.manual_seed(0)
    drops = {key: 0.2 for key in entry(name).parameters_of_preset() if key == "dropout"}
    model: Any = entry(name).config(EXAMPLE, "tiny", **drops, **said).build().double().train()
    for block in outer_blocks(model):
        block.recomputes = recomputes
    return model


def kept_bytes(model: Any, batch: Any) -> int:
    """Bytes that a forward pass keeps for the way back, weights aside."""
    weights, found = {parameter.data_ptr() for parameter in model.parameters()}, dict[int, int]()

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.data_ptr() not in weights:
            found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        total = model_loss(model, batch).total
    del total
    return sum(found.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_the_same_with_dropout(name):
    gradients = []
    for recomputes in (False, True):
        model = built(name, recomputes)
        torch.manual_seed(5)
        model_loss(model, parallel_steps.batch_for(model, 0)).total.backward()
        gradients.append({key: one.grad for key, one in model.named_parameters() if one.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][key], gradient, rtol=1e-12, atol=1e-12, msg=key)


@pytest.mark.parametrize("name", NAMES)
def test_less_is_kept_in_memory(name):
    one, other = (built(name, recomputes) for recomputes in (False, True))
    batch = parallel_steps.batch_for(one, 0)
    assert kept_bytes(other, batch) < kept_bytes(one, batch)


@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_a_run_comes_to_the_same_weights(tmp_path, name):
    plain, _ = run(tmp_path / "plain", name)
    model, _ = run(tmp_path / "second", name, gradient_checkpointing=True)
    assert weight_hash(model) == weight_hash(plain)
    # A run may go on with it or without it.
    run(tmp_path / "second", name, model=model_of(name), resume="last", budget="14steps", override=("budget",))


def test_who_listens_hears_every_part_once():
    model = built("gpt", True)
    batch = parallel_steps.batch_for(model, 0)
    with record(model) as heard:
        model_loss(model, batch).total.backward()
    assert heard


def test_the_estimate_says_less():
    config = entry("gpt").config(EXAMPLE, "small")
    one, other = (estimate(config, batch_size=8, length=64, recomputes=said) for said in (False, True))
    assert other.activations < one.activations
    assert other.weights == one.weights


def test_a_model_without_layers_is_refused(tmp_path):
    class Bare(torch.nn.Module):
        pass

    from regard.training.display import Silent
    from regard.training.loop import new_session
    from regard.training.problem import TrainingProblem
    from regard.training.run_folder import RunFolder
    from regard.training.settings import TrainSettings

    problem = TrainingProblem(parallel_steps.Batches(None))
    settings = TrainSettings(gradient_checkpointing=True, device="cpu")
    with pytest.raises(UsageError, match=r"train\.gradient_checkpointing: the model has no layers"):
        new_session(Bare(), problem, settings, RunFolder(tmp_path), Silent())
