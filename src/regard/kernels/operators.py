"""What the operators made of Triton kernels share: whether they can run, what they keep for gradients, and what is done
where a kernel cannot be built.

It is asked when a model is called, so that nothing is imported before it is needed.
"""

from __future__ import annotations

import subprocess
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Protocol, TypeVar

import torch
from torch import Tensor

# The kernels add up in float32; a model in float64 wants more.
KERNEL_DTYPES = (torch.float32, torch.bfloat16, torch.float16)

Result = TypeVar("Result")
_fallbacks: Counter[str] = Counter()
_unmade: Counter[str] = Counter()


def kernels_take(x: Tensor) -> bool:
    """Triton is there, and x lies on a device and in a number type that its kernels can do."""
    return x.dtype in KERNEL_DTYPES and has_triton(x.device.type)


def has_triton(device_type: str) -> bool:
    return device_type == "cuda" and _has_triton()


def shared_memory(device_type: str) -> int:
    """Bytes that one program can share between its threads."""
    return _shared_memory() if device_type == "cuda" else 0


@cache
def _shared_memory() -> int:
    return torch.cuda.get_device_properties().shared_memory_per_block_optin


@cache
def _has_triton() -> bool:
    """Matrix products in bfloat16 begin with compute capability 8."""
    return find_spec("triton") is not None and torch.cuda.get_device_capability() >= (8, 0)


for function in (has_triton, shared_memory):
    # As `torch.compiler.assume_constant_result` does, which would import the compiler, two seconds at every start.
    vars(function)["_dynamo_marked_constant"] = True


class Keeps(Protocol):
    """What autograd hands to an operator to keep tensors in."""

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...


def keep_inputs(ctx: Keeps, inputs: tuple[Tensor | None, ...], output: object) -> None:  # noqa: ARG001
    """Nothing but the inputs is kept; the backward pass makes the rest again."""
    ctx.save_for_backward(*inputs)


def by_kernel(name: str, kernel: Callable[[], Result], readable: Callable[[], Result]) -> Result:
    """What the kernels of an operator give. Where one cannot be built, what the readable form gives, now and from then
    on: said once, counted every time."""
    if name not in _fallbacks:
        try:
            return kernel()
        except Exception as error:
            if not _is_of_building(error):
                raise
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            warnings.warn(f"no kernel for {name}, whose readable form runs instead, slower: {reason}", stacklevel=2)
    _fallbacks[name] += 1
    return readable()


def kernel_fallbacks() -> dict[str, int]:
    """How often each operator has run without its kernels because one of them could not be built."""
    return dict(_fallbacks)


def count_fallback(name: str) -> None:
    """Count something else that runs as it reads because its fast form could not be made."""
    _unmade[name] += 1


def fallbacks() -> dict[str, int]:
    """How often anything fast could not be made in this process and its plain form ran instead."""
    return dict(_fallbacks + _unmade)


def _is_of_building(error: Exception) -> bool:
    """Of Triton, of a compiler that it calls, or of a part that is missing; not of the device, of memory or of us."""
    if isinstance(error, (torch.OutOfMemoryError, torch.AcceleratorError)):
        return False
    is_tritons = any(kind.__module__.split(".")[0] == "triton" for kind in type(error).__mro__)
    return is_tritons or isinstance(error, (RuntimeError, OSError, ImportError, subprocess.SubprocessError))


def readable_gradients(
    readable: Callable[..., Tensor | tuple[Tensor, ...]], inputs: Sequence[Tensor | None], uppers: Sequence[Tensor]
) -> list[Tensor]:
    """Gradients of the inputs that are given, by autograd: what stands in for a backward kernel.

    In a thread of its own, since inside an operator autograd records nothing; on the stream of the caller.
    """
    is_cuda = uppers[0].is_cuda
    stream = torch.cuda.current_stream(uppers[0].device) if is_cuda else None

    def work() -> list[Tensor]:
        with torch.cuda.stream(stream) if is_cuda else nullcontext():
            leaves = [None if t is None else t.detach().requires_grad_() for t in inputs]
            found = readable(*leaves)
            outputs = (found,) if isinstance(found, Tensor) else found
            given = [leaf for leaf in leaves if leaf is not None]
            # What an operator returns may not share its numbers.
            return [t.clone() for t in torch.autograd.grad(outputs, given, uppers, materialize_grads=True)]

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
