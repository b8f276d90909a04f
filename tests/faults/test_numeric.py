"""A loss or gradient that is not finite stops the run before it touches a weight."""

from __future__ import annotations

import pytest
import torch

from regard.errors import NumericError
from regard.training import checkpoint
from tiny_run import folder_hash, model_of, run, weight_hash


def poisoned(name: str, at: int, value: float):
    """A model whose gradient, or loss, is not finite at its `at`-th training pass."""
    model = model_of(name)
    passes = 0

    def spoil(gradient):
        return torch.full_like(gradient, value) if passes == at else gradient

    def count(_module, _inputs):
        nonlocal passes
        passes += model.training

    model.embedding.register_forward_pre_hook(count)
    model.head.weight.register_hook(spoil)
    return model


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_the_weights_are_those_of_the_step_before_and_the_samples_are_named(tmp_path, value):
    run(tmp_path / "whole", budget="12steps", save_every=1, keep=20)
    model = poisoned("gpt", 8, value)
    with pytest.raises(NumericError) as caught:
        run(tmp_path / "bad", model=model, budget="12steps", save_every=3)
    text = str(caught.value)
    assert text.startswith("step 8: ")
    assert "samples 28, 29, 30, 31;" in text
    assert "(first in head.weight)" in text
    assert caught.value.exit_code == 5
    before = model_of("gpt")
    from regard.storage import tensors

    tensors.load_weights(before, tmp_path / "whole" / "checkpoints" / "00000007" / "model.safetensors")
    assert weight_hash(model) == weight_hash(before)
    assert checkpoint.steps(tmp_path / "bad" / "checkpoints") == [3, 6]
    assert folder_hash(tmp_path / "bad", 6) == folder_hash(tmp_path / "whole", 6)


def test_the_run_goes_on_from_its_last_checkpoint_when_the_cause_is_gone(tmp_path):
    whole, _ = run(tmp_path / "whole")
    with pytest.raises(NumericError):
        run(tmp_path / "bad", model=poisoned("gpt", 8, float("nan")))
    model, _ = run(tmp_path / "bad", resume="last")
    assert weight_hash(model) == weight_hash(whole)


def test_a_held_out_loss_that_is_not_finite_is_never_the_best(tmp_path):
    model = model_of("gpt")

    def spoil(_module, _inputs, output):
        return output if model.training else output * float("nan")

    model.norm.register_forward_hook(spoil)
    with pytest.raises(NumericError, match="step 4: the held-out loss is nan"):
        run(tmp_path / "run", model=model)
    assert checkpoint.steps(tmp_path / "run" / "checkpoints") == [3]
