"""Linear maps in 8 bits against the same in float32."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.kernels import fp8
from regard.kernels.fp8 import BACKWARD, FORWARD, fp8_linear, fp8_products, product_readable, quantised, with_fp8


@pytest.fixture
def on_any_device(monkeypatch):
    monkeypatch.setattr(fp8, "product", product_readable)
    monkeypatch.setattr(fp8, "DEVICES", ("cpu",))


@pytest.mark.parametrize(("dtype", "rounding"), [(FORWARD, 2**-4), (BACKWARD, 2**-3)])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_rounding_keeps_the_largest_and_is_as_near_as_its_bits(dtype, rounding, size):
    x = size * torch.randn(64, 32)
    rounded, scale = quantised(x, dtype)
    back = rounded.float() * scale
    large = x.abs() > 0.01 * x.abs().max()
    assert ((back - x).abs()[large] <= 1.01 * rounding * x.abs()[large]).all()
    assert torch.isfinite(back).all()


def test_zeros_stay_zeros():
    rounded, scale = quantised(torch.zeros(4, 4), FORWARD)
    assert not (rounded.float() * scale).any()


@pytest.mark.usefixtures("on_any_device")
@pytest.mark.parametrize("bias", [True, False])
def test_outputs_and_gradients_are_near_those_of_float32(bias):
    layer = nn.Linear(48, 32, bias=bias)
    x = torch.randn(2, 16, 48, requires_grad=True)
    g = torch.randn(2, 16, 32)
    parts = [x, *layer.parameters()]
    found, wanted = [], []
    for results, y in ((found, fp8_linear(x, layer.weight, layer.bias).float()), (wanted, layer(x))):
        results += [y, *torch.autograd.grad(y, parts, g)]
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert float((one - other).detach().norm() / other.detach().norm()) < 0.08


@pytest.mark.usefixtures("on_any_device")
def test_large_maps_are_taken_while_training_and_given_back(monkeypatch):
    monkeypatch.setattr(fp8, "SMALLEST", 16 * 32)
    model = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 8), nn.Linear(60, 64), nn.Linear(16, 16))
    x = torch.randn(16, 32)
    exact = model[0](x)
    with fp8_products(model) as count:
        assert count == 1
        assert type(model[0]) is with_fp8(nn.Linear)
        assert model[0](x).dtype == torch.bfloat16
        torch.testing.assert_close(model[0](x[:3]), exact[:3], rtol=0, atol=1e-6)  # rows that the units do not take
        model.eval()
        assert torch.equal(model[0](x), exact)
    assert all(type(part) is nn.Linear for part in model)


@pytest.mark.gpu
@pytest.mark.parametrize("exact", [True, False])
def test_the_units_compute_what_the_readable_form_says(exact):
    if torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("no 8-bit units")
    a, b = torch.randn(64, 48, device="cuda"), torch.randn(32, 48, device="cuda")
    (a_8, scale_a), (b_8, scale_b) = quantised(a, BACKWARD), quantised(b, FORWARD)
    found = fp8.product(a_8, b_8, scale_a, scale_b, exact=exact).float()
    wanted = product_readable(a_8, b_8, scale_a, scale_b).float()
    assert float((found - wanted).norm() / wanted.norm()) < 0.01
