"""The loss that never holds all logits against torch's cross-entropy, gradients included."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.kernels import cross_entropy
from regard.kernels.cross_entropy import linear_cross_entropy, linear_cross_entropy_readable

N, WIDTH, VOCABULARY = 23, 5, 17


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Four rows at a time, whatever the size. The list gets the number of rows of every chunk that is computed."""
    monkeypatch.setattr(cross_entropy, "WORTH_CHUNKING", 0)
    monkeypatch.setitem(cross_entropy.LOGITS_AT_A_TIME, "cpu", 4 * VOCABULARY)
    rows: list[int] = []
    product = cross_entropy._product

    def counted(h: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
        rows.append(len(h))
        return product(h, weight, bias, out)

    monkeypatch.setattr(cross_entropy, "_product", counted)
    return rows


def inputs(bias: bool = True, dtype: torch.dtype = torch.float64, ignore: int = -100) -> tuple[Tensor, ...]:
    """Hidden vectors, weight, targets of which some do not count, and a bias when wanted."""
    hidden, weight = torch.randn(N, WIDTH), 3 * torch.randn(VOCABULARY, WIDTH)
    targets = torch.randint(VOCABULARY, (N,))
    targets[[0, 5, 6, 7, 22]] = ignore
    leaves = [hidden, weight, *([torch.randn(VOCABULARY)] if bias else [])]
    leaves = [leaf.to(dtype).requires_grad_() for leaf in leaves]
    return leaves[0], leaves[1], targets, *leaves[2:]


def expected_loss(hidden: Tensor, weight: Tensor, targets: Tensor, *bias: Tensor, ignore: int = -100) -> Tensor:
    return F.cross_entropy(F.linear(hidden, weight, *bias), targets, reduction="sum", ignore_index=ignore)


def loss_of(hidden: Tensor, weight: Tensor, targets: Tensor, *bias: Tensor, ignore: int = -100) -> Tensor:
    return linear_cross_entropy(hidden, weight, bias[0] if bias else None, targets, ignore)


@pytest.mark.parametrize("ignore", [-100, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_loss_and_gradients_equal_torch(bias: bool, ignore: int, calls: list[int]) -> None:
    hidden, weight, targets, *rest = inputs(bias, ignore=ignore)
    leaves = (hidden, weight, *rest)
    got = loss_of(hidden, weight, targets, *rest, ignore=ignore)
    expected = expected_loss(hidden, weight, targets, *rest, ignore=ignore)
    torch.testing.assert_close(got, expected, rtol=1e-13, atol=1e-12)
    assert sum(calls) == int((targets != ignore).sum())
    assert len(calls) > 1
    assert max(calls) <= 4
    for a, b in zip(torch.autograd.grad(0.3 * got, leaves), torch.autograd.grad(0.3 * expected, leaves), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_smoothed_loss_and_gradients_equal_torch(bias: bool, calls: list[int]) -> None:
    hidden, weight, targets, *rest = inputs(bias)
    leaves = (hidden, weight, *rest)
    got = linear_cross_entropy(hidden, weight, rest[0] if rest else None, targets, label_smoothing=0.3)
    logits = F.linear(hidden, weight, *rest)
    expected = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=0.3)
    torch.testing.assert_close(got, expected, rtol=1e-13, atol=1e-12)
    assert len(calls) > 1
    for a, b in zip(torch.autograd.grad(0.3 * got, leaves), torch.autograd.grad(0.3 * expected, leaves), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_readable_form_equals_torch() -> None:
    hidden, weight, targets, bias = inputs()
    got = linear_cross_entropy_readable(hidden, weight, bias, targets)
    torch.testing.assert_close(got, expected_loss(hidden, weight, targets, bias))


def test_finite_differences() -> None:
    hidden, weight, targets, bias = inputs()
    assert torch.autograd.gradcheck(lambda h, w, b: loss_of(h, w, targets, b), (hidden, weight, bias))


def test_rows_may_come_as_a_batch_of_sequences() -> None:
    hidden, weight, targets, bias = inputs()
    got = linear_cross_entropy(hidden[:20].reshape(4, 5, WIDTH), weight, bias, targets[:20].reshape(4, 5))
    torch.testing.assert_close(got, expected_loss(hidden[:20], weight, targets[:20], bias))


def test_a_frozen_head_still_gives_gradients_to_the_vectors() -> None:
    hidden, weight, targets, bias = inputs()
    got = loss_of(hidden, weight.detach(), targets, bias.detach())
    (expected,) = torch.autograd.grad(expected_loss(hidden, weight, targets, bias), hidden)
    torch.testing.assert_close(torch.autograd.grad(got, hidden)[0], expected, rtol=0, atol=1e-12)


def test_frozen_vectors_still_give_gradients_to_the_head() -> None:
    hidden, weight, targets, bias = inputs()
    got = torch.autograd.grad(loss_of(hidden.detach(), weight, targets, bias), (weight, bias))
    expected = torch.autograd.grad(expected_loss(hidden, weight, targets, bias), (weight, bias))
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_nothing_that_counts_costs_nothing() -> None:
    hidden, weight, targets, bias = inputs()
    loss = loss_of(hidden, weight, torch.full_like(targets, -100), bias)
    assert float(loss.detach()) == 0.0
    for gradient in torch.autograd.grad(loss, (hidden, weight, bias)):
        assert not gradient.any()


def test_large_logits_stay_finite() -> None:
    hidden, weight, targets, bias = inputs()
    far = (1000 * hidden).detach().requires_grad_()
    got, expected = loss_of(far, weight, targets, bias), expected_loss(far, weight, targets, bias)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=0)
    assert torch.isfinite(torch.autograd.grad(got, far)[0]).all()


@pytest.mark.parametrize("bias", [True, False])
def test_bfloat16_is_as_near_as_its_rounding(bias: bool, calls: list[int]) -> None:
    hidden, weight, targets, *rest = inputs(bias, torch.bfloat16)
    leaves = (hidden, weight, *rest)
    wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
    got, expected = loss_of(hidden, weight, targets, *rest), expected_loss(wide[0], wide[1], targets, *wide[2:])
    assert got.dtype == torch.float32
    assert calls
    torch.testing.assert_close(got.double(), expected, rtol=0.01, atol=0)
    found, wanted = torch.autograd.grad(got, leaves), torch.autograd.grad(expected, wide)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == torch.bfloat16
        assert float((a.double() - b).norm() / b.norm()) < 0.02


def test_autocast_rounds_the_products_and_gives_gradients_in_the_type_of_the_weights() -> None:
    hidden, weight, targets, bias = inputs(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        got = loss_of(hidden, weight, targets, bias)
    expected = expected_loss(hidden, weight, targets, bias)
    torch.testing.assert_close(got, expected, rtol=0.01, atol=0)
    found = torch.autograd.grad(got, (hidden, weight, bias))
    for a, b in zip(found, torch.autograd.grad(expected, (hidden, weight, bias)), strict=True):
        assert a.dtype == torch.float32
        assert float((a - b).norm() / b.norm()) < 0.03


@pytest.mark.parametrize("bias", [True, False])
def test_what_a_compiler_sees_is_one_operation_with_the_same_numbers(bias: bool) -> None:
    hidden, weight, targets, *rest = inputs(bias)
    leaves = (hidden, weight, *rest)
    compiled = torch.compile(loss_of, backend="aot_eager", fullgraph=True)
    got, expected = compiled(hidden, weight, targets, *rest), expected_loss(hidden, weight, targets, *rest)
    torch.testing.assert_close(got, expected, rtol=1e-13, atol=1e-12)
    for a, b in zip(torch.autograd.grad(0.3 * got, leaves), torch.autograd.grad(0.3 * expected, leaves), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_without_gradients_none_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, weight, targets, bias = inputs()
    asked: list[tuple[bool, ...]] = []
    real = cross_entropy.loss_and_gradients

    def seen(*arguments: Any) -> Any:
        asked.append(tuple(arguments[-1]))
        return real(*arguments)

    monkeypatch.setattr(cross_entropy, "loss_and_gradients", seen)
    with torch.no_grad():
        got = loss_of(hidden, weight, targets, bias)
    torch.testing.assert_close(got, expected_loss(hidden, weight, targets, bias))
    assert asked == [(False, False, False)]


KERNEL = """
import torch
from regard.kernels import cross_entropy
from regard.kernels.cross_entropy_triton import gradient_in_place

assert cross_entropy.has_triton(torch.device("cpu"))
torch.manual_seed(0)
for n_classes, padded, block in ((17, 17, 8), (17, 64, 32), (64, 64, 64), (1, 8, 16)):
    logits = 5 * torch.randn(6, padded)
    targets = torch.randint(n_classes, (6,))
    targets[2] = -100
    leaf = logits[:, :n_classes].double().requires_grad_()
    expected = torch.nn.functional.cross_entropy(leaf, targets, reduction="none", ignore_index=-100)
    expected.sum().backward()
    losses = gradient_in_place(logits, targets, n_classes, -100, block=block)
    torch.testing.assert_close(losses.double(), expected.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(logits[:, :n_classes].double(), leaf.grad, rtol=0, atol=1e-6)
    assert not logits[:, n_classes:].any()

# A target that is no class is told by its loss, in its row alone.
for wrong in (-1, 17, 10**6):
    losses = gradient_in_place(torch.randn(3, 64), torch.tensor([3, wrong, -100]), 17, -100, block=32)
    assert losses.isnan().tolist() == [False, True, False]

cross_entropy.WORTH_CHUNKING, cross_entropy.LOGITS_AT_A_TIME["cpu"] = 0, 320
# In float64 no kernel is taken, and the rows that do not count are with the others as for one.
for bias, dtype in ((False, torch.float32), (True, torch.float32), (True, torch.float64)):
    drawn = [torch.randn(11, 5), torch.randn(70, 5), torch.randn(70) if bias else None]
    leaves = [None if leaf is None else leaf.to(dtype).requires_grad_() for leaf in drawn]
    targets = torch.randint(70, (11,))
    targets[4] = -100
    found = []
    for function in (cross_entropy.linear_cross_entropy, cross_entropy.linear_cross_entropy_readable):
        loss = function(*leaves, targets)
        found.append([loss, *torch.autograd.grad(loss, [leaf for leaf in leaves if leaf is not None])])
    for fast, plain in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)
"""


def test_the_kernel_and_what_is_made_of_it_equal_the_plain_form() -> None:
    """In Triton's interpreter, which a process chooses before it imports Triton."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    subprocess.run([sys.executable, "-c", KERNEL], check=True, env={**os.environ, "TRITON_INTERPRET": "1"})
