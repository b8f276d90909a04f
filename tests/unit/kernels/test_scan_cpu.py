"""The selective scan in C is the equation in float64, and so are its gradients."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard import build
from regard.kernels import compiled_call, scan_cpu
from regard.kernels.compiled import library

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler")


def close(found: Tensor, exact: Tensor) -> bool:
    scale = max(float(exact.detach().norm()), 1e-30)
    return found.shape == exact.shape and float((found.detach() - exact.detach()).norm()) <= 1e-6 * scale


def scan_inputs(batch: int, length: int, width: int, states: int) -> list[Tensor]:
    chance = torch.Generator().manual_seed(0)
    u, raw, z = (torch.randn(batch, length, width, generator=chance) for _ in range(3))
    b, c = (torch.randn(batch, length, states, generator=chance) for _ in range(2))
    a = -4 * torch.rand(width, states, generator=chance)
    h, skip = torch.randn(batch, width, states, generator=chance), torch.randn(width, generator=chance)
    return [u, 3 * raw, a, b, c, h, skip, 2 * z]


def scanned(u: Tensor, raw: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor, z: Tensor):
    """The equation, token by token."""
    outputs, step = [], F.softplus(raw)
    for t in range(u.shape[1]):
        h = torch.exp(step[:, t, :, None] * a) * h + (step * u)[:, t, :, None] * b[:, t, None]
        outputs.append((h * c[:, t, None]).sum(-1))
    return (torch.stack(outputs, 1) + skip * u) * F.silu(z), h


def of_both(inputs: list[Tensor], found, exact) -> list[tuple[Tensor, Tensor]]:
    """Outputs and gradients of C in float32, and of the equation in float64."""
    pairs = [(x.detach().requires_grad_(), x.double().detach().requires_grad_()) for x in inputs]
    narrow, wide = ([pair[i] for pair in pairs] for i in (0, 1))
    ours, theirs = found(*narrow), exact(*wide)
    above = [torch.randn(y.shape, generator=torch.Generator().manual_seed(1)) for y in ours]
    gradients = torch.autograd.grad(ours, narrow, above)
    expected = torch.autograd.grad(theirs, wide, [g.double() for g in above])
    return [*zip(ours, theirs, strict=True), *zip(gradients, expected, strict=True)]


# Blocks of 16 channels, groups of 64, pieces of 32 tokens: below, at and beyond each.
@pytest.mark.parametrize(
    "shape", [(2, 70, 40, 16), (1, 33, 64, 5), (3, 1, 130, 16), (2, 32, 16, 64), (1, 96, 1, 1), (2, 31, 65, 3)]
)
def test_a_scan_is_that_of_the_equation_with_all_its_gradients(shape: tuple[int, int, int, int]) -> None:
    for found, exact in of_both(scan_inputs(*shape), scan_cpu.scan, scanned):
        assert close(found, exact)


def test_what_lies_in_parts_of_other_tensors_is_read_where_it_lies() -> None:
    u, raw, a, b, c, h, skip, z = scan_inputs(2, 40, 48, 7)
    streams, chosen = torch.cat([u, z], -1), torch.cat([raw, b, c], -1)
    parts = [streams[..., :48], chosen[..., :48], a, *chosen[..., 48:].chunk(2, -1), h, skip, streams[..., 48:]]
    assert all(
        torch.equal(x, y)
        for x, y in zip(scan_cpu.scan(*parts), scan_cpu.scan(u, raw, a, b, c, h, skip, z), strict=True)
    )
    turned = [u.transpose(1, 2).contiguous().transpose(1, 2), *parts[1:]]
    assert torch.equal(scan_cpu.scan(*turned)[0], scan_cpu.scan(*parts)[0])


def test_padding_leaves_the_state_as_it_is() -> None:
    inputs = scan_inputs(2, 50, 20, 4)
    inputs[1][:, 30:] = float("-inf")
    short = [x[:, :30] if x.dim() == 3 and x.shape[1] == 50 else x for x in inputs]
    assert torch.equal(scan_cpu.scan(*inputs)[1], scan_cpu.scan(*short)[1])
    given = [x.requires_grad_() for x in inputs]
    assert all(
        bool(g.isfinite().all())
        for g in torch.autograd.grad(scan_cpu.scan(*given)[1].sum(), given, allow_unused=True)
        if g is not None
    )


def test_large_numbers_stay_finite_and_what_is_no_number_spreads() -> None:
    inputs = scan_inputs(1, 40, 16, 4)
    inputs[1][:, 5], inputs[1][:, 6], inputs[7][:, 7] = 90.0, -90.0, 200.0
    assert close(scan_cpu.scan(*inputs)[0], scanned(*(x.double() for x in inputs))[0])
    inputs[0][0, 20, 3] = float("nan")
    y, last = scan_cpu.scan(*inputs)
    assert bool(y[0, 20:, 3].isnan().all())
    assert bool(last[0, 3].isnan().all())
    assert int(y.isnan().sum()) == 20


@pytest.fixture
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_cpu, "WORTH_A_CALL", 1)


def test_two_threads_come_to_the_bits_of_one() -> None:
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        inputs = [x.requires_grad_() for x in scan_inputs(3, 50, 200, 6)]
        y, last = scan_cpu.scan(*inputs)
        found.append([y, last, *torch.autograd.grad(y.square().sum() + last.sum(), inputs)])
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


def test_threads_with_little_room_of_their_own_do_it() -> None:
    work = """
import torch
from kernels.test_scan_cpu import scan_inputs
from regard.kernels import scan_cpu
torch.set_num_threads(2)
scan_cpu.scan(*(x.requires_grad_() for x in scan_inputs(4, 256, 64, 16)))[0].sum().backward()
"""
    small = os.environ | {"OMP_STACKSIZE": "200k", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", work], env=small, check=True, timeout=100)


@pytest.mark.usefixtures("_always")
def test_without_a_compiler_a_model_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("mamba", vocab_size=11, size="tiny")
    tokens = torch.randint(11, (2, 40))
    compiled_ones, _ = model(tokens)
    monkeypatch.setattr(compiled_call, "library", lambda: None)
    plain, _ = model(tokens)
    assert close(compiled_ones, plain.double())


@pytest.mark.usefixtures("_always")
def test_what_others_follow_or_is_of_another_kind_is_torchs() -> None:
    u, *rest = inputs = scan_inputs(1, 8, 16, 4)
    assert scan_cpu.takes(*inputs)
    for i, part in enumerate(inputs):
        assert not scan_cpu.takes(*inputs[:i], part.double(), *inputs[i + 1 :])
    assert not scan_cpu.takes(*scan_inputs(1, 8, 16, 65))
    assert not scan_cpu.takes(u.to("meta"), *rest)
    with torch.autocast("cpu"):
        assert not scan_cpu.takes(*inputs)
    assert not torch.func.vmap(lambda x: torch.tensor(scan_cpu.takes(x, *rest)))(u[None]).any()


def test_nobody_waits_for_a_compiler_for_little() -> None:
    assert not scan_cpu.takes(*scan_inputs(1, 8, 16, 4))


def test_a_gradient_of_a_gradient_is_that_of_the_equation() -> None:
    narrow = [x.requires_grad_() for x in scan_inputs(1, 6, 5, 2)]
    wide = [x.detach().double().requires_grad_() for x in narrow]
    found = []
    for form, inputs in ((scan_cpu.scan, narrow), (scanned, wide)):
        first = torch.autograd.grad(form(*inputs)[0].square().sum(), inputs[:3], create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), inputs))
    assert all(close(one, other) for one, other in zip(*found, strict=True))
