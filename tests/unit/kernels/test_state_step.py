"""One token of a recurrence by a kernel equals the readable step, in place where the state's owner allows it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.triton_here import DEVICE, INTERPRETED, needs_kernel
from regard.core.context import Context, Owned
from regard.core.stack import MixerConfig
from regard.core.state import State
from regard.mixers.lstm import LstmConfig
from regard.mixers.mamba import MambaConfig
from regard.mixers.ssd import SsdConfig

CONFIGS: dict[str, MixerConfig] = {
    **MambaConfig.examples(),
    **SsdConfig.examples(),
    "mamba-wide": MambaConfig(96, 16),
    "ssd-wide": SsdConfig(64, 40, 20, expand=5),
    "lstm": LstmConfig(24, 300, project=True),
}
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}
TYPES = [torch.float32] if INTERPRETED else list(TOLERANCE)


def begun(name: str, dtype: torch.dtype) -> tuple[torch.nn.Module, Tensor, State]:
    torch.manual_seed(0)
    config = CONFIGS[name]
    mixer = config.build().to(DEVICE, dtype).eval()
    x = torch.randn(3, 7, config.d_model, device=DEVICE, dtype=dtype)
    # From the middle of a text.
    state = mixer.init_state(3).map(lambda tensor: torch.randn_like(tensor) if tensor.is_floating_point() else tensor)
    return mixer, x, state


def same(found: State, expected: State, rows: slice, close: dict[str, float]) -> None:
    for one, other in zip(found.tensors(), expected.tensors(), strict=True):
        torch.testing.assert_close(one[rows], other[rows].to(one.dtype), **close)


@needs_kernel
@torch.no_grad()
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", CONFIGS)
def test_a_token_by_the_kernel_is_a_token_by_the_equations(name: str, dtype: torch.dtype) -> None:
    mixer, x, state = begun(name, dtype)
    before = [tensor.clone() for tensor in state.tensors()]
    y, after = mixer(x[:, :1], state)
    assert all(torch.equal(now, then) for now, then in zip(state.tensors(), before, strict=True))
    # In float64, which no kernel takes.
    wide = state.map(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)
    expected, expected_after = mixer.double()(x[:, :1].double(), wide)
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(y.double(), expected, **close)
    same(after, expected_after, slice(None), close)


@needs_kernel
@torch.no_grad()
@pytest.mark.parametrize("name", CONFIGS)
def test_an_owned_state_is_written_where_it_is_in_the_rows_that_go_on(name: str) -> None:
    mixer, x, state = begun(name, torch.float32)
    before = state.map(Tensor.clone)
    expected, after = mixer(x[:, :1], state)
    owned = Owned(torch.tensor([True, False, True], device=DEVICE))
    y, held = mixer(x[:, :1], state, Context(owned=owned))
    assert torch.equal(y, expected)
    assert [id(tensor) for tensor in held.tensors()] == [id(tensor) for tensor in state.tensors()]
    for now, then in zip(held.tensors(), after.tensors(), strict=True):
        if now.is_floating_point():
            assert torch.equal(now[::2], then[::2])
    same(held, before, slice(1, 2), {"rtol": 0.0, "atol": 0.0})
    # Positions are their owner's to advance.
    assert [id(count) for count in owned.counts] == [id(state.position)]
    assert state.position.tolist() == before.position.tolist()
