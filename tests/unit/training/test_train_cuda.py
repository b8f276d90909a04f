"""The way of a GPU: numbers are read late, bad steps are masked on the device, and a resume still finds its place."""

from __future__ import annotations

import pytest
import torch

from regard.errors import NumericError
from tiny_run import model_of, run, weight_hash

pytestmark = pytest.mark.gpu
CUDA = {"device": "cuda"}


def test_a_bad_step_and_all_after_it_leave_the_weights_on_the_device_untouched(tmp_path):
    before, _ = run(tmp_path / "before", budget="12steps", schedule="constant", warmup=0, evaluate_every=100, **CUDA)
    passes = 0
    model = model_of("gpt")

    def spoil(gradient):
        nonlocal passes
        passes += 1
        return gradient * float("nan") if passes == 13 else gradient

    model.head.weight.register_hook(spoil)
    with pytest.raises(NumericError, match=r"step 13: .* samples 48, 49, 50, 51;"):
        run(
            tmp_path / "bad",
            model=model,
            budget="40steps",
            schedule="constant",
            warmup=0,
            evaluate_every=100,
            save_every=100,
            **CUDA,
        )
    assert passes >= 13
    for one, other in zip(before.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters())


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_a_resume_on_the_device_is_bit_for_bit(tmp_path, name, optimiser):
    settings = {"optimiser": optimiser, "ema": 0.9, "precision": "bfloat16", **CUDA}
    whole, _ = run(tmp_path / "whole", name, **settings)
    again, _ = run(tmp_path / "again", name, **settings)
    if weight_hash(whole.cpu()) != weight_hash(again.cpu()):
        pytest.skip("this device does not repeat itself")
    # A run whose budget was twelve steps from the start, broken off after nine.
    resumed = _broken_off(tmp_path / "broken", name, settings)
    assert weight_hash(resumed.cpu()) == weight_hash(whole.cpu())


def _broken_off(path, name, settings):
    from tiny_run import Steps

    class Cut:
        def batch(self, step: int, batch_size: int):
            if step == 9:
                raise InterruptedError
            return Steps().batch(step, batch_size)

    with pytest.raises(InterruptedError):
        run(path, name, sampler=Cut(), **settings)
    return run(path, name, resume="last", **settings)[0]


def test_the_device_and_the_host_learn_the_same(tmp_path):
    host, _ = run(tmp_path / "host")
    device, _ = run(tmp_path / "device", **CUDA)
    for one, other in zip(host.parameters(), device.parameters(), strict=True):
        torch.testing.assert_close(one, other.cpu(), rtol=1e-2, atol=1e-3)
