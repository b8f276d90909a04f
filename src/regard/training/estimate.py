"""What a run will need, told before anything is allocated.

Parameters are counted on torch's meta device, which makes shapes and no numbers. Weights, gradients and the
optimiser's two moments are exact; activations are the inputs and outputs of every matrix, which is most of them.

Floating-point operations of training, counted: one step is run and every operation of torch in it is looked at.

    product of (m, k) and (k, n)     2 m k n
    Fourier transform of n values    5 n log2 n
    sum, exponential, gate           1 for each value of the result
    view, copy, look-up              0

The step is run forwards and backwards on a copy of the model on the CPU, where no kernel hides what it computes.
"""

from __future__ import annotations

import copy
import math
import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from regard.data.batch import Batch
from regard.errors import ResourceError

if TYPE_CHECKING:
    from torch import nn

    from regard.core.config import Config

FLOAT = 4
RANDOM = {
    *("normal_", "trunc_normal_", "uniform_", "orthogonal_"),
    *("kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_"),
}
RESERVED = 0.9  # the part of the memory that a run may fill
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


@dataclass(frozen=True)
class Estimate:
    """Bytes by purpose, and the count of parameters."""

    parameters: int
    weights: int
    gradients: int
    optimiser: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimiser + self.activations

    def to_dict(self) -> dict[str, int]:
        return {**vars(self), "total": self.total}


def on_meta(config: Config) -> nn.Module:
    """The model of `config` without its numbers."""
    import torch
    from torch.overrides import TorchFunctionMode

    class WithoutChance(TorchFunctionMode):
        """Leaves random initialisation out: the first such call on the meta device loads two seconds of torch."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name, kwargs = getattr(func, "__name__", ""), kwargs or {}
            if name in RANDOM:
                return args[0] if args else kwargs["tensor"]
            return func(*args, **kwargs)

    with torch.device("meta"), WithoutChance():
        return config.build()


def count_parameters(model: nn.Module) -> int:
    """Parameters, a shared one once."""
    return sum(parameter.numel() for parameter in model.parameters())


def estimate(config: Config, *, batch_size: int, length: int, ema: bool = False) -> Estimate:
    """The need of training `config` on batches of `batch_size` rows of `length` tokens."""
    from torch import nn

    model = on_meta(config)
    parameters = count_parameters(model)
    # The head's output is made a slice at a time by the chunked cross-entropy, and a table is only looked up.
    named: Any = model.named_modules()
    left_out = {
        id(part.weight) for name, part in named if isinstance(part, nn.Embedding) or name.split(".")[-1] == "head"
    }
    per_token = sum(sum(p.shape) for p in model.parameters() if p.dim() == 2 and id(p) not in left_out)
    return Estimate(
        parameters=parameters,
        weights=FLOAT * parameters * (2 if ema else 1),
        gradients=FLOAT * parameters,
        optimiser=2 * FLOAT * parameters,
        activations=FLOAT * per_token * batch_size * length,
    )


def memory_limit(device: str = "cpu") -> int:
    """Bytes that this process may use on `device`."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.mem_get_info(device)[0]
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft != resource.RLIM_INFINITY:
        limits.append(soft)
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = Path(name).read_text().strip() if Path(name).is_file() else "max"
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


def refuse_too_large(need: Estimate, limit: int, *, batch_size: int, length: int) -> None:
    """Refuse a run that cannot fit, naming the setting that weighs most."""
    if need.total <= RESERVED * limit:
        return
    if need.activations > need.total - need.activations:
        advice = f"lower train.batch_size={batch_size} or train.length={length}"
    else:
        advice = "choose a smaller --size or lower the model's width, layers or vocabulary"
    purposes = ("weights", "gradients", "optimiser", "activations")
    parts = [f"{name} {gigabytes(getattr(need, name))}" for name in purposes]
    raise ResourceError(
        f"training needs about {gigabytes(need.total)} ({need.parameters:,} parameters: {', '.join(parts)}) and this "
        f"machine has {gigabytes(limit)}; {advice}, or say --yes-really"
    )


def gigabytes(count: int) -> str:
    """Bytes in gigabytes or, when few, megabytes."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"


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
