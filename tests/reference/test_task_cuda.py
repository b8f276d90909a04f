"""Every task trains on a CUDA device, and what it learnt there says the same on a CPU."""

from typing import Any

import pytest
import torch

import regard

pytestmark = pytest.mark.gpu
WORLDS = [
    ("world:dates", "seq2seq"),
    ("world:dates", "bahdanau"),
    ("world:dates", "gnmt"),
    ("world:dates", "transformer"),
    ("world:reviews", "classifier"),
    ("world:tags", "tagger"),
    ("world:shapes", "captioner"),
    ("world:electricity", "forecaster"),
    ("world:stories", "bert"),
]


@pytest.mark.parametrize(("world", "model"), WORLDS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_run_of_a_gpu_scores_on_a_cpu_as_there(world, model, precision, tmp_path):
    train = {"budget": "12steps", "device": "cuda", "precision": precision, "evaluate_every": 6}
    there: Any = regard.train(model, world, size="tiny", out=tmp_path / "run", quiet=True, **train)
    assert next(there.model.parameters()).is_cuda
    torch.backends.cudnn.allow_tf32 = False
    found = there.evaluate(limit=20).scores
    again: Any = regard.load(tmp_path / "run", device="cpu")
    here = again.evaluate(limit=20).scores
    numbers = {name for name, value in here.items() if isinstance(value, float)}
    assert numbers
    for name in numbers:
        # A tie of two words may fall either way where sums are taken in another order.
        assert found[name] == pytest.approx(here[name], rel=0.02, abs=0.02), name
