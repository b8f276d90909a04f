"""The functions written by hand for CPUs equal torch's, values and gradients."""

import pytest
import torch
import torch.nn.functional as F

from regard.kernels.pointwise import gelu_tanh, relu_squared, rms_norm


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(gelu_tanh, lambda x: F.gelu(x, approximate="tanh")), (relu_squared, lambda x: F.relu(x).square())],
    ids=["gelu_tanh", "relu_squared"],
)
def test_activation_equals_torch(ours, theirs):
    x = torch.cat([torch.linspace(-12, 12, 97), torch.zeros(1)]).double().requires_grad_()
    weights = torch.linspace(0.5, 2, 98).double()
    found = [torch.autograd.grad((f(x) * weights).sum(), x)[0] for f in (ours, theirs)]
    assert (ours(x) - theirs(x)).abs().max() < 1e-14
    assert (found[0] - found[1]).abs().max() < 1e-13


@pytest.mark.parametrize("shape", [(3, 4, 5), (5,), (0, 5)])
def test_rms_norm_equals_torch(shape):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, dtype=torch.float64, requires_grad=True)
    pairs = []
    for function in (lambda: rms_norm(x, weight, 1e-5), lambda: F.rms_norm(x, (5,), weight, 1e-5)):
        y = function()
        pairs.append((y, *torch.autograd.grad(y.sin().sum(), (x, weight))))
    for ours, theirs in zip(*pairs, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-14)


def test_other_number_types_take_torchs_own_form():
    x = torch.randn(4, 8).bfloat16()
    assert gelu_tanh(x).dtype == torch.bfloat16
    assert rms_norm(x, torch.ones(8), 1e-5).dtype == torch.bfloat16


def test_gradients_of_gradients_are_those_of_differences():
    x = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weight = torch.rand(5, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(gelu_tanh, x)
    assert torch.autograd.gradgradcheck(relu_squared, x)
    assert torch.autograd.gradgradcheck(lambda x, weight: rms_norm(x, weight, 1e-5), (x, weight))
