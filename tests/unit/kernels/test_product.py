"""Compiled products of matrices are those of float64, with their gradients; what others must see is left to torch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

from regard.kernels import cross_entropy, product
from regard.kernels.compiled import library
from regard.kernels.cross_entropy import linear_cross_entropy

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler")
SHAPES = [(1, 1, 1), (3, 17, 5), (8, 48, 384), (9, 49, 385), (23, 95, 800), (200, 33, 40), (64, 16, 16)]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Products of any size, on any processor, are compiled ones, and these are their sizes."""
    found: list[tuple[int, ...]] = []
    plain = product._run
    monkeypatch.setattr(product, "is_halved", lambda: True)
    monkeypatch.setattr(product, "WORTH_A_CALL", 1)
    monkeypatch.setattr(product, "WORTH_GRADIENTS", 1)
    monkeypatch.setattr(product, "_run", lambda *given, **named: found.append(given[4]) or plain(*given, **named))
    return found


def orders(rows: int, columns: int) -> list[Tensor]:
    """Numbers in the orders in which they may lie."""
    wide = torch.randn(rows + 2, 2 * columns)
    return [
        torch.randn(rows, columns),
        torch.randn(columns, rows).t(),
        wide[1:-1, ::2],
        torch.randn(rows, 1).expand(rows, columns),
        torch.randn(1, columns).expand(rows, columns),
    ]


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_a_product_is_that_of_float64_in_whatever_order_numbers_lie(m: int, n: int, k: int) -> None:
    torch.manual_seed(0)
    bias, before = torch.randn(n), torch.randn(m, n)
    for a in orders(m, k):
        for b in orders(k, n):
            exact = a.double() @ b.double()
            rounding = 2e-6 * (a.double().abs() @ b.double().abs()).max().item()
            for found, other in (
                (product.multiply(torch.full((m, n), torch.nan), a, b), exact),
                (product.multiply(torch.full((m, n), torch.nan), a, b, bias), exact + bias),
                (product.multiply(before.clone(), a, b, adds=True), exact + before),
            ):
                torch.testing.assert_close(found.double(), other, rtol=1e-5, atol=rounding)


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_a_product_by_panels_is_that_of_float64(m: int, n: int, k: int) -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(m, k), torch.randn(n, k), torch.randn(n)
    panels = product.panels_of(weight)
    exact = x.double() @ weight.double().T + bias
    torch.testing.assert_close(product.by_panels(x, panels, bias, n).double(), exact, rtol=1e-5, atol=1e-5 * k**0.5)


def test_a_row_is_the_same_alone_and_among_others_and_whatever_the_threads() -> None:
    x, weight = torch.randn(37, 900), torch.randn(130, 900)
    whole = product.multiply(torch.empty(37, 130), x, weight.t())
    assert torch.equal(product.multiply(torch.empty(1, 130), x[20:21], weight.t()), whole[20:21])
    assert torch.equal(product.by_panels(x, product.panels_of(weight), None, 130), whole)
    threads = torch.get_num_threads()
    torch.set_num_threads(3 - min(threads, 2))
    try:
        assert torch.equal(product.multiply(torch.empty(37, 130), x, weight.t()), whole)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("bias", [True, False])
