"""Models with weights of 8 bits: each registered one, tied tables, and maps of classes from outside."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.core import registry
from regard.core.model import logits_of
from regard.decoding.ending import Limits
from regard.decoding.generate import generate
from regard.decoding.logits_processing import GREEDY
from regard.errors import UsageError
from regard.layers.int8 import Int8Embedding, Int8Head, Int8Linear, Int8TorchLinear, in_int8
from regard.layers.linear import Linear

VOCABULARY = 23
LANGUAGE = [name for name in registry.names() if registry.entry(name).task == "text" and name != "ngram"]


def model_of(name: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    return registry.build(name, vocab_size=VOCABULARY, size="tiny", **settings).eval()


@torch.no_grad()
@pytest.mark.parametrize("name", LANGUAGE)
def test_a_model_in_8_bits_says_nearly_the_same_and_leaves_the_other_as_it_was(name: str) -> None:
    model = model_of(name)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    tokens = torch.randint(VOCABULARY, (2, 9))
    exact = logits_of(model, tokens)
    narrow: Any = in_int8(model).model
    found = logits_of(narrow, tokens)
    assert 0 < float((found - exact).norm() / (exact - exact.mean()).norm()) < 0.05
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert torch.equal(logits_of(model, tokens), exact)
    (text,) = generate(narrow, [tokens[0]], limits=Limits(6), settings=GREEDY)
    assert len(text.tokens) == 6


@torch.no_grad()
def test_every_map_multiplies_with_its_rounded_weight() -> None:
    """Each map alone against float64, the weights taken from the model that was given."""
    model = model_of("gpt", bias=True)
    narrow = in_int8(model).model
    for (name, wide), (_, part) in zip(model.named_modules(), narrow.named_modules(), strict=True):
        if isinstance(wide, nn.Linear):
            assert isinstance(part, (Int8Linear, Int8Head)), name
            step = wide.weight.abs().amax(1, keepdim=True) / 127
            rounded = (wide.weight / step).double().round() * step.double()
            x = torch.randn(3, wide.in_features)
            bias = None if wide.bias is None else wide.bias.double()
            exact = nn.functional.linear(x.double(), rounded, bias)
            torch.testing.assert_close(part(x).double(), exact, rtol=0, atol=3e-4)
            torch.testing.assert_close(part.weight.double(), rounded, rtol=1e-5, atol=1e-7)


@torch.no_grad()
def test_a_table_that_the_head_shares_is_held_once() -> None:
    model = model_of("gpt", tied=True)
    narrow: Any = in_int8(model).model
    table = narrow.embedding.token_to_vector
    assert isinstance(table, Int8Embedding)
    assert table.q is narrow.head.q
    assert not any(parameter.shape == model.head.weight.shape for parameter in narrow.parameters())
    tokens = torch.arange(VOCABULARY)
    torch.testing.assert_close(table(tokens), table.weight)
    apart: Any = in_int8(model_of("gpt", tied=False)).model
    assert type(apart.embedding.token_to_vector) is nn.Embedding


def test_gradients_reach_what_lies_before_a_map() -> None:
    narrow = in_int8(nn.Sequential(Linear(6, 5), nn.Linear(5, 4))).model
    x = torch.randn(2, 6, requires_grad=True)
    narrow(x).sum().backward()
    assert x.grad is not None
    assert x.grad.any()


class Own(nn.Linear):
    """A map with a product of its own."""

    def forward(self, input: Tensor) -> Tensor:
        return input @ self.weight.t().abs()


class Outside(nn.Module):
    """A part from outside with a map of torch's and one of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.torchs, self.own = nn.Linear(6, 6), Own(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.own(self.torchs(x)) + x @ self.torchs.weight


@torch.no_grad()
def test_a_map_of_torchs_inside_a_part_from_outside_is_taken_and_one_of_its_own_class_is_not() -> None:
    outside, x = Outside(), torch.randn(3, 6)
    found = in_int8(outside)
    narrow: Any = found.model
    assert type(narrow.torchs) is Int8TorchLinear
    assert type(narrow.own) is Own
    assert narrow.own.weight is outside.own.weight
    assert (found.numbers, found.of) == (36, 84)
    torch.testing.assert_close(narrow(x), outside(x), rtol=0, atol=0.1)


def test_what_has_no_linear_maps_or_no_float32_is_refused() -> None:
    with pytest.raises(UsageError, match="no linear maps"):
        in_int8(registry.build("ngram", vocab_size=VOCABULARY))
    with pytest.raises(UsageError, match=r"float32, found torch\.bfloat16"):
        in_int8(model_of("gpt").bfloat16())
