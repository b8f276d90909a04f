"""Floating-point operations of training, counted: one step is run and every operation of torch in it is looked at.

    product of (m, k) and (k, n)     2 m k n
    Fourier transform of n values    5 n log2 n
    sum, exponential, gate           1 for each value of the result
    view, copy, look-up              0

The step is run forwards and backwards on a copy of the model on the CPU, where no kernel hides what it computes.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from regard.data.batch import Batch

ROWS = 2  # of the batch that is counted: the cost of a token does not depend on how many rows there are
# Views, copies, look-ups, comparisons and chance.
FREE_NAMES = """
view _unsafe_view reshape expand permute transpose t unsqueeze squeeze slice select split split_with_sizes unbind
unfold as_strided detach alias clone copy_ _to_copy contiguous cat stack index index_select gather embedding
index_put index_put_ _index_put_impl_ scatter scatter_ embedding_dense_backward select_backward slice_backward zeros
zeros_like new_zeros ones ones_like new_ones empty empty_like new_empty new_empty_strided empty_strided full
full_like fill_ zero_ arange scalar_tensor lift_fresh _local_scalar_dense resize_ flip roll tril triu where
masked_fill masked_fill_ constant_pad_nd view_as_real view_as_complex _conj unsafe_split repeat topk sort
native_dropout bernoulli_ eq ne lt le gt ge logical_and logical_not bitwise_and bitwise_not bitwise_or isnan
is_same_size is_pinned equal argmax item nonzero
"""
FREE = frozenset(FREE_NAMES.split())


def flops_per_target(model: nn.Module, batch: Batch, objective: Callable[..., Any]) -> float:
    """Operations of a training step on `batch` for each target that counts."""
    rows = batch.first(ROWS).to(torch.device("cpu"))
    here = copy.deepcopy(model).cpu().float().train()
    with torch.random.fork_rng(devices=[]), Counter() as counter:
        loss, count, _ = objective(here, rows, None)
        loss.backward()
    return counter.total / max(1, int(count))


class Counter(TorchDispatchMode):
    """Adds up the operations of everything that torch computes while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0.0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # To keep torch's compiler out, torch would import it, which takes two seconds; nothing is compiled here.
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self.total += cost(func, args, kwargs, out)
        return out


def cost(func: Any, args: Any, kwargs: Any, out: Any) -> float:
    """Operations of one call."""
    packet = func._overloadpacket
    name = str(func.name()).removeprefix("aten::").partition(".")[0]
    if packet in flop_registry:
        return float(flop_registry[packet](*args, **kwargs, out_val=out))
    if name in FREE:
        return 0.0
    if name.startswith("_fft"):
        return _fourier(args[0], out)
    if name.startswith("_scaled_dot_product_flash_attention_for_cpu"):
        return _attention(args, backward=name.endswith("backward"))
    if name.startswith("mkldnn_rnn_layer"):
        return _recurrence(args, backward=name.endswith("backward"))
    return float(sum(one.numel() for one in _tensors(out) if one.is_floating_point() or one.is_complex()))


def _fourier(given: Tensor, out: Tensor) -> float:
    """Of real numbers one side holds half the spectrum only: the other one tells how many values there are."""
    longer = given if given.numel() > out.numel() else out
    return 5.0 * longer.numel() * math.log2(max(2, longer.shape[-1]))


def _attention(args: Any, backward: bool) -> float:
    """Scores and weighted sum; backwards the scores once more and four products. A mask saves nothing here."""
    q, k = args[1:3] if backward else args[:2]
    batch, heads, length, width = q.shape
    return 2.0 * batch * heads * length * k.shape[2] * width * (5 if backward else 2)


def _recurrence(args: Any, backward: bool) -> float:
    """A fused layer: its two matrices once for each token, and twice that backwards."""
    steps = args[0].shape[0] * args[0].shape[1]
    weights = args[1].numel() + args[2].numel()
    return 2.0 * weights * steps * (2 if backward else 1)


def _tensors(out: Any) -> Iterator[Tensor]:
    if isinstance(out, Tensor):
        yield out
    elif isinstance(out, (list, tuple)):
        for part in out:
            yield from _tensors(part)
