"""Tokens a second and bytes of one training by one process, by two that hold all of it and by two that share it out.

    python benchmarks/ranks.py [--rounds 3] [--steps 8] [--model gpt] [--settings d_model=256,n_layers=4]
    python benchmarks/ranks.py --device cuda --steps 20 --rows 32 --length 1024 \\
        --settings d_model=768,n_layers=12,n_heads=12,max_length=1024

On a GPU there is one rank of each kind, in bfloat16: what the ways of many cost where there is nobody to wait for.
Every process has one thread, all read the rows of one batch of the same size. The three take turns, and the best round
of each stands: what else runs on the machine only takes away. "Work" is the processor seconds of a step, of all its
processes together, in those of one process: on a busy machine it tells more than the clock; what it lacks of 1 is what
working together costs, waiting aside. Bytes are those of weights, gradients and moments.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

VOCABULARY, WARM_UPS = 4096, 2
ALONE = {"one process": ("none", 1), "one rank, ddp": ("ddp", 1), "one rank, fsdp": ("fsdp", 1)}
WAYS = {"cpu": {**ALONE, "two, ddp": ("ddp", 2), "two, fsdp": ("fsdp", 2)}, "cuda": ALONE}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--model", default="gpt")
    parser.add_argument("--settings", default="d_model=256,n_layers=4")
    parser.add_argument("--rows", type=int, default=16, help="of a batch")
    parser.add_argument("--length", type=int, default=128, help="tokens of a row")
    parser.add_argument("--device", choices=list(WAYS), default="cpu")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measured(options)))
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS[options.device]}
    for _ in range(options.rounds):
        for name, (way, size) in WAYS[options.device].items():
            found[name].append(together(way, size))
    best = {name: max(rounds, key=lambda one: one["speed"]) for name, rounds in found.items()}
    least = {name: min(one["work"] for one in rounds) for name, rounds in found.items()}
    alone = best["one process"]
    size = f"{alone['parameters'] / 1e6:.1f}M parameters, {options.rows} rows of {options.length}"
    print(f"{options.model} {options.settings}: {size}\n")
    print("| | tokens a second | times one process | work | MB a process | of one process |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, one in best.items():
        times, share = one["speed"] / alone["speed"], one["bytes"] / alone["bytes"]
        work = least[name] / least["one process"]
        print(f"| {name} | {one['speed']:,.0f} | {times:.2f} | {work:.2f} | {one['bytes'] / 1e6:.1f} | {share:.2f} |")


def together(way: str, size: int) -> dict[str, float]:
    """What processes of one kind came to; the first of them tells."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children: list[Any] = []
    for rank in range(size):
        said = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
        if way != "none":
            said |= {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        words = [sys.executable, __file__, *sys.argv[1:], "--way", way]
        children.append(subprocess.Popen(words, env=os.environ | said, stdout=subprocess.PIPE, text=True))
    told = [child.communicate(timeout=300)[0] for child in children]
    if any(child.returncode for child in children):
        sys.exit(f"{way}: a process failed")
    answers = [json.loads(one) for one in told]
    return answers[0] | {"work": sum(one["work"] for one in answers)}


def measured(options: argparse.Namespace) -> dict[str, float]:
    """Speed and bytes of one process of a kind."""
    import torch

    from regard.core.registry import build
    from regard.data.batch import Batch
    from regard.training.display import Silent
    from regard.training.execution import Choice
    from regard.training.loop import new_session
    from regard.training.parallel.group import joined
    from regard.training.problem import TrainingProblem
    from regard.training.run_folder import RunFolder
    from regard.training.settings import TrainSettings
    from regard.training.step import make_step, update

    rows, length = options.rows, options.length

    class Random:
        def batch(self, step: int, batch_size: int) -> Batch:
            ids = torch.randint(VOCABULARY, (batch_size, length + 1), generator=torch.Generator().manual_seed(step))
            return Batch(ids[:, :-1].clone(), ids[:, 1:].clone(), torch.full((batch_size,), length), [])

    torch.set_num_threads(1)
    torch.manual_seed(0)
    device, number = torch.device(options.device), "bfloat16" if options.device == "cuda" else "float32"
    settings = TrainSettings(
        batch_size=rows, length=length, parallel=options.way, device=options.device, precision=number, optimiser="adamw"
    )
    given = {key: int(value) for key, value in (one.split("=") for one in options.settings.split(","))}
    with joined(device) as ranks, tempfile.TemporaryDirectory() as folder:
        ranks = ranks.as_set(settings, 0, 1)
        model: Any = build(options.model, vocab_size=VOCABULARY, **given)
        session = new_session(model, TrainingProblem(Random()), settings, RunFolder(Path(folder)), Silent(), ranks)
        session.chosen = Choice(number)
        session.fast_step, session.rate = ranks.wrapped(session.training_step), 1e-4
        held = sum(ranks.local(one).nbytes for one in session.optimiser.tensors().values())
        held += 2 * sum(ranks.local(one).nbytes for one in session.optimiser.parameters)  # weights and gradients
        parameters = sum(one.numel() for one in session.optimiser.parameters)
        for step in range(WARM_UPS):
            make_step(session, session.prefetch.take(step))
        settled(device)
        ranks.shared(None)
        begin, worked = time.perf_counter(), time.process_time()
        for step in range(options.steps):
            loaded = session.prefetch.take(WARM_UPS + step)
            update(session, loaded.batches, loaded.tokens, 1e-4, loaded)
        settled(device)
        seconds, worked = time.perf_counter() - begin, time.process_time() - worked
    speed, work = options.steps * rows * length / seconds, worked / options.steps
    return {"speed": speed, "work": work, "bytes": held, "parameters": parameters}


def settled(device: Any) -> None:
    """What a GPU was asked for is done."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
