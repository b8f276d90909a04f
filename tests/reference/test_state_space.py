"""S4D against the recurrence and the convolution written out, and the selective scan against finite differences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.core.context import Context, real_tokens
from regard.core.tap import record
from regard.kernels import selective_scan as kernel
from regard.kernels.selective_scan import selective_scan, selective_scan_readable
from regard.kernels.ssd_readable import ssd_chunked, ssd_recurrent
from regard.mixers.s4d import Initialisation, S4d, S4dConfig, initial_modes

INITS: tuple[Initialisation, ...] = ("lin", "inv", "legs", "real")
WIDTH, D_STATE, LENGTH = 3, 6, 19


def close(got: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=tolerance)


def random_s4d(init: Initialisation) -> S4d:
    mixer = S4dConfig(WIDTH, D_STATE, init, step_min=0.05, step_max=0.5).build().double()
    with torch.no_grad():
        for parameter in (mixer.log_decay, mixer.state_to_channel, mixer.skip):
            parameter.add_(0.3 * torch.randn_like(parameter))
        if init != "real":
            mixer.frequency.add_(0.3 * torch.randn_like(mixer.frequency))
    return mixer


def system(mixer: S4d, init: Initialisation) -> tuple[Tensor, Tensor, Tensor, float]:
    """A~ and B~ by zero-order hold, and C, complex (D, N'), from the parameters; and the factor for conjugates."""
    a = torch.complex(-mixer.log_decay.exp(), mixer.frequency)
    decay = torch.exp(a * mixer.log_step.exp()[:, None])
    return decay, (decay - 1) / a, torch.view_as_complex(mixer.state_to_channel), 1.0 if init == "real" else 2.0


def by_recurrence(mixer: S4d, init: Initialisation, u: Tensor) -> tuple[Tensor, Tensor]:
    """Channels (B, T, D) and the last state (B, D, N'), number by number."""
    decay, drive, read, factor = system(mixer, init)
    y = torch.zeros_like(u)
    state = torch.zeros(len(u), *decay.shape, dtype=torch.complex128)
    for t in range(u.shape[1]):
        for d in range(u.shape[2]):
            state[:, d] = decay[d] * state[:, d] + drive[d] * u[:, t, d, None]
            y[:, t, d] = factor * (state[:, d] @ read[d]).real + mixer.skip[d] * u[:, t, d]
    return y, state


def by_convolution(mixer: S4d, init: Initialisation, u: Tensor) -> Tensor:
    """The kernel by an explicit Vandermonde matrix, the convolution by its sum."""
    decay, drive, read, factor = system(mixer, init)
    vandermonde = torch.stack([decay**j for j in range(u.shape[1])], -1)  # (D, N', T)
    weights = factor * torch.einsum("DN,DNT->DT", read * drive, vandermonde).real
    y = mixer.skip * u
    for t in range(u.shape[1]):
        for j in range(t + 1):
            y[:, t] = y[:, t] + weights[:, j] * u[:, t - j]
    return y


@pytest.mark.parametrize("init", INITS)
@torch.no_grad()
def test_s4d_equals_its_recurrence_and_its_convolution(init: Initialisation) -> None:
    mixer, u = random_s4d(init), torch.randn(2, LENGTH, WIDTH).double()
    expected, last = by_recurrence(mixer, init, u)
    close(by_convolution(mixer, init, u), expected)
    with record(mixer, "channels") as seen:
        mixer(u)
        _, state = mixer(u, mixer.init_state(2))
        halves = mixer(u[:, 5:], mixer(u[:, :5], mixer.init_state(2))[1])[1]
    whole, with_state, _, second = seen["channels"]
    close(whole, expected)
    close(with_state, expected)
    close(second, expected[:, 5:])
    for found in (state, halves):
        close(torch.view_as_complex(found.modes), last)


@torch.no_grad()
def test_s4d_state_stops_at_the_end_of_each_row() -> None:
    mixer, u, lengths = random_s4d("lin"), torch.randn(3, LENGTH, WIDTH).double(), torch.tensor([LENGTH, 4, 0])
    _, state = mixer(u, mixer.init_state(3), Context(lengths=lengths))
    for row, length in enumerate(lengths.tolist()):
        _, last = by_recurrence(mixer, "lin", u[row : row + 1, :length])
        close(torch.view_as_complex(state.modes)[row], last[0])


def test_legs_modes_are_eigenvalues_of_the_normal_part_of_hippo() -> None:
    # HiPPO-LegS: A = -(2n+1)^(1/2) (2k+1)^(1/2) below the diagonal, -(n+1) on it; adding the rank one P P^T with
    # P = (n + 1/2)^(1/2) leaves a normal matrix.
    n = torch.arange(D_STATE, dtype=torch.float64)
    root = (2 * n + 1).sqrt()
    hippo = -torch.tril(root[:, None] * root, -1) - torch.diag(n + 1)
    rank_one = (n + 0.5).sqrt()
    normal = hippo + rank_one[:, None] * rank_one
    eigenvalues = torch.linalg.eigvals(normal)
    above = eigenvalues[eigenvalues.imag > 0]
    found = initial_modes("legs", D_STATE)
    close(found.real, torch.full((D_STATE // 2,), -0.5).double(), 1e-10)
    close(above.real, torch.full((D_STATE // 2,), -0.5).double(), 1e-10)
    close(found.imag.sort().values, above.imag.sort().values, 1e-10)


def scan_inputs(length: int) -> tuple[Tensor, ...]:
    """u, dt, A, B, C and a first state, all wanting gradients."""
    batch, width, n = 2, 3, 2
    u, b, c = torch.randn(batch, length, width), torch.randn(batch, length, n), torch.randn(batch, length, n)
    dt, a, h = torch.rand(batch, length, width) + 0.1, -torch.rand(width, n) - 0.2, torch.randn(batch, width, n)
    return tuple(t.double().requires_grad_() for t in (u, dt, a, b, c, h))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7])
def test_selective_scan_has_the_gradients_of_finite_differences(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "CHUNK", 3)
    assert torch.autograd.gradcheck(selective_scan, scan_inputs(length))


def test_selective_scan_equals_its_readable_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "CHUNK", 4)
    inputs = scan_inputs(11)
    expected, got = selective_scan_readable(*inputs), selective_scan(*inputs)
    scale = torch.randn_like(got[0])
    for a, b in zip(got, expected, strict=True):
        close(a, b)
    gradients = [torch.autograd.grad((y * scale).sum() + h.square().sum(), inputs) for y, h in (got, expected)]
    for a, b in zip(*gradients, strict=True):
        close(a, b)


def test_selective_scan_keeps_a_wide_state_for_narrow_inputs() -> None:
    u, dt, a, b, c, h = (t.detach().float() for t in scan_inputs(40))
    expected, last = selective_scan_readable(u, dt, a, b, c, h)
    y, state = selective_scan(u.bfloat16(), dt.bfloat16(), a, b.bfloat16(), c.bfloat16(), h)
    assert (y.dtype, state.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(y.float(), expected, rtol=0.05, atol=0.05)
    torch.testing.assert_close(state, last, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("length", [1, 3, 4, 5, 11])
def test_ssd_in_chunks_has_the_gradients_of_the_recurrence(length: int) -> None:
    heads, width, n = 2, 3, 4
    shapes = [(2, length, heads, width), (2, length, heads), (2, length, heads, n), (2, length, heads, n)]
    x, decay, b, c, h = (torch.randn(*s).double().requires_grad_() for s in [*shapes, (2, heads, width, n)])
    results = []
    for y, last in (ssd_chunked(x, -decay.abs(), b, c, h, 4), ssd_recurrent(x, -decay.abs(), b, c, h)):
        loss = (y * torch.linspace(0.5, 1.5, y.numel()).reshape(y.shape)).sum() + last.square().sum()
        results.append((y, last, *torch.autograd.grad(loss, (x, decay, b, c, h))))
    for got, expected in zip(*results, strict=True):
        close(got, expected, 1e-10)


def test_padding_is_no_token_of_the_scan() -> None:
    u, dt, a, b, c, h = (t.detach() for t in scan_inputs(6))
    lengths = torch.tensor([6, 2])
    _, state = selective_scan(u, dt * real_tokens(lengths, u)[..., None], a, b, c, h)
    _, alone = selective_scan_readable(*(t[1:, :2] for t in (u, dt)), a, b[1:, :2], c[1:, :2], h[1:])
    close(state[1:], alone)
