"""The kernels of the gated RMSNorm against its equation in float64.

On a CUDA device, or anywhere in Triton's interpreter with TRITON_INTERPRET=1.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from interpreted import device_of_kernels
from regard.kernels.gated_norm import gated_rms_norm, gated_rms_norm_readable

EPSILON = 1e-5


def equation(x: Tensor, z: Tensor, weight: Tensor) -> Tensor:
    s = x * F.silu(z)
    return s / (s.square().mean(-1, keepdim=True) + EPSILON).sqrt() * weight


def drawn(rows: int, width: int) -> list[Tensor]:
    """x, z that lies inside a wider tensor, the weight, and the gradient of the output."""
    torch.manual_seed(0)
    z = torch.randn(rows, 2 * width + 1)[:, width : 2 * width]
    return [torch.randn(rows, width), z, torch.randn(width), torch.randn(rows, width)]


def results(function, inputs: list[Tensor]) -> list[Tensor]:
    *leaves, upper = inputs
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    y = function(*leaves)
    return [y, *torch.autograd.grad(y, leaves, upper.to(y.dtype))]


def compare(inputs: list[Tensor], tolerance: float) -> None:
    found = results(lambda *leaves: torch.ops.regard.gated_norm(*leaves, EPSILON), inputs)
    for fast, right in zip(found, results(equation, [t.double() for t in inputs]), strict=True):
        assert (fast.double() - right).norm() / right.norm() < tolerance


@pytest.mark.parametrize(("rows", "width"), [(1, 5), (3, 7), (16, 64), (35, 40)])
def test_any_number_of_vectors_of_any_width(rows: int, width: int) -> None:
    device = device_of_kernels()
    compare([t.to(device) for t in drawn(rows, width)], 2e-6)


def test_the_operator_keeps_the_rules_of_torch() -> None:
    device = device_of_kernels()
    leaves = [t.to(device).requires_grad_() for t in drawn(5, 8)[:3]]
    torch.library.opcheck(torch.ops.regard.gated_norm, [*leaves, EPSILON])


def test_the_readable_form_is_the_equation() -> None:
    inputs = [t.double() for t in drawn(5, 8)]
    for function in (gated_rms_norm, gated_rms_norm_readable):
        found = results(lambda *leaves, function=function: function(*leaves, EPSILON), inputs)
        assert all(torch.allclose(a, b) for a, b in zip(found, results(equation, inputs), strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16])
def test_half_precision_on_cuda(narrow: torch.dtype) -> None:
    x, z, weight, upper = (t.cuda() for t in drawn(300, 1536))
    compare([x.to(narrow), z.to(narrow), weight, upper], 1e-2)
