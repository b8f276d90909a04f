"""Peak memory of a training step, each in a process of its own so that nothing else is counted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import torch

from regard.bench.race import Row, Work, installed, ratio_of
from regard.errors import ResourceError

_PROGRAM = """
import importlib, re, sys
import regard
import torch
module, maker, *arguments = sys.argv[1:]
# Not getrusage: what it calls this process's peak is its parent's until it has grown beyond that.
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
work = getattr(importlib.import_module(module), maker)(*arguments)
warm = torch.randn(256, 256) @ torch.randn(256, 256)
before = peak()
work()
print(peak() - before)
"""


def step_of(what: str, length: str, batch: str) -> Work | None:
    """A training step by name, as a fresh process is asked for it."""
    from regard.bench import step

    tokens = torch.zeros(int(batch), int(length) + 1, dtype=torch.long)
    sizes = {
        "attention": ("gpt", {"d_model": 128, "n_layers": 2, "n_heads": 4, "max_length": int(length)}),
        "mamba": ("mamba", {"d_model": 256, "n_layers": 4}),
        "mamba2": ("mamba2", {"d_model": 256, "n_layers": 4, "d_state": 64, "d_head": 64}),
    }
    if what == "mambapy":
        return step.mambapy(tokens)
    name, settings = sizes[what]
    return step.our_step(step.built(name, 65, step.CPU, **settings), tokens)


def peak_megabytes(what: str, length: int, batch: int) -> float:
    """What one training step adds to the resident memory of a fresh process."""
    return peak_of(f"{what} at {length} tokens", step_of, what, str(length), str(batch))


def peak_of(label: str, maker: Callable[..., Work | None], *arguments: str) -> float:
    """What the work that `maker` prepares adds to the resident memory of a fresh process, in megabytes."""
    command = [sys.executable, "-c", _PROGRAM, maker.__module__, maker.__name__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        raise ResourceError(f"the memory of {label} was not measured: {reason}")
    return float(done.stdout.split()[-1])


def attention(_repeats: int) -> list[Row]:
    """Twice the length should take twice the memory, not four times."""
    half, whole = (peak_megabytes("attention", length, 1) for length in (2048, 4096))
    name = "gpt step, memory at 4,096 against 2,048 tokens (linear: 0.5)"
    return [Row(name, whole, half, ratio_of(half, whole), 0.45, "MB")]


def scan(_repeats: int) -> list[Row]:
    """Memory of a step of Mamba and Mamba-2 beside mambapy's parallel scan."""
    rows = []
    for length in (256, 1024):
        peer = peak_megabytes("mambapy", length, 4) if installed("mambapy") else None
        for name in ("mamba", "mamba2"):
            ours = peak_megabytes(name, length, 4)
            label = f"{name} step, memory at {length} tokens, beside mambapy"
            rows.append(Row(label, ours, peer, ratio_of(peer, ours), 10.0, "MB"))
    return rows
