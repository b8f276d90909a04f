"""Parts that are left as they are, by name, and rates that fall from layer to layer."""

from __future__ import annotations

import pytest
import torch

from regard.errors import UsageError
from regard.models.gpt import gpt
from regard.training.frozen import freeze, rate_factors
from regard.training.optimiser import Optimiser
from regard.training.settings import TrainSettings


def model() -> torch.nn.Module:
    return gpt(11, d_model=8, n_heads=2, n_layers=4).build()


def test_names_with_ranges_leave_what_lies_below_them() -> None:
    part = model()
    freeze(part, "embedding, layers.0-2")
    left = {".".join(name.split(".")[:3]) for name, one in part.named_parameters() if one.requires_grad}
    assert {"stack.layers.3"} == {name for name in left if "layers" in name}
    assert not any(name.startswith("embedding") for name in left)
    assert any(name.startswith("norm") for name in left)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("layers.7", "'layers.7' names no part of the model, did you mean 'layers.3'"),
        ("embeding", "did you mean 'embedding'"),
        ("stack,embedding,norm,head", "leaves nothing to learn"),
    ],
)
def test_what_names_nothing_or_everything_is_refused(names: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        freeze(model(), names)


def test_the_first_step_of_adam_is_the_rate_of_each_layer() -> None:
    part = model().double()
    before = {name: one.detach().clone() for name, one in part.named_parameters()}
    for one in part.parameters():
        one.grad = torch.randn_like(one)
    settings = TrainSettings(layer_decay=0.5, weight_decay=0.0, optimiser="adamw")
    Optimiser(part, settings).step(1e-3)
    moved = {name: float((one.detach() - before[name]).abs().max()) for name, one in part.named_parameters()}
    wanted = {"embedding": 1 / 16, "layers.0": 1 / 8, "layers.1": 1 / 4, "layers.2": 1 / 2, "layers.3": 1, "norm.": 1}
    wanted |= {"head": 1}
    for name, step in moved.items():
        factor = next(value for key, value in wanted.items() if key in name)
        assert step == pytest.approx(1e-3 * factor, rel=1e-4), name


def test_every_stack_has_its_own_top() -> None:
    stacks = {"encoder.stack": 2, "decoder.stack.mixer": 4}
    names = [f"{stack}.layers.{number}.mixer.w" for stack, depth in stacks.items() for number in range(depth)]
    tables = ["encoder.embedding.token_to_vector.weight", "decoder.embedding.token_to_vector.weight"]
    found = rate_factors([*tables, *names, "encoder.norm.weight", "decoder.head.weight"], 0.5)
    assert [found[f"encoder.stack.layers.{number}.mixer.w"] for number in range(2)] == [1 / 2, 1]
    assert [found[f"decoder.stack.mixer.layers.{number}.mixer.w"] for number in range(4)] == [1 / 8, 1 / 4, 1 / 2, 1]
    assert [found[table] for table in tables] == [1 / 4, 1 / 16]
    assert found["encoder.norm.weight"] == found["decoder.head.weight"] == 1
