"""One of two processes that train together: five steps of a model under DDP or `fully_shard`, its weights written out.

    python tests/parallel_steps.py RANK WORLD PORT WAY OUT MODEL...

With a world of one the same batches are read by one process, without any wrapping: what the others must come to.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from regard.core.data_spec import EXAMPLE
from regard.core.registry import entry
from regard.core.stack import Block
from regard.data.batch import Batch
from regard.layers.binary_head import BinaryHead
from regard.layers.spelled import KINDS, SPELLING_LENGTH
from regard.training.losses import TrainingStep, model_loss

STEPS, ROWS, LENGTH, PAST = 5, 4, 7, 168
GENERATE = ("gpt", "lstm", "mamba2")
SETTINGS: dict[str, dict[str, Any]] = {"captioner": {"patch": 16}}


def batch_for(model: Any, step: int) -> Batch:
    """Rows of unequal length of what the model reads, always the same."""
    chance = torch.Generator().manual_seed(step)
    lengths = torch.tensor([LENGTH, 3, 5, LENGTH])
    rows = list(range(ROWS))
    if model.reads == "numbers":
        past = torch.randn(ROWS, PAST, EXAMPLE.n_channels, generator=chance, dtype=torch.float64)
        known = torch.randn(ROWS, EXAMPLE.horizon, EXAMPLE.n_known, generator=chance, dtype=torch.float64)
        values = torch.randn(ROWS, EXAMPLE.horizon, generator=chance, dtype=torch.float64)
        return Batch(known, values, torch.full((ROWS,), EXAMPLE.horizon), rows, source=past)
    tokens = torch.randint(8, (ROWS, LENGTH), generator=chance)
    targets = torch.randint(EXAMPLE.n_classes, (ROWS, LENGTH), generator=chance)
    targets[torch.arange(LENGTH) >= lengths[:, None]] = -100
    if model.reads == "words":
        tokens = tokens[..., None].expand(-1, -1, 1 + SPELLING_LENGTH + KINDS).contiguous()
    if isinstance(model.head, BinaryHead):
        each = torch.randint(2, (ROWS, model.head.n_answers), generator=chance)
        return Batch(tokens, each.double(), lengths, rows)
    if getattr(model, "pooling", None) is not None:
        return Batch(tokens, targets[:, 0].clone(), lengths, rows)
    if not hasattr(model, "decoder"):
        return Batch(tokens, targets, lengths, rows)
    source = torch.randint(8, (ROWS, 5), generator=chance)
    if model.reads == "pictures":
        assert EXAMPLE.picture is not None
        source = torch.rand(ROWS, *EXAMPLE.picture, generator=chance, dtype=torch.float64)
        return Batch(tokens, targets, lengths, rows, source=source)
    return Batch(tokens, targets, lengths, rows, source=source, source_lengths=torch.tensor([5, 2, 4, 1]))


def share(batch: Batch, rank: int, world: int) -> Batch:
    """Every `world`-th row from `rank` on."""

    def cut(part: Tensor | None) -> Tensor | None:
        return None if part is None else part[rank::world]

    return Batch(
        batch.tokens[rank::world],
        batch.targets[rank::world],
        batch.lengths[rank::world],
        batch.indices[rank::world],
        source=cut(batch.source),
        source_lengths=cut(batch.source_lengths),
    )


def sharded(step: nn.Module, model: Any) -> None:
    """Blocks, head, what is left of the model, and the whole step, each gathered when it is called."""
    for part in step.modules():
        if isinstance(part, Block):
            fully_shard(part)
    tied = any(model.head.weight is part.weight for part in model.modules() if isinstance(part, nn.Embedding))
    if not tied:
        fully_shard(model.head)
    # A head that shares its table is called after the model: the table stays gathered until then.
    fully_shard(model, reshard_after_forward=not tied)
    fully_shard(step)


def trained(name: str, way: str, rank: int, world: int) -> dict[str, Tensor]:
    """The weights after five steps."""
    torch.manual_seed(0)
    model: Any = entry(name).config(EXAMPLE, "tiny", **SETTINGS.get(name, {})).build().double().eval()
    step: nn.Module = TrainingStep(model, model_loss)
    called: nn.Module = step
    if way == "ddp":
        called = DistributedDataParallel(step)
    elif way == "fsdp":
        sharded(step, model)
    optimiser = torch.optim.AdamW(step.parameters(), lr=1e-2)
    for number in range(STEPS):
        batch = batch_for(model, number)
        loss = called(share(batch, rank, world)).total * (world / batch.n_counted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    weights = {key: whole(value) for key, value in model.state_dict().items()}
    return weights | ({"generated": generated(model)} if name in GENERATE else {})


def whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def generated(model: Any) -> Tensor:
    """Logits of three tokens and of four more, one by one, from their state."""
    tokens = batch_for(model, 9).tokens[:2]
    vectors, state = model(tokens[:, :3], model.init_state(2))
    found = [model.head(vectors[:, -1])]
    for t in range(3, LENGTH):
        vectors, state = model(tokens[:, t : t + 1], state)
        found.append(model.head(vectors[:, 0]))
    return torch.stack([whole(one) for one in found])


def main(rank: int, world: int, port: int, way: str, out: Path, names: list[str]) -> None:
    torch.set_num_threads(1)
    if world > 1:
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        dist.init_process_group("gloo", rank=rank, world_size=world)
    found = {name: trained(name, way, rank, world) for name in names}
    if rank == 0:
        torch.save(found, out)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    given = sys.argv
    main(int(given[1]), int(given[2]), int(given[3]), given[4], Path(given[5]), given[6:])
