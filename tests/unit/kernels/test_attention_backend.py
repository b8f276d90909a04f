"""Which attention kernel is taken, by the shapes of a model's calls."""

from __future__ import annotations

import pytest
import torch

from regard.core import registry
from regard.kernels.attention_backend import NAMES, Shape, largest_shape, order_of, preferring


def calls_of(**settings):
    torch.manual_seed(0)
    model = registry.build("gpt", vocab_size=11, size="tiny", **settings)
    tokens = torch.randint(11, (3, 9))
    return lambda: model(tokens)


def test_the_shape_of_most_work_is_found():
    assert largest_shape(calls_of()) == Shape((3, 2, 9, 8), (3, 2, 9, 8), torch.float32, True, 0.0)


def test_under_autocast_the_shape_has_its_type():
    with torch.autocast("cpu", torch.bfloat16):
        shape = largest_shape(calls_of())
    assert shape is not None
    assert shape.dtype == torch.bfloat16


def test_calls_with_a_mask_and_models_without_attention_ask_for_nothing():
    assert largest_shape(calls_of(window=3)) is None
    model = registry.build("lstm", vocab_size=11, size="tiny")
    assert largest_shape(lambda: model(torch.randint(11, (3, 9)))) is None


@pytest.mark.parametrize("names", [(), ("CUDNN_ATTENTION",), NAMES])
def test_a_preference_changes_no_number_on_a_cpu(names):
    call = calls_of()
    plain = call()[0]
    with preferring(names):
        assert torch.equal(call()[0], plain)


@pytest.mark.gpu
def test_kernels_are_tried_and_sorted_and_give_the_same():
    size = (2, 4, 128, 64)
    order = order_of(Shape(size, size, torch.bfloat16, True, 0.0), torch.device("cuda"))
    assert order
    assert [time for _, time in order] == sorted(time for _, time in order)
    q, k, v = (torch.randn(size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    wanted = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    for name, _ in order:
        with preferring((name,)):
            found = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        assert float((found.float() - wanted).norm() / wanted.norm()) < 0.01
