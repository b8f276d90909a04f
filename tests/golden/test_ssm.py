"""State spaces: discretisation, recurrence and convolution, selective scan and its matrix form (ssm.json)."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from exact import load, same, tensor
from torch import Tensor

from regard.core.tap import record
from regard.kernels import selective_scan as kernel
from regard.kernels.selective_scan import selective_scan, selective_scan_readable
from regard.kernels.ssd_readable import ssd_chunked, ssd_quadratic, ssd_recurrent
from regard.mixers.s4d import Initialisation, S4d, S4dConfig, initial_modes

GOLDEN = load("ssm")
DIAGONAL, SCAN, DUALITY = GOLDEN["diagonal_ssm"], GOLDEN["selective_scan"], GOLDEN["duality_matrix"]
U = tensor(DIAGONAL["u"]).reshape(1, 4, 1)


def diagonal() -> S4d:
    """The golden system: one channel, two real modes, B = 1. Real modes have no conjugates, hence no factor 2."""
    assert DIAGONAL["B"] == [1.0, 1.0]
    mixer = S4dConfig(1, 2, "real").build().double()
    a, c = tensor([DIAGONAL["A_diag"]]), tensor([DIAGONAL["C"]])
    mixer.load_state_dict(
        mixer.state_dict()
        | {
            "log_decay": (-a).log(),
            "frequency": torch.zeros(1, 2),
            "log_step": tensor([DIAGONAL["delta"]]).log(),
            "state_to_channel": torch.stack([c, torch.zeros_like(c)], -1),
            "skip": tensor([DIAGONAL["D"]]),
        }
    )
    return mixer


def test_zero_order_hold() -> None:
    mixer, zero = diagonal(), diagonal().init_state(1)
    _, driven = mixer.step(tensor([[1.0]]), zero)
    same(driven.modes[0, 0, :, 0], DIAGONAL["zoh"]["B_bar"])
    ones = dataclasses.replace(zero, modes=tensor([[[[1, 0], [1, 0]]]]))
    _, decayed = mixer.step(tensor([[0.0]]), ones)
    same(decayed.modes[0, 0, :, 0], DIAGONAL["zoh"]["A_bar"])


def test_recurrence_step_by_step() -> None:
    mixer = diagonal()
    state = mixer.init_state(1)
    for t in range(4):
        with record(mixer, "channels") as seen:
            _, state = mixer.step(U[:, t], state)
        same(seen["channels"][0][0, 0], DIAGONAL["y_recurrent_zoh"][t])
        same(state.modes[0, 0, :, 0], DIAGONAL["states_zoh"][t])


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_convolution_from_any_state_equals_the_recurrence(cut: int) -> None:
    mixer = diagonal()
    outputs, state = [], mixer.init_state(1)
    for chunk in (U[:, :cut], U[:, cut:]):
        with record(mixer) as seen:
            _, state = mixer(chunk, state)
        outputs += seen["channels"]
        for found in seen["kernel"]:
            same(found[0, 0], DIAGONAL["kernel_zoh"][: chunk.shape[1]])
    same(torch.cat(outputs, 1)[0, :, 0], DIAGONAL["y_convolution_zoh"])
    same(state.modes[0, 0, :, 0], DIAGONAL["states_zoh"][-1])


def scan_step(key: str) -> Tensor:
    return tensor([step[key] for step in SCAN["steps"]]).reshape(1, 4, 1)


@pytest.mark.parametrize("chunk", [None, 1, 2, 3, 4])
def test_selective_scan(chunk: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = selective_scan_readable if chunk is None else selective_scan
    if chunk is not None:
        monkeypatch.setattr(kernel, "CHUNK", chunk)
    u, dt, b, c = (scan_step(key) for key in ("u", "delta", "B", "C"))
    y, h = scan(u, dt, tensor([[SCAN["a"]]]), b, c, torch.zeros(1, 1, 1, dtype=torch.float64))
    same(y, scan_step("y"))
    same(h[0, 0, 0], SCAN["steps"][-1]["h"])


def test_selective_scan_states() -> None:
    u, dt, b, c = (scan_step(key) for key in ("u", "delta", "B", "C"))
    same((dt * SCAN["a"]).exp(), scan_step("A_bar"))
    h = torch.zeros(1, 1, 1, dtype=torch.float64)
    for t, step in enumerate(SCAN["steps"]):
        part = slice(t, t + 1)
        _, h = selective_scan(u[:, part], dt[:, part], tensor([[SCAN["a"]]]), b[:, part], c[:, part], h)
        same(h[0, 0, 0], step["h"])


@pytest.mark.parametrize("form", ["quadratic", "recurrent", "chunked-1", "chunked-3", "chunked-4", "chunked-8"])
def test_duality_matrix(form: str) -> None:
    dt, b, c = (scan_step(key)[..., None] for key in ("delta", "B", "C"))  # (1, T, H = 1, 1)
    # A head of width 4 whose input at t is one-hot: its outputs are the columns of M. A fifth column carries u.
    x = torch.cat([torch.eye(4, dtype=torch.float64), scan_step("u")[0]], 1)[None, :, None] * dt
    decay, h = dt[..., 0] * SCAN["a"], torch.zeros(1, 1, 5, 1, dtype=torch.float64)
    if form == "quadratic":
        y = ssd_quadratic(x, decay, b, c)
    elif form == "recurrent":
        y, _ = ssd_recurrent(x, decay, b, c, h)
    else:
        y, _ = ssd_chunked(x, decay, b, c, h, int(form.rpartition("-")[2]))
    same(y[0, :, 0, :4], DUALITY["M"])
    same(y[0, :, 0, 4], DUALITY["y"])


@pytest.mark.parametrize(("init", "key"), [("lin", "s4d_lin_first_4"), ("inv", "s4d_inv_first_4_N_8")])
def test_complex_initial_modes(init: Initialisation, key: str) -> None:
    expected = tensor(GOLDEN[key]["values_re_im"])
    same(torch.view_as_real(initial_modes(init, 8)), expected)
    # What the mixer starts from, in its own float32.
    mixer = S4dConfig(3, 8, init).build()
    started = torch.stack([-mixer.log_decay.exp(), mixer.frequency], -1)
    torch.testing.assert_close(started, expected.float().expand(3, -1, -1))


def test_real_initial_modes() -> None:
    modes = initial_modes("real", 4)
    same(modes.real, GOLDEN["s4d_real"]["first_4"])
    same(modes.imag, [0, 0, 0, 0])
