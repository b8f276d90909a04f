"""What a run will need, told before anything is allocated.

Parameters are counted on torch's meta device, which makes shapes and no numbers. Weights, gradients and the
optimiser's two moments are exact; activations are the inputs and outputs of every matrix, which is most of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard.core.config import Config
from regard.core.memory import host_memory
from regard.core.stack import outer_blocks
from regard.errors import ResourceError

FLOAT = 4
RANDOM = {
    *("normal_", "trunc_normal_", "uniform_", "orthogonal_"),
    *("kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_"),
}
RESERVED = 0.9  # the part of the memory that a run may fill


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

    def shared(self, holders: int, readers: int) -> Estimate:
        """Of one process of several: so many share the parameters, and so many the rows of a batch."""
        weights, gradients, optimiser = (-(-n // holders) for n in (self.weights, self.gradients, self.optimiser))
        return Estimate(self.parameters, weights, gradients, optimiser, -(-self.activations // readers))

    def to_dict(self) -> dict[str, int]:
        return {**vars(self), "total": self.total}


class WithoutChance(TorchFunctionMode):
    """Leaves random initialisation out: the first such call on the meta device loads two seconds of torch."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in RANDOM:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def on_meta(config: Config) -> nn.Module:
    """The model of `config` without its numbers."""
    with torch.device("meta"), WithoutChance():
        return config.build()


def count_parameters(model: nn.Module) -> int:
    """Parameters, a shared one once."""
    return sum(parameter.numel() for parameter in model.parameters())


def estimate(config: Config, *, batch_size: int, length: int, ema: bool = False, recomputes: bool = False) -> Estimate:
    """The need of training `config` on batches of `batch_size` rows of `length` tokens.

    recomputes: with gradient checkpointing, what goes into each block and what the largest of them comes to.
    """
    model = on_meta(config)
    parameters = count_parameters(model)
    # The head's output is made a slice at a time by the chunked cross-entropy, and a table is only looked up.
    named: Any = model.named_modules()
    left_out = {
        id(own)
        for name, part in named
        if isinstance(part, nn.Embedding) or name.split(".")[-1] == "head"
        for own in part.parameters(recurse=False)
    }
    per_token = _widths(model, left_out)
    if recomputes and (blocks := outer_blocks(model)):
        within = [_widths(block, left_out) for block in blocks]
        per_token += sum(block.d_read for block in blocks) + max(within) - sum(within)
    return Estimate(
        parameters=parameters,
        weights=FLOAT * parameters * (2 if ema else 1),
        gradients=FLOAT * parameters,
        optimiser=2 * FLOAT * parameters,
        activations=FLOAT * per_token * batch_size * length,
    )


def _widths(part: nn.Module, left_out: Collection[int]) -> int:
    """Inputs and outputs of all matrices of a part, for one token."""
    return sum(sum(p.shape) for p in part.parameters() if p.dim() == 2 and id(p) not in left_out)


def state_size(shapes: nn.Module, length: int) -> dict[str, Any] | None:
    """Bytes that the model carries from token to token, for one text after `length` tokens; None without a state.

    What an encoder-decoder remembers of its source comes on top, as much as the source is long.
    """
    model: Any = shapes
    if not hasattr(model, "init_state") or not getattr(model, "has_state", True):
        return None
    with torch.device("meta"):
        state = model.init_state(1)
        grows = bool(getattr(getattr(model, "stack", model), "state_grows", False))
        return {"bytes": state.reserve(length).nbytes if grows else state.nbytes, "grows": grows, "length": length}


def sizes(shapes: nn.Module, length: int) -> dict[str, Any]:
    """What is told of a model's size: its parameters, and its state after `length` tokens."""
    return {"parameters": count_parameters(shapes), "state": state_size(shapes, length)}


def memory_limit(device: str = "cpu") -> int:
    """Bytes that this process may use on `device`."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(device)[0]
    return host_memory()  # which Apple's GPU shares


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
