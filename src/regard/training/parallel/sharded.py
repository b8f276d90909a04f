"""Processes that share the parameters out: FSDP2, `fully_shard` of torch (Zhao et al. 2023).

Each process holds some rows of every parameter, of its gradient and of what the optimiser keeps of it. The rows of a
block are put together when it is called, and let go of after it; gradients are added up and cut again on the way back.
So a process needs 1 / N of the bytes of a model in training, and the activations of its rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.nn.utils import get_total_norm

from regard.core.device import device_of
from regard.core.stack import Block
from regard.errors import UsageError
from regard.storage import tensors
from regard.training import sharded_checkpoint
from regard.training.checkpoint import Contents
from regard.training.interrupt import Interrupt
from regard.training.parallel.joined import JoinedRanks
from regard.training.run_folder import WEIGHTS, RunFolder

T = TypeVar("T")
VIEW = "FSDP2-wrapped module .* returned a view tensor"
EPSILON = 1e-6  # as in torch's own clipping


class ShardedRanks(JoinedRanks):
    """One of several processes, with its rows of every parameter."""

    way = "each of which holds a part of every layer (fsdp)"
    _mesh: DeviceMesh
    _parts: Sequence[FSDPModule] = ()
    _stay: Sequence[FSDPModule] = ()  # of these, those that stay together until the way back

    @property
    def holders(self) -> int:
        return self.size

    def shard(self, step: nn.Module, products: torch.dtype) -> None:
        """Blocks, the head, what is left of the model, and the whole step, each put together when it is called.

        The linear maps of a block travel in the numbers in which they are multiplied: a step casts them to these
        anyhow, so that half of the bytes say the same. All else, and every sum of gradients, stays in float32.
        """
        for name, parameter in step.named_parameters():
            if parameter.dim() == 0:
                raise UsageError(
                    f"train.parallel=fsdp: {name.removeprefix('model.')} is a single number, which cannot be cut; say "
                    f"train.parallel=ddp"
                )
        # What a block gives is never written to in place: the gradients are those of one process.
        warnings.filterwarnings("ignore", message=VIEW)
        self._mesh = init_device_mesh(device_of(step).type, (self.size,))
        model = step.get_submodule("model")
        for part in step.modules():
            if isinstance(part, Block):
                if products != torch.float32:
                    self._shard_maps(part, products)
                fully_shard(part, mesh=self._mesh)
        # A head that shares its table is called after the model: the table stays together until then.
        head = getattr(model, "head", None)
        shares = head is None or _shares(head, model)
        if head is not None and not shares and any(True for _ in head.parameters()):
            fully_shard(head, mesh=self._mesh)
        fully_shard(model, mesh=self._mesh, reshard_after_forward=not shares)
        self._stay = [part for part in (model,) if shares and isinstance(part, FSDPModule)]
        fully_shard(step, mesh=self._mesh)
        self._parts = [part for part in step.modules() if isinstance(part, FSDPModule)]
        for part in self._parts:
            # Gloo adds and does not average; by NCCL the two cost the same.
            part.set_force_sum_reduction_for_comms(True)

    def _shard_maps(self, block: Block, products: torch.dtype) -> None:
        policy = MixedPrecisionPolicy(products, torch.float32, cast_forward_inputs=False)
        for part in block.modules():
            if isinstance(part, nn.Linear) and "weight" in part._parameters:
                fully_shard(part, mesh=self._mesh, mp_policy=policy)

    def wrapped(self, step: nn.Module) -> nn.Module:
        return step

    def adding(self, step: object, *, last: bool) -> AbstractContextManager[object]:
        return nullcontext()

    def at_once(self, interrupt: Interrupt, work: Callable[[], T]) -> T | None:
        try:
            return super().at_once(interrupt, work)
        finally:
            # No way back follows that would cut again what stayed together, and the next step would read it as it was.
            for part in self._parts:
                part.reshard()

    @contextmanager
    def whole_model(self) -> Iterator[None]:
        # What scores and writes may call any method of any part; only calls put parts together by themselves.
        for part in self._parts:
            part.set_reshard_after_forward(False, recurse=False)
            part.unshard()
        try:
            yield
        finally:
            for part in self._parts:
                part.set_reshard_after_forward(part not in self._stay, recurse=False)
                part.reshard()

    def norm(self, gradients: Iterable[Tensor]) -> Tensor:
        found = get_total_norm(gradients)
        return found.full_tensor() if isinstance(found, DTensor) else found

    def clip(self, parameters: Iterable[Tensor], most: float, norm: Tensor) -> None:
        gradients = [self.local(one.grad) for one in parameters if one.grad is not None]
        factor = torch.clamp(most / (norm + EPSILON), max=1.0)
        torch._foreach_mul_(gradients, factor)  # pyright: ignore[reportPrivateImportUsage]

    def local(self, tensor: Tensor) -> Tensor:
        return tensor.to_local() if isinstance(tensor, DTensor) else tensor

    def as_part(self, own: Tensor, like: Tensor) -> Tensor:
        return _as_part(own, like, self._mesh)

    def whole_matrices(self, own: Tensor, rows: int) -> Tensor:
        shape = torch.Size((own.shape[0], rows, own.shape[2]))
        stride = (rows * own.shape[2], own.shape[2], 1)
        whole = DTensor.from_local(own, self._mesh, [Shard(1)], run_check=False, shape=shape, stride=stride)
        return whole.full_tensor()

    def own_matrices(self, whole: Tensor) -> Tensor:
        return whole[:, self._rows(whole.shape[1])]

    def kept(self, named: Mapping[str, Tensor], room: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
        # Rows of one process, which the saving threads put together by connections of their own.
        rows = tensors.copied({name: self.local(one) for name, one in named.items()}, {} if room is None else room)
        return {
            name: _as_part(rows[name], one, self._host) if isinstance(one, DTensor) else rows[name]
            for name, one in named.items()
        }

    @cached_property
    def _host(self) -> DeviceMesh:
        return DeviceMesh.from_group(self.beside.group, "cpu")

    def publish_weights(self, run: RunFolder, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """One file, for which each tensor is put together when its turn has come: nobody holds all of them."""
        forms = tensors.forms_of(weights)
        gathered = _Gathered(weights, tensors.order_of(forms))

        def write() -> None:
            try:
                run.publish({WEIGHTS: tensors.streamed(forms, gathered, metadata)})
            finally:
                gathered.rest()  # which the others wait for, also where this one has failed

        if not self.is_first:
            gathered.rest()
        self.first(write)

    def save_checkpoint(self, folder: Path, step: int, contents: Contents) -> Path:
        return sharded_checkpoint.save(self, folder, step, contents)

    def copy_into(self, own: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, tensor in own.items():
                value = values[name]
                cut = isinstance(tensor, DTensor)
                self.local(tensor).copy_(value[self._rows(len(value))] if cut else value)

    def _rows(self, count: int) -> slice:
        """Which of so many rows this process holds: as torch cuts them, the last ones being fewer."""
        each = -(-count // self.size)
        return slice(self.rank * each, (self.rank + 1) * each)


class _Gathered:
    """Tensors that all processes put together one after the other, in one order."""

    def __init__(self, own: Mapping[str, Tensor], order: Sequence[str]) -> None:
        self.own, self.left = own, list(order)

    def __getitem__(self, name: str) -> Tensor:
        assert name == self.left[0], f"{name} before {self.left[0]}"
        del self.left[0]
        tensor = self.own[name]
        return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

    def rest(self) -> None:
        """Take part in those that nobody has asked for."""
        while self.left:
            self[self.left[0]]


def _as_part(own: Tensor, like: Tensor, mesh: DeviceMesh) -> DTensor:
    """Rows of a tensor of the form of `like`, of which the others in the mesh hold the rest."""
    return DTensor.from_local(own, mesh, [Shard(0)], run_check=False, shape=like.shape, stride=like.stride())


def _shares(head: nn.Module, model: nn.Module) -> bool:
    """Whether a parameter of the head is one of another part too."""
    own = {id(parameter) for parameter in head.parameters()}
    inside = {id(part) for part in head.modules()}
    others = (part for part in model.modules() if id(part) not in inside)
    return any(id(parameter) in own for part in others for parameter in part.parameters(recurse=False))
