"""How many rows a run gets to step together: by the bytes that the state of one takes."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from torch import nn

from regard.core.device import any_device
from regard.core.memory import host_memory
from regard.core.model import TokenModel
from regard.decoding.completion import Completion
from regard.decoding.ending import window_of
from regard.decoding.engine import Engine
from regard.decoding.logits import CHUNK, model_device
from regard.layers.few_bits import FewBits
from regard.run.run import Run
from regard.tasks.verbs import Generates

ENDLESS = 2048  # tokens for which a model without a last position is given room at first
# Rows beyond which a step gets slower by more than it gets wider: a step costs as much as its slots, used or not.
GROWING = {"cpu": 16, "cuda": 64}
CONSTANT = {"cpu": 64, "cuda": 1024}
READ = {"cuda": 32}  # prompts that are read in one call; one elsewhere, where they gain nothing by company
# Rows of a product on a CPU that round alike, wherever they stand: those that are left over of 6, say, do not.
ALIKE = 4
SHARE = 4  # of the memory, one in so many is for states
PREFIXES = 8  # of the memory for states, one in so many is for those of beginnings


@dataclass(frozen=True)
class Sizes:
    """memory     bytes of all runs together, None for half of what there is.
    slots      None to count them by bytes.
    precision  of language models, float32 or bfloat16; None: as they were saved.
    """

    memory: int | None = None
    slots: int | None = None
    chunk: int = CHUNK
    precision: str | None = None

    def budget(self, device: torch.device) -> int:
        """Bytes that runs and their states may take on a device."""
        if self.memory is not None:
            return self.memory
        if device.type == "cuda":
            return int(0.9 * torch.cuda.get_device_properties(device).total_memory)
        return host_memory() // 2

    def for_states(self, device: torch.device) -> int:
        return self.budget(device) // SHARE

    def slots_of(self, completion: Completion, device: torch.device) -> int:
        """Rows that step together."""
        if self.slots is not None:
            return self.slots
        row = bytes_of_row(completion)
        grows = row > bytes_of_row(completion, room=1)
        most = (GROWING if grows else CONSTANT).get(device.type, GROWING["cpu"])
        fitting = self.for_states(device) // max(1, row)
        slots = max(1, min(most, fitting))
        while slots > 1 and slots + spare_rows(slots, device) > fitting:
            slots -= 1
        return slots

    def in_precision(self, run: Run) -> Run:
        """The run as texts are written with: of a language model, with weights of its own where numbers differ.

        Weights of few bits are narrower already, and what stands beside them fits to no other numbers.
        """
        first = next(run.model.parameters(), None)
        number = None if self.precision is None else getattr(torch, self.precision)
        if number is None or first is None or first.dtype == number or not isinstance(run.task, Generates):
            return run
        if any(isinstance(part, FewBits) for part in run.model.modules()):
            return run
        own = copy.copy(run)
        own.model = copy.deepcopy(run.model).to(number)
        return own


def engine_of(model: TokenModel, slots: int, chunk: int = CHUNK) -> Engine:
    """As a server steps it: on a GPU, prompts that came together are read together."""
    device = model_device(model)
    together = min(slots, READ.get(device.type, 1))
    return Engine(model, slots, together=together, steady=together > 1, chunk=chunk, spare=spare_rows(slots, device))


def spare_rows(slots: int, device: torch.device) -> int:
    """Rows that step beside the slots and are nobody's, so that on a CPU none is left over of its products."""
    return -slots % ALIKE if device.type == "cpu" and slots > 1 else 0


@torch.no_grad()
def bytes_of_row(completion: Completion, room: int | None = None) -> int:
    """Of the state of one text that has filled its window, or `room`."""
    window = window_of(completion.model, completion.window)
    length = room or (ENDLESS if math.isinf(window) else int(window))
    return completion.model.init_state(1).reserve(length).nbytes


def bytes_of_model(model: nn.Module) -> int:
    """Of its weights and tables."""
    tensors = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in _tensors(model)}
    return sum(tensors.values())


def device_of_model(model: nn.Module) -> torch.device:
    return any_device(model) or torch.device("cpu")


def _tensors(model: nn.Module) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]
