"""Peak memory of a training step, each in a process of its own so that nothing else is counted."""

from __future__ import annotations

import subprocess
import sys

from regard.bench.race import Row, installed, ratio_of
from regard.errors import ResourceError

_PROGRAM = """
import re, sys
import torch
from regard.bench import step
length = int(sys.argv[2])
tokens = torch.zeros(int(sys.argv[3]), length + 1, dtype=torch.long)
# Not getrusage: what it calls this process's peak is its parent's until it has grown beyond that.
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
work = {
    "attention": lambda: step.our_step("gpt", tokens, 65, d_model=128, n_layers=2, n_heads=4, max_length=length),
    "mamba": lambda: step.our_step("mamba", tokens, 65, d_model=256, n_layers=4),
    "mamba2": lambda: step.our_step("mamba2", tokens, 65, d_model=256, n_layers=4, d_state=64, d_head=64),
    "mambapy": lambda: step._mambapy(tokens),
}[sys.argv[1]]()
warm = torch.randn(256, 256) @ torch.randn(256, 256)
before = peak()
work()
print(peak() - before)
"""


def peak_megabytes(what: str, length: int, batch: int) -> float:
    """What one training step adds to the resident memory of a fresh process."""
    command = [sys.executable, "-c", _PROGRAM, what, str(length), str(batch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        raise ResourceError(f"the memory of {what} at {length} tokens was not measured: {reason}")
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
