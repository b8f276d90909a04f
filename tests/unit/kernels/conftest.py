"""What tests of kernels share."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from kernels.triton_here import INTERPRETED
from regard.kernels.operators import kernel_fallbacks


@pytest.fixture(autouse=True)
def _loops_with_bounds_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter holds a scalar as an array of one number, which numpy no longer takes for a bound of a loop."""
    if INTERPRETED and find_spec("triton") is not None:
        from triton.runtime import interpreter

        patch = interpreter._patch_lang_tensor

        def patched(tensor: type, scope: Any) -> None:
            patch(tensor, scope)
            scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

        monkeypatch.setattr(interpreter, "_patch_lang_tensor", patched)


@pytest.fixture(autouse=True)
def _no_kernel_is_replaced_unseen() -> Iterator[None]:
    """A kernel that the readable form stands in for would be compared with itself."""
    yield
    assert kernel_fallbacks() == {}