def test_gradients_are_those_of_float64_also_of_gradients(bias: bool, taken: list[tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(2, 5, 7, requires_grad=True), torch.randn(11, 7, requires_grad=True)
    parts = [x, weight, *([torch.randn(11, requires_grad=True)] if bias else [])]
    wide = [part.detach().double().requires_grad_() for part in parts]

    def gradients(given: list[Tensor], linear: Callable[..., Tensor]) -> list[Tensor]:
        y = linear(*given, *([] if bias else [None]))
        first = torch.autograd.grad(y.square().sum() * 0.1, given, create_graph=True)
        size = torch.stack([part.square().sum() for part in first]).sum()
        return [y, *first, *torch.autograd.grad(size, given)]

    found, exact = gradients(parts, product.linear), gradients(wide, F.linear)
    assert len(taken) > 5
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


def test_the_heads_cross_entropy_is_that_of_float64(
    taken: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(cross_entropy, "WORTH_CHUNKING", 1)
    monkeypatch.setitem(cross_entropy.LOGITS_AT_A_TIME, "cpu", 200)
    parts = [torch.randn(29, 6, requires_grad=True), torch.randn(50, 6, requires_grad=True), torch.randn(50)]
    wide = [part.detach().double().requires_grad_() for part in parts]
    targets = torch.randint(50, (29,))
    targets[3] = -100
    losses = [linear_cross_entropy(hidden, weight, bias, targets) for hidden, weight, bias in (parts, wide)]
    for loss in losses:
        loss.backward()
    assert len(taken) > 10
    torch.testing.assert_close(losses[0].double(), losses[1])
    for one, other in zip(parts[:2], wide[:2], strict=True):
        assert one.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_gradients_of_the_cross_entropys_gradients(bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(cross_entropy, "WORTH_CHUNKING", 1)
    parts = [torch.randn(29, 6), torch.randn(50, 6), *([torch.randn(50)] if bias else [])]
    targets = torch.arange(29).index_fill(0, torch.tensor([3]), -100)

    def equation(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.cross_entropy(F.linear(hidden, weight, bias), targets, reduction="sum")

    def gradients(form: Callable[..., Tensor], given: list[Tensor]) -> list[Tensor]:
        leaves = [part.detach().requires_grad_() for part in given]
        first = torch.autograd.grad(form(*leaves, *([] if bias else [None])), leaves, create_graph=True)
        return [*first, *torch.autograd.grad(torch.stack([part.square().sum() for part in first]).sum(), leaves)]

    found = gradients(lambda *given: linear_cross_entropy(*given, targets), parts)
    for one, other in zip(found, gradients(equation, [part.double() for part in parts]), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


def test_what_others_follow_or_is_of_another_kind_is_torchs(taken: list[tuple[int, ...]]) -> None:
    x, weight = torch.randn(4, 6), nn.Parameter(torch.randn(5, 6))
    with FlopCounterMode(display=False) as counter:
        product.linear(x, weight, None)
    assert counter.get_total_flops() == 2 * 4 * 5 * 6
    torch.func.vmap(lambda row: product.linear(row, weight, None))(x)
    torch.func.grad(lambda given: product.linear(x, given, None).sum())(weight)
    fixed = weight.detach()
    torch.jit.trace(lambda given: product.linear(given, fixed, None), x, check_trace=False)
    with torch.autocast("cpu"):
        assert product.linear(x, weight, None).dtype == torch.bfloat16
    product.linear(x.double(), weight.double(), None)
    product.linear(x[:0], weight, None)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        product.linear(x, torch.randn(5, 7), None)
    assert taken == []
    product.linear(x, weight, None)
    assert len(taken) == 1


def test_numbers_that_do_not_lie_in_memory_as_they_read_are_torchs(taken: list[tuple[int, ...]]) -> None:
    x, weight = torch.randn(4, 6), torch.randn(5, 6)
    turned = torch.randn(4, 6, dtype=torch.complex64).conj().imag
    assert torch.equal(product.linear(turned, weight, None), F.linear(turned, weight))
    torch.testing.assert_close(product.linear(x, weight.to_sparse(), None), F.linear(x, weight))
    assert not product.takes(torch._efficientzerotensor((4, 6)))  # pyright: ignore  # its address is 0
    assert taken == []
    with torch.inference_mode():
        product.linear(torch.randn(4, 6), weight, None)
    product.linear(x, nn.Parameter(weight), None)
    assert len(taken) == 2


@pytest.mark.parametrize("graded", [True, False])
def test_what_is_carried_forward_passes_through(graded: bool, taken: list[tuple[int, ...]]) -> None:
    x, tangent, weight = torch.randn(4, 6), torch.randn(4, 6), torch.randn(5, 6, requires_grad=graded)
    with forward_ad.dual_level():
        y = product.linear(forward_ad.make_dual(x, tangent), weight, None)
        carried = forward_ad.unpack_dual(y).tangent
    torch.testing.assert_close(carried, F.linear(tangent, weight))
    assert taken == []


def test_many_gradients_at_once_are_those_of_each(taken: list[tuple[int, ...]]) -> None:
    x, weight, bias = (torch.randn(*size, requires_grad=True) for size in ((4, 6), (5, 6), (5,)))
    several = torch.randn(3, 4, 5)
    y = product.linear(x, weight, bias)
    together = torch.autograd.grad(y, (x, weight, bias), several, is_grads_batched=True, retain_graph=True)
    for i, one in enumerate(several):
        alone = torch.autograd.grad(y, (x, weight, bias), one, retain_graph=True)
        for found, other in zip(alone, together, strict=True):
            torch.testing.assert_close(found, other[i])
    assert len(taken) == 7


@pytest.mark.usefixtures("taken")
def test_what_no_gradient_needs_may_change_and_is_not_held() -> None:
    x, weight, given = torch.randn(2, 4, 6), nn.Parameter(torch.randn(5, 6)), torch.randn(2, 4, 5)
    y, expected = product.linear(x, weight, None), torch.einsum("btn,btk->nk", given, x)
    with torch.no_grad():
        weight.mul_(2)
    y.backward(given)
    assert weight.grad is not None
    torch.testing.assert_close(weight.grad, expected)
    frozen, leaf = weight.detach(), x.clone().requires_grad_()
    held: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: held.append(t.data_ptr()) or t, lambda t: t):
        changed = leaf * 1
        y = product.linear(changed, frozen, None)
    assert held == [frozen.data_ptr()]
    changed.mul_(3)
    y.backward(given)
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad, given @ frozen)


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 6)])
def test_what_is_made_may_change_in_place(shape: tuple[int, ...]) -> None:
    x, weight = torch.randn(*shape, requires_grad=True), torch.randn(5, 6)
    product.linear(x, weight, None).mul_(2).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, 2 * weight.sum(0).expand(shape))


