"""A kernel that cannot be built: the readable form runs instead, is said once and counted."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard.kernels import convolution, gated_norm, operators, selective_scan, ssd


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    operators._fallbacks.clear()
    yield
    operators._fallbacks.clear()


def planted() -> Tensor:
    raise RuntimeError("PassManager::run failed\nmore of it")


def test_a_kernel_that_cannot_be_built_is_said_once_and_counted() -> None:
    with pytest.warns(UserWarning, match="no kernel for it, whose readable form runs instead, slower: PassManager"):
        assert operators.by_kernel("it", planted, lambda: torch.ones(1)) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operators.by_kernel("it", planted, lambda: torch.ones(1))
    assert operators.kernel_fallbacks() == {"it": 2}


NOT_OF_BUILDING = [
    torch.OutOfMemoryError("full"),
    TypeError("ours"),
    AssertionError(),
    RuntimeError("Triton Error [CUDA]: out of memory"),
    RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"),
    RuntimeError("The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0"),
    NotImplementedError("ours"),
    ConnectionAbortedError("nobody waits for the answer any more"),
]
OF_BUILDING = [
    RuntimeError("PassManager::run failed"),
    RuntimeError("Failed to find C compiler. Please specify via CC environment variable"),
    subprocess.CalledProcessError(1, ["gcc"]),
    FileNotFoundError(errno.ENOENT, "No such file or directory", "ptxas"),
    PermissionError(errno.EACCES, "Permission denied", ".triton"),
    ImportError("libcuda.so.1: cannot open shared object file"),
]


@pytest.mark.parametrize("error", OF_BUILDING, ids=repr)
def test_what_building_says_leads_to_the_readable_form(error: Exception) -> None:
    def kernel() -> Tensor:
        raise error

    with pytest.warns(UserWarning, match="no kernel for it"):
        assert operators.if_built("it", kernel) is None
    assert operators.kernel_fallbacks() == {"it": 1}


def test_one_call_that_runs_out_of_memory_is_not_the_end_of_a_kernel() -> None:
    def kernel(length: int) -> int:
        if length == 7:
            raise RuntimeError("Triton Error [CUDA]: out of memory")
        return length

    with pytest.raises(RuntimeError, match="out of memory"):
        operators.if_built("it", kernel, 7)
    assert operators.if_built("it", kernel, 5) == 5


@pytest.mark.parametrize("error", NOT_OF_BUILDING, ids=repr)
def test_other_errors_are_not_hidden(error: Exception) -> None:
    def kernel() -> Tensor:
        raise error

    with pytest.raises(type(error)):
        operators.by_kernel("it", kernel, lambda: torch.ones(1))
    assert operators.kernel_fallbacks() == {}


def scan_inputs() -> list[Tensor]:
    shapes = [(2, 7, 6), (2, 7, 6), (6, 4), (2, 7, 4), (2, 7, 4), (2, 6, 4), (6,), (2, 7, 6)]
    return [-torch.rand(shape) if place == 2 else torch.randn(shape) for place, shape in enumerate(shapes)]


def ssd_inputs() -> list[Tensor]:
    x, maps, steps = torch.randn(2, 7, 2, 4), torch.randn(2, 2, 7, 1, 3), torch.rand(2, 7, 2)
    return [x, steps, -steps, *maps, torch.randn(2), torch.randn(2, 2, 4, 3)]


def convolution_inputs() -> list[Tensor]:
    return [torch.randn(shape) for shape in ((2, 7, 6), (2, 3, 6), (6, 4), (6,))]


def norm_inputs() -> list[Tensor]:
    return [torch.randn(shape) for shape in ((5, 6), (5, 6), (6,))]


@dataclass(frozen=True)
class Case:
    said: str
    module: str
    draw: Callable[[], list[Tensor]]
    readable: Callable[..., Tensor | tuple[Tensor, ...]]


def norm_readable(*inputs: Tensor) -> Tensor:
    return gated_norm.gated_rms_norm_readable(*inputs, 1e-5)


CASES = {
    "selective_scan": Case("the selective scan", "selective_scan_launch", scan_inputs, selective_scan._any_scan),
    "ssd": Case("SSD", "ssd_launch", ssd_inputs, ssd._readable),
    "convolution": Case(
        "the convolution", "convolution_triton", convolution_inputs, convolution.causal_convolution_readable
    ),
    "gated_norm": Case("the gated norm", "gated_norm_triton", norm_inputs, norm_readable),
}


def same_as_readable(name: str, compiled: bool, device: str) -> None:
    case = CASES[name]
    torch.manual_seed(0)
    operator = getattr(torch.ops.regard, name)

    def fast(*inputs: Tensor) -> tuple[Tensor, ...]:
        found = operator(*inputs, 1e-5) if name == "gated_norm" else operator(*inputs)
        return (found,) if isinstance(found, Tensor) else found[:2]

    def plain(*inputs: Tensor) -> tuple[Tensor, ...]:
        found = case.readable(*inputs)
        return (found,) if isinstance(found, Tensor) else found

    inputs = [t.to(device) for t in case.draw()]

    def results(function: Callable[..., tuple[Tensor, ...]]) -> list[Tensor]:
        leaves = [t.clone().requires_grad_() for t in inputs]
        outputs = function(*leaves)
        loss = sum((out.double().sin().sum() for out in outputs), torch.zeros((), device=device))
        return [*outputs, *torch.autograd.grad(loss, leaves)]

    with pytest.warns(UserWarning, match=f"no kernel for {case.said}"):
        found = results(torch.compile(fast, backend="aot_eager") if compiled else fast)
    tolerance = 1e-6 if device == "cpu" else 1e-4
    assert all(torch.allclose(a, b, atol=tolerance) for a, b in zip(found, results(plain), strict=True))
    # Once forward, once back.
    assert operators.kernel_fallbacks() == {case.said: 2}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("compiled", [False, True])
def test_an_operator_without_its_kernels_gives_the_readable_numbers(
    name: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"regard.kernels.{CASES[name].module}", None)
    same_as_readable(name, compiled, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_readable_gradients_on_a_card_come_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Autograd has one thread for a card, which may not wait for work that is queued behind it."""
    monkeypatch.setitem(sys.modules, f"regard.kernels.{CASES[name].module}", None)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            same_as_readable(name, False, "cuda")
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert failed == []


def test_readable_gradients_are_made_in_one_thread() -> None:
    seen = set()

    def readable(x: Tensor) -> Tensor:
        seen.add((threading.get_ident(), torch._C._is_multithreading_enabled()))
        y = x * x
        y.register_hook(lambda _: seen.add((threading.get_ident(), torch._C._is_multithreading_enabled())))
        return y

    (found,) = operators.readable_gradients(readable, [torch.ones(2)], [torch.ones(2)])
    assert found.tolist() == [2, 2]
    assert len(seen) == 1
    assert {multithreading for _, multithreading in seen} == {False}
