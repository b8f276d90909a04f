"""What the operators made of Triton kernels share: whether they can run, what they keep for gradients, and what is done
where a kernel cannot be built.

It is asked when a model is called, so that nothing is imported before it is needed.
"""

from __future__ import annotations

import errno
import subprocess
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from typing import ParamSpec, Protocol, TypeVar

import torch
from torch import Tensor

from regard.kernels.choice import NARROW, has_triton

# What Triton and the compilers that it calls say where a kernel cannot be built, in errors of no type of their own.
OF_BUILDING = (
    "PassManager::run failed",
    "Failed to find C compiler",
    "Failed to load newly compiled",
    "Could not create or locate cache dir",
    "Cannot find ptxas",
    "There should only be one.",  # driver, or compiler, for the device
    "error encountered during parsing",
)
# Files that are not there, cannot be run, or cannot be written.
OF_FILES = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.EROFS, errno.ENOSPC)

Result = TypeVar("Result")
Given = ParamSpec("Given")
_fallbacks: Counter[str] = Counter()
_unmade: Counter[str] = Counter()


def kernels_take(x: Tensor) -> bool:
    """Triton is there, and x lies on a device and in a number type that its kernels can do."""
    return x.dtype in NARROW and has_triton(x.device)


def shared_memory(device: torch.device) -> int:
    """Bytes that one program can share between its threads."""
    return _shared_memory(device) if device.type == "cuda" else 0


@cache
def _shared_memory(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin


vars(shared_memory)["_dynamo_marked_constant"] = True  # as of `has_triton`


class Keeps(Protocol):
    """What autograd hands to an operator to keep tensors in."""

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...


def keep_inputs(ctx: Keeps, inputs: tuple[Tensor | None, ...], output: object) -> None:  # noqa: ARG001
    """Nothing but the inputs is kept; the backward pass makes the rest again."""
    ctx.save_for_backward(*inputs)


def if_built(name: str, kernel: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result | None:
    """What kernels give; None where one of this name cannot be built, now and from then on: said once, counted every
    time. The readable form is then the caller's to run."""
    if name not in _fallbacks:
        try:
            return kernel(*args, **kwargs)
        except Exception as error:
            if not _is_of_building(error):
                raise
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            warnings.warn(f"no kernel for {name}, whose readable form runs instead, slower: {reason}", stacklevel=2)
    _fallbacks[name] += 1
    return None


def by_kernel(name: str, kernel: Callable[[], Result], readable: Callable[[], Result]) -> Result:
    """What the kernels of an operator give, or what the readable form gives where one cannot be built."""
    found = if_built(name, kernel)
    return readable() if found is None else found


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
    if isinstance(error, OSError):
        return error.errno in OF_FILES
    if any(kind.__module__.split(".")[0] == "triton" for kind in type(error).__mro__):
        return True
    if type(error) is RuntimeError:
        return any(said in str(error) for said in OF_BUILDING)
    return isinstance(error, (ImportError, subprocess.SubprocessError))


def readable_gradients(
    readable: Callable[..., Tensor | tuple[Tensor, ...]], inputs: Sequence[Tensor | None], uppers: Sequence[Tensor]
) -> list[Tensor]:
    """Gradients of the inputs that are given, by autograd: what stands in for a backward kernel.

    In a thread of its own, since inside an operator autograd records nothing; on the stream of the caller. All of it in
    that thread: the one that autograd has for the device is waiting here.
    """
    is_cuda = uppers[0].is_cuda
    stream = torch.cuda.current_stream(uppers[0].device) if is_cuda else None

    def work() -> list[Tensor]:
        on_stream = torch.cuda.stream(stream) if is_cuda else nullcontext()
        with on_stream, torch.autograd.set_multithreading_enabled(False):
            leaves = [None if t is None else t.detach().requires_grad_() for t in inputs]
            found = readable(*leaves)
            outputs = (found,) if isinstance(found, Tensor) else found
            given = [leaf for leaf in leaves if leaf is not None]
            # What an operator returns may not share its numbers.
            return [t.clone() for t in torch.autograd.grad(outputs, given, uppers, materialize_grads=True)]

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
