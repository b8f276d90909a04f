"""Which of torch's fused attention kernels is the fastest here, found by trying them at the shapes of a model's calls.

On an H200 cuDNN's reaches 371 TFLOP/s where flash attention reaches 235 (4,096 tokens); on other devices, widths and
versions it is the other way round, or one of them is missing. The choice is made once, before anything is compiled:
which kernel a compiled step calls is settled when it is compiled.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

NAMES = ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION")
LAST = "MATH"
WARM_UPS, REPEATS = 3, 8


class Shape(NamedTuple):
    """One call without a mask: queries (B, H, T, K), keys (B, H, S, K)."""

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    dtype: torch.dtype
    is_causal: bool
    dropout: float

    @property
    def work(self) -> int:
        """In proportion to the operations."""
        batch, heads, length, width = self.queries
        return batch * heads * length * self.keys[2] * width


class _Watcher(TorchFunctionMode):
    """Counts the calls of torch's attention by their shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[Shape] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention and kwargs.get("attn_mask") is None and len(args) == 3:
            q, k = args[:2]
            # Under autocast the kernel sees the type that the call is cast to.
            device = q.device.type
            dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else q.dtype
            options = bool(kwargs.get("is_causal", False)), float(kwargs.get("dropout_p", 0.0))
            self.calls[Shape(tuple(q.shape), tuple(k.shape), dtype, *options)] += 1
        return func(*args, **kwargs)


def largest_shape(call: Callable[[], object]) -> Shape | None:
    """The shape on which most of the attention of `call` is spent; None where it asks for none without a mask."""
    watcher = _Watcher()
    with watcher:
        call()
    return max(watcher.calls, key=lambda shape: shape.work * watcher.calls[shape], default=None)


@functools.cache
def order_of(shape: Shape, device: torch.device) -> tuple[tuple[str, float], ...]:
    """The kernels that take such a call, the fastest first, with milliseconds of a forward and backward pass."""
    times = {name: _milliseconds(name, shape, device) for name in NAMES}
    found = {name: time for name, time in times.items() if time is not None}
    return tuple(sorted(found.items(), key=lambda item: item[1]))


def _milliseconds(name: str, shape: Shape, device: torch.device) -> float | None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def inputs(size: tuple[int, ...]) -> torch.Tensor:
        batch, heads, length, width = size
        made = torch.randn(batch, length, heads, width, device=device, dtype=shape.dtype)
        return made.transpose(1, 2).requires_grad_()

    options = {"is_causal": shape.is_causal, "dropout_p": shape.dropout}
    try:
        with sdpa_kernel(getattr(SDPBackend, name)), torch.enable_grad(), torch.autocast(device.type, enabled=False):
            q, k, v = inputs(shape.queries), inputs(shape.keys), inputs(shape.keys)
            weight = torch.randn_like(q)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            for number in range(WARM_UPS + REPEATS):
                if number == WARM_UPS:
                    start.record()
                y = F.scaled_dot_product_attention(q, k, v, **options)
                torch.autograd.grad(y, (q, k, v), weight)
            end.record()
            end.synchronize()
            return start.elapsed_time(end) / REPEATS
    except (RuntimeError, AttributeError):  # not built, not for this shape, or no memory left to try it
        return None


@contextmanager
def preferring(names: Sequence[str]) -> Iterator[None]:
    """Within the context torch takes the first of `names` that a call allows; without names what it likes."""
    if not names:
        yield
        return
    from torch.nn.attention import SDPBackend, sdpa_kernel

    known = [getattr(SDPBackend, name) for name in (*names, LAST) if hasattr(SDPBackend, name)]
    others = [getattr(SDPBackend, name) for name in NAMES if name not in names and hasattr(SDPBackend, name)]
    with sdpa_kernel([*known[:-1], *others, known[-1]], set_priority=True):
        yield