def test_long_sums_round_as_torchs_do() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(50_000, 24).t(), torch.randn(50_000, 48)
    found, exact = product.multiply(torch.empty(24, 48), a, b), a.double() @ b.double()
    assert (found - exact).square().mean().sqrt() < 2 * (a @ b - exact).square().mean().sqrt()


def test_a_product_of_nothing_is_the_bias() -> None:
    bias = torch.randn(5)
    y = product.multiply(torch.full((4, 5), torch.nan), torch.empty(4, 0), torch.empty(0, 5), bias)
    assert torch.equal(y, bias.expand(4, 5))


def test_the_heads_cross_entropy_of_other_sizes_is_refused(
    taken: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "WORTH_CHUNKING", 1)
    targets = torch.zeros(4, dtype=torch.long)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        linear_cross_entropy(torch.randn(4, 7), torch.randn(9, 6), None, targets)
    with pytest.raises(RuntimeError, match="must match"):
        linear_cross_entropy(torch.randn(4, 6), torch.randn(9, 6), torch.randn(5), targets)
    assert taken == []


def test_a_new_thread_multiplies_with_as_many_threads_as_torch_was_told() -> None:
    count = ctypes.CDLL(None).omp_get_max_threads
    y, a, b = torch.empty(3, 4), torch.randn(3, 5), torch.randn(5, 4)

    def elsewhere(*work: Callable[[], object]) -> int:
        with ThreadPoolExecutor(1) as thread:
            for do in work:
                thread.submit(do).result()
            return thread.submit(count).result()

    threads = torch.get_num_threads()
    torch.set_num_threads(elsewhere() + 1)
    try:
        assert elsewhere(lambda: product.multiply(y, a, b)) == torch.get_num_threads()
    finally:
        torch.set_num_threads(threads)


def test_what_is_small_is_torchs() -> None:
    x, weight = torch.randn(4, 6), torch.randn(5, 6)
    assert torch.equal(product.linear(x, weight, None), F.linear(x, weight))


def test_without_a_compiler_products_are_torchs(monkeypatch: pytest.MonkeyPatch, taken: list[tuple[int, ...]]) -> None:
    monkeypatch.setattr(product, "library", lambda: None)
    x, weight = torch.randn(4, 6), torch.randn(5, 6)
    assert torch.equal(product.linear(x, weight, None), F.linear(x, weight))
    assert taken == []
