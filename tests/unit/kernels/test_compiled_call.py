"""What is handed to C has the sizes that it reads; gradients that are followed are those of the equations, also of
inputs that are made from one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.core.stack import MixerConfig
from regard.kernels import convolution_cpu, gated_norm_cpu, scan_cpu, ssd_cpu
from regard.kernels.compiled import library
from regard.kernels.convolution import causal_convolution, causal_convolution_readable
from regard.kernels.gated_norm import gated_rms_norm
from regard.kernels.selective_scan import gated_selective_scan, selective_scan, selective_scan_readable
from regard.kernels.ssd import ssd
from regard.kernels.ssd_readable import ssd_recurrent
from regard.mixers.mamba import MambaConfig
from regard.mixers.ssd import SsdConfig

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler")
Form = Callable[..., Tensor]


@pytest.fixture(autouse=True)
def _all_sizes_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (convolution_cpu, gated_norm_cpu, scan_cpu, ssd_cpu):
        monkeypatch.setattr(place, "WORTH_A_CALL", 1)


def ssd_of_one(form: Callable[..., tuple[Tensor, Tensor]], x: Tensor) -> Tensor:
    """Decays that are made from the steps, the steps from x, and maps that are one tensor."""
    dt = F.softplus(x[..., 0])
    maps, zero = 0.5 * x[:, :, :1], x.new_zeros(*x.shape[::2], x.shape[3], x.shape[3])
    return form(x, dt, -0.5 * dt, maps, maps, x[0, 0, :, 0], zero)[0]


def ssd_readable(x: Tensor, dt: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor, h: Tensor):
    y, last = ssd_recurrent(x * dt[..., None], decay, b, c, h)
    return y + skip[:, None] * x, last


def scan_of_one(form: Callable[..., tuple[Tensor, Tensor]], u: Tensor) -> Tensor:
    maps, width = u[..., :3], u.shape[-1]
    return form(u, 0.5 * u, -(u[0, :3].t() ** 2), maps, maps, u.new_zeros(len(u), width, 3), u[0, 0], u)[0]


def scan_readable(u: Tensor, raw: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor, z: Tensor):
    y, last = selective_scan_readable(u, F.softplus(raw), a, b, c, h)
    return (y + skip * u) * F.silu(z), last


def convolution_of_one(form: Form, x: Tensor) -> Tensor:
    return form(x, x[:, :2], x[0, :3].t(), x[0, 0])


def norm_of_one(form: Form, x: Tensor) -> Tensor:
    return form(x, x, x[0, 0])


def norm(x: Tensor, z: Tensor, weight: Tensor) -> Tensor:
    return gated_rms_norm(x, z, weight, 1e-5)


def norm_readable(x: Tensor, z: Tensor, weight: Tensor) -> Tensor:
    s = x * F.silu(z)
    return s * (s.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * weight


def chunked(u: Tensor, raw: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, skip: Tensor, z: Tensor):
    """The scan that is not compiled."""
    y, last = selective_scan(u, F.softplus(raw), a, b, c, h)
    return (y + skip * u) * F.silu(z), last


CASES = {
    "ssd": (ssd_of_one, ssd, ssd_readable, (2, 9, 2, 3)),
    "scan": (scan_of_one, gated_selective_scan, scan_readable, (2, 9, 5)),
    "scan without a compiler": (scan_of_one, chunked, scan_readable, (2, 20, 5)),
    "convolution": (convolution_of_one, causal_convolution, causal_convolution_readable, (2, 9, 5)),
    "gated norm": (norm_of_one, norm, norm_readable, (2, 9, 5)),
}


@pytest.mark.parametrize("name", CASES)
def test_followed_gradients_of_inputs_that_are_made_from_one(name: str) -> None:
    of_one, fast, readable, shape = CASES[name]
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0))

    def gradients(form: Callable, given: Tensor) -> tuple[Tensor, Tensor]:
        leaf = given.clone().requires_grad_()
        (first,) = torch.autograd.grad(of_one(form, leaf * 1).square().sum(), leaf, create_graph=True)
        return first, torch.autograd.grad(first.square().sum(), leaf)[0]

    for found, exact in zip(gradients(fast, x), gradients(readable, x.double()), strict=True):
        assert (found.double() - exact).norm() <= 1e-5 * exact.norm()


TAKES = {
    "ssd": (ssd_cpu.takes, [(3, 9, 4, 5), (3, 9, 4), (3, 9, 4), (3, 9, 2, 6), (3, 9, 2, 6), (4,), (3, 4, 5, 6)]),
    "scan": (
        scan_cpu.takes,
        [(3, 9, 5), (3, 9, 5), (5, 4), (3, 9, 4), (3, 9, 4), (3, 5, 4), (5,), (3, 9, 5)],
    ),
    "convolution": (convolution_cpu.takes, [(3, 9, 5), (3, 2, 5), (5, 3), (5,)]),
    "convolution back": (convolution_cpu.takes, [(3, 9, 5), (3, 2, 5), (5, 3), (5,), (3, 9, 5)]),
    "gated norm": (gated_norm_cpu.takes, [(3, 9, 5), (3, 9, 5), (5,)]),
}


@pytest.mark.parametrize("name", TAKES)
def test_no_other_sizes_are_taken(name: str) -> None:
    takes, sizes = TAKES[name]
    inputs = [torch.randn(*size) for size in sizes]
    assert takes(*inputs)
    for i, part in enumerate(inputs):
        for dim in range(part.dim()):
            if name == "convolution" and (i, dim) == (0, 1):
                continue  # a text of any length goes with the rest
            for other in (part.narrow(dim, 0, 1), torch.cat([part, part], dim), part.unsqueeze(dim)):
                assert not takes(*inputs[:i], other, *inputs[i + 1 :]), (i, other.shape)


def test_maps_of_which_heads_have_no_equal_share_are_not_taken() -> None:
    takes, sizes = TAKES["ssd"]
    maps = torch.randn(3, 9, 3, 6)
    x, dt, decay, _, _, skip, h = (torch.randn(*size) for size in sizes)
    assert not takes(x, dt, decay, maps, maps, skip, h)


def test_who_follows_torchs_functions_sees_what_is_computed() -> None:
    seen: list[str] = []

    class Follower(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    x = torch.randn(3, 9, 5)
    with Follower():
        y = norm(x, x, x[0, 0])
    assert "silu" in seen
    with torch.device("cpu"):
        assert gated_norm_cpu.takes(x, x, x[0, 0])
    torch.testing.assert_close(y, norm_readable(x, x, x[0, 0]), rtol=1e-4, atol=1e-5)


def test_what_torch_broadcasts_is_broadcast() -> None:
    x, z, weight = torch.randn(3, 9, 5), torch.randn(1, 9, 5), torch.randn(5)
    torch.testing.assert_close(norm(x, z, weight), norm_readable(x, z, weight), rtol=1e-4, atol=1e-5)
    recent, maps, bias = torch.randn(3, 2, 5), torch.randn(5, 3), torch.randn(1)
    found = causal_convolution(x, recent, maps, bias)
    torch.testing.assert_close(found, causal_convolution(x, recent, maps, bias.expand(5)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("config", [MambaConfig(8), SsdConfig(8, 4, 4)])
def test_a_state_of_another_batch_is_refused(config: MixerConfig) -> None:
    mixer = config.build()
    with torch.no_grad(), pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        mixer(torch.randn(8, 40, 8), mixer.init_state(1))
