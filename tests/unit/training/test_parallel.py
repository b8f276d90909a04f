"""Two processes that train together come to what one does, whichever way they are wrapped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from torch import nn

import parallel_steps
from regard.core.data_spec import EXAMPLE
from regard.core.registry import entry, names
from regard.core.tap import Tap
from regard.mixers.attentive import AlignedCell
from regard.training.losses import TrainingStep, model_loss

SCRIPT = Path(parallel_steps.__file__)
pytestmark = pytest.mark.slow  # whichever of them is the first one waits for the pair
TOLD = [f"{way} {case.told}" for way, asked in parallel_steps.CASES.items() for case in asked]


@pytest.fixture(scope="module")
def differences(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Of all models, found by one pair of processes: to start one takes longer than to check a model."""
    out = tmp_path_factory.mktemp("pair") / "out.json"
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    commands = [[sys.executable, SCRIPT, str(rank), "2", str(store.port), out] for rank in range(2)]
    children = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    try:
        told = [child.communicate(timeout=240)[1] for child in children]
    finally:
        for child in children:
            child.kill()
    assert [child.returncode for child in children] == [0, 0], "\n".join(told)
    return json.loads(out.read_text())


@pytest.mark.parametrize("told", TOLD)
def test_loss_and_gradient_of_two_processes_are_those_of_one_with_the_whole_batch(
    told: str, differences: dict[str, float]
) -> None:
    """Accumulated, of unequal lengths and counts of targets, an odd number of rows, states carried on."""
    assert differences[told] <= 1e-9


@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_muon_clipping_the_average_and_the_best_weights_are_those_of_one_process(
    way: str, differences: dict[str, float]
) -> None:
    assert differences[f"{way} trained"] <= 1e-9


@pytest.mark.parametrize("name", parallel_steps.HALF)
def test_linear_maps_travel_in_the_half_numbers_in_which_they_are_multiplied(
    name: str, differences: dict[str, float]
) -> None:
    """Two that share the weights out come to what two do that hold all of them, from half of the bytes."""
    assert differences[f"half {name}"] <= 1e-5
    assert differences[f"half bytes {name}"] == 0.5


@pytest.mark.parametrize("name", [name for name in names() if not entry(name).config(EXAMPLE, "tiny").fitted])
def test_a_hook_of_every_part_of_a_model_is_called_in_training(name: str) -> None:
    model: Any = entry(name).config(EXAMPLE, "tiny", **parallel_steps.SETTINGS.get(name, {})).build().double()
    step, called = TrainingStep(model, model_loss), set()
    parts = {key: part for key, part in step.named_modules() if not _is_called_by_nobody(part)}
    # The cell of a decoder that looks before every step is no loop over a chunk: its owner reads its weights.
    steps = {f"{key}.cell.cell" for key, part in parts.items() if isinstance(part, AlignedCell)}
    for key, part in parts.items():
        part.register_forward_hook(lambda *_, key=key: called.add(key))
    step(parallel_steps.batch_for(model, 0)).total.backward()
    assert parts.keys() - steps == called


def _is_called_by_nobody(part: nn.Module) -> bool:
    """Lists are not, and a tap to which somebody listens makes its owner take the readable path."""
    return isinstance(part, (nn.ModuleList, Tap))


# Without the checks of shapes that tests run under, which compiled code cannot hold.
COMPILED = """
import sys
import torch
from torch._dynamo.testing import CompileCounter
from regard.core.registry import build
from regard.core.stack import Block

model = build(sys.argv[1], vocab_size=11, size="tiny").eval()
tokens, graphs = torch.randint(11, (2, 8)), []
with torch.no_grad():
    plain, _ = model(tokens)
    for block in (part for part in model.modules() if isinstance(part, Block)):
        graphs.append(CompileCounter())
        block.compile(backend=graphs[-1])
    compiled, _ = model(tokens)
assert len(graphs) == 2 and all(graph.op_count > 5 for graph in graphs), graphs
torch.testing.assert_close(compiled, plain)
"""


@pytest.mark.sweep(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt", "lstm", "mamba2"])
def test_a_block_that_is_compiled_has_a_graph(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPILED, name], capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
