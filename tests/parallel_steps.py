"""One of two processes that check one model after the other: what they come to together, and what one comes to alone.

    python tests/parallel_steps.py RANK WORLD PORT OUT

Truth is a plain backward pass over the whole of every batch, in float64, without anything of regard.training.parallel.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.data_spec import EXAMPLE
from regard.core.registry import entry
from regard.core.stack import Block
from regard.data.batch import Batch
from regard.layers.binary_head import BinaryHead
from regard.layers.spelled import KINDS, SPELLING_LENGTH
from regard.storage import tensors
from regard.training.display import Silent
from regard.training.execution import Choice
from regard.training.loop import new_session, train
from regard.training.losses import model_loss
from regard.training.parallel.group import joined
from regard.training.parallel.ranks import ALONE
from regard.training.problem import TrainingProblem
from regard.training.run_folder import RunFolder
from regard.training.settings import TrainSettings
from regard.training.step import gradients_of

ROWS, LENGTH, PAST = 5, 7, 168  # an odd number of rows: one process has more than the other
BATCHES = 2  # of a step, and a second step that goes on where the first ended
SETTINGS: dict[str, dict[str, Any]] = {"captioner": {"patch": 16}}


def batch_for(model: Any, step: int) -> Batch:
    """Rows of unequal length of what the model reads, always the same."""
    chance = torch.Generator().manual_seed(step)
    lengths = torch.tensor([LENGTH, 3, 5, LENGTH, 2])
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
    return Batch(tokens, targets, lengths, rows, source=source, source_lengths=torch.tensor([5, 2, 4, 1, 3]))


@dataclass(frozen=True)
class Batches:
    """The batches of a model by number. goes_on: rows are full and go on from batch to batch."""

    model: Any
    goes_on: bool = False
    packed: bool = False

    def batch(self, step: int, batch_size: int) -> Batch:
        made = batch_for(self.model, step)
        if self.goes_on:
            targets = torch.where(made.targets == -100, 1, made.targets)
            return replace(made, lengths=torch.full((ROWS,), LENGTH), targets=targets, fresh=step == 0)
        if self.packed:
            real = torch.arange(LENGTH) < made.lengths[:, None]
            return replace(made, tokens=made.tokens[real][None], targets=made.targets[real][None], packed=True)
        return made


@dataclass(frozen=True)
class Case:
    """A model, how it is built and how its loss is set."""

    name: str
    build: dict[str, Any]
    carries: bool = False
    packed: bool = False
    objective: Any = model_loss
    recomputes: bool = False

    @property
    def told(self) -> str:
        said = (
            f"{' packed' * self.packed}{' recomputed' * self.recomputes}{' tar' * (self.objective is not model_loss)}"
        )
        return f"{self.name} {self.build or ''}{said}"


FAMILIES = (
    Case("gpt", {}, packed=True),
    Case("lstm", {}, carries=True),
    Case("transformer", {}),
    Case("classifier", {}),
    Case("tagger", {"head": "crf"}),
    Case("captioner", {"patch": 16}),
    Case("forecaster", {}),
)
PENALISED = Case("lstm", {}, objective=partial(model_loss, ar=0.3, tar=0.7, label_smoothing=0.1))
# How a model is built matters where it is cut.
CUT = (Case("gpt", {"tied": True}), Case("mamba2", {}, carries=True), Case("bahdanau", {}), Case("bert", {}))
RECOMPUTED = tuple(
    Case(name, {}, carries=name in ("lstm", "mamba"), recomputes=True)
    for name in ("gpt", "lstm", "mamba", "transformer")
)
CASES = {"ddp": (*FAMILIES, PENALISED, *RECOMPUTED), "fsdp": (*FAMILIES, *CUT, *RECOMPUTED)}


def difference(case: Case, way: str, ranks: Any) -> float:
    """The largest difference of loss, gradient and its norm over two steps, whose state is carried on."""
    torch.manual_seed(0)
    # Chance differs between processes: nothing is dropped.
    drops = {key: 0.0 for key in entry(case.name).parameters_of_preset() if "dropout" in key}
    model: Any = entry(case.name).config(EXAMPLE, "tiny", **(drops | case.build)).build().double()
    alone = copy.deepcopy(model)
    problem = TrainingProblem(Batches(model, case.carries, case.packed), objective=case.objective, carries=case.carries)
    settings = TrainSettings(
        batch_size=ROWS, accumulate=BATCHES, parallel=way, device="cpu", gradient_checkpointing=case.recomputes
    )
    ranks = ranks.as_set(settings, 0, 1)
    with tempfile.TemporaryDirectory() as folder:
        session = new_session(model, problem, settings, RunFolder(Path(folder)), Silent(), ranks)
        session.fast_step = ranks.wrapped(session.training_step)
        largest, state = 0.0, None
        for step in range(2):
            loaded = session.prefetch.take(step)
            loss = ranks.summed(gradients_of(session, loaded.batches, loaded.tokens))
            found = [parameter.grad for parameter in session.optimiser.parameters]
            norm = ranks.norm([one for one in found if one is not None])
            expected, state = by_hand(alone, case, step, state)
            wanted = [parameter.grad for parameter in alone.parameters()]
            pairs = [(loss, expected), (norm, torch.cat([g.flatten() for g in wanted if g is not None]).norm())]
            assert [g is None for g in found] == [g is None for g in wanted]
            pairs += [(whole(g), w) for g, w in zip(found, wanted, strict=True) if w is not None]
            largest = max(largest, *(float((a - b).abs().max()) for a, b in pairs))
            session.optimiser.clear()
            alone.zero_grad()
        return largest


def by_hand(model: Any, case: Case, step: int, state: Any) -> tuple[Tensor, Any]:
    """The loss of a step of one process, whose gradients are left on the model."""
    sampler = Batches(model, case.carries, case.packed)
    batches = [sampler.batch(step * BATCHES + i, ROWS) for i in range(BATCHES)]
    total = torch.zeros((), dtype=torch.float64)
    for batch in batches:
        if case.carries and state is None:
            state = model.init_state(ROWS)
        loss, _, state = case.objective(model, batch, state)
        state = None if state is None else state.detach()
        total = total + loss
    total = total / sum(batch.n_counted for batch in batches)
    total.backward()
    return total.detach(), state


# Of these the large products are computed in bfloat16.
HALF = ("gpt", "mamba", "transformer")


def half_gradients(name: str, way: str, ranks: Any) -> list[Tensor]:
    """The gradients of a step in bfloat16, and the bytes of all linear maps as they were when they were called."""
    torch.manual_seed(0)
    drops = {key: 0.0 for key in entry(name).parameters_of_preset() if "dropout" in key}
    model: Any = entry(name).config(EXAMPLE, "tiny", **drops).build()
    settings = TrainSettings(batch_size=ROWS, accumulate=BATCHES, parallel=way, device="cpu", precision="bfloat16")
    ranks, seen = ranks.as_set(settings, 0, 1), {}
    with tempfile.TemporaryDirectory() as folder:
        problem = TrainingProblem(Batches(model))
        session = new_session(model, problem, settings, RunFolder(Path(folder)), Silent(), ranks)
        session.chosen = Choice("bfloat16")
        session.fast_step = ranks.wrapped(session.training_step)
        blocks = [block for block in model.modules() if isinstance(block, Block)]
        for i, part in enumerate(p for block in blocks for p in block.modules() if isinstance(p, nn.Linear)):
            part.register_forward_pre_hook(lambda part, _, i=i: seen.update({i: part.weight.nbytes}))
        loaded = session.prefetch.take(0)
        gradients_of(session, loaded.batches, loaded.tokens)
        found = [parameter.grad for parameter in session.optimiser.parameters]
        return [torch.tensor(sum(seen.values())), *(whole(one).clone() for one in found if one is not None)]


def whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def weights_after(way: str, ranks: Any, folder: Path) -> dict[str, Tensor]:
    """The published weights of a training with Muon, clipping, a moving average and evaluations."""
    torch.manual_seed(0)
    model: Any = entry("gpt").config(EXAMPLE, "tiny").build().double()
    held_out = lambda: (batch_for(model, 90 + i) for i in range(3))  # noqa: E731
    problem = TrainingProblem(Batches(model), held_out, 3 * 24)
    settings = TrainSettings(
        budget="6steps", batch_size=ROWS, accumulate=2, optimiser="muon", clip=0.1, ema=0.5, evaluate_every=2,
        save_every=3, parallel=way, device="cpu", threads=1,
    )  # fmt: skip
    ranks = ranks.as_set(settings, 0, 1)
    train(model, problem, settings, folder / way, ranks=ranks)
    return tensors.read(folder / way / "model.safetensors")


def main(rank: int, world: int, port: int, out: Path) -> None:
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(world)}
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"  # who started both holds the port
    found: dict[str, float] = {}
    with joined(torch.device("cpu")) as ranks:
        for way, asked in CASES.items():
            found |= {f"{way} {case.told}": difference(case, way, ranks) for case in asked}
        halves = {name: [half_gradients(name, way, ranks) for way in ("ddp", "fsdp")] for name in HALF}
        together = {way: weights_after(way, ranks, out.parent) for way in ("ddp", "fsdp")}
    if rank == 0:
        for name, ((bytes_held, *copied), (bytes_shared, *shared)) in halves.items():
            largest = max(float(one.abs().max()) for one in copied)
            pairs = zip(copied, shared, strict=True)
            found[f"half {name}"] = max(float((one - other).abs().max()) for one, other in pairs) / largest
            found[f"half bytes {name}"] = float(bytes_shared / bytes_held)
        alone = weights_after("none", ALONE, out.parent)
        for way, weights in together.items():
            found[f"{way} trained"] = max(float((weights[key] - alone[key]).abs().max()) for key in alone)
        out.write_text(json.dumps(found))


if __name__ == "__main__":
    given = sys.argv
    main(int(given[1]), int(given[2]), int(given[3]), Path(given[4]))
