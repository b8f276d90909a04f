"""Where kernels run in tests: on a CUDA device, or in Triton's interpreter on a CPU (TRITON_INTERPRET=1)."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
needs_kernel = pytest.mark.skipif(
    find_spec("triton") is None or (DEVICE == "cpu" and not INTERPRETED),
    reason="no CUDA device, and TRITON_INTERPRET=1 is not set",
)
