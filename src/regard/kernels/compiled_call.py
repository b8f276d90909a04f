"""What may be handed to compiled C (compiled.py), and how: plain numbers of float32 that nobody else has to see."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils._device import DeviceContext

from regard.kernels.choice import PLAIN
from regard.kernels.compiled import library

Shape = Sequence[int]


def are_taken(inputs: Sequence[Tensor], shapes_of: Callable[..., list[Shape] | None]) -> bool:
    """Whether C takes these inputs, the first of which lies on a CPU: plain numbers, and of the sizes that it reads.

    shapes_of  the shape that each must have, told all of them; None where they are too few to be worth a call.
    """
    if is_made_for_others() or not inputs[0].is_cpu:
        return False  # before sizes are looked at: what is made would be so for these alone
    shapes = shapes_of(*inputs)
    if shapes is None or not are_plain(*inputs):
        return False
    # C would read what lies beside a smaller one; torch's own form broadcasts it, or says what is wrong.
    return [part.shape for part in inputs] == shapes and library() is not None


def are_plain(*tensors: Tensor | None) -> bool:
    """Whether all are plain numbers of float32 on a CPU, and nobody has to see what is done with them."""
    return all(x is None or x.dtype is torch.float32 for x in tensors) and not _is_watched() and are_read(*tensors)


def are_read(*tensors: Tensor | None) -> bool:
    """Whether all are numbers of float32 that lie in a CPU's memory as they read.

    Not those of sparse matrices, of views whose sign is turned when they are read (the imaginary part of a conjugate),
    of zeros that torch has made without memory, and of gradients that come many at once.
    """
    for x in tensors:
        if x is not None and not (x.dtype is torch.float32 and type(x) in PLAIN and _keys(x) in _keys_of_plain()):
            return False
    return True


def _keys(x: Tensor) -> int:
    """Who has a say in what an operation on a tensor does."""
    return torch._C._dispatch_keys(x).raw_repr()


@cache
def _keys_of_plain() -> frozenset[int]:
    found = set()
    for without_gradients in (False, True):
        # Whoever follows operations would put a tensor of its own in the place of this one.
        with torch._C._DisableTorchDispatch(), torch.inference_mode(without_gradients):
            found.add(_keys(torch.empty(0, device="cpu")))
    return frozenset(found)


def _is_watched() -> bool:
    """Whether somebody follows torch's operations, or transforms them, and would not see one of C."""
    transformed = torch._C._functorch.peek_interpreter_stack() is not None  # pyright: ignore
    transformed = transformed or forward_ad._current_level >= 0  # gradients that are made on the way forward
    followed = torch._C._len_torch_dispatch_stack() > 0 or (_count_of_modes() > 0 and _functions_are_followed())
    return transformed or followed or torch.is_autocast_enabled("cpu")


# How many modes torch's functions go through (TorchFunctionMode), in versions of torch that tell.
_count_of_modes: Callable[[], int] = getattr(torch._C, "_len_torch_function_stack", lambda: 0)


def _functions_are_followed() -> bool:
    """Whether a mode looks at torch's functions. The one of a default device only says where new tensors lie."""
    modes = (torch._C._get_function_stack_at(i) for i in range(_count_of_modes()))
    return not all(isinstance(mode, DeviceContext) for mode in modes)


def is_made_for_others() -> bool:
    """Whether torch writes down what is computed, to run it with other numbers and sizes."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]


def with_rows(x: Tensor) -> Tensor:
    """The same numbers, those of the last dimension one after the other."""
    return x if x.stride(-1) == 1 else x.contiguous()


def addresses(tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(tensors))(*(part.data_ptr() for part in tensors))


def counts(*given: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(given))(*given)


def loaded() -> ctypes.CDLL:
    """The library, which whoever asked `takes` has found."""
    found = library()
    assert found is not None, "compiled C without a library"
    torch.get_num_threads()  # a thread that has not asked torch yet has as many as there are processors
    return found


def followed_gradients(
    readable: Callable[..., Tensor | tuple[Tensor, ...]], inputs: Sequence[Tensor], gradients: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Gradients by autograd, followed themselves where somebody asks for that.

    Of a view of each input: an input may be made from another, or be given twice, and its gradient is that of its own
    place alone. Whoever asked adds up the rest.
    """
    followed = torch.is_grad_enabled()
    with torch.enable_grad():
        leaves = [
            part.view_as(part) if followed and part.requires_grad else part.detach().requires_grad_() for part in inputs
        ]
        return torch.autograd.grad(readable(*leaves), leaves, gradients, create_graph=followed)
