"""Where Triton kernels can be tried: on a CUDA device, or by Triton's interpreter with TRITON_INTERPRET=1."""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from typing import Any

import pytest
import torch


def device_of_kernels() -> torch.device:
    """CUDA where it is, else the CPU under the interpreter; skips, saying so, where there is neither."""
    if find_spec("triton") is None:
        pytest.skip("no Triton")
    if torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
        return torch.device("cuda")
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("no CUDA device, and TRITON_INTERPRET=1 is not set")
    _let_scalars_count()
    return torch.device("cpu")


def _let_scalars_count() -> None:
    """The interpreter takes a length for a range as an array of one number, which numpy from 2.4 on refuses."""
    interpreter = importlib.import_module("triton.runtime.interpreter")
    patch = interpreter._patch_lang_tensor
    if getattr(patch, "lets_scalars_count", False):
        return

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    patched.lets_scalars_count = True  # pyright: ignore[reportFunctionMemberAccess]
    interpreter._patch_lang_tensor = patched
