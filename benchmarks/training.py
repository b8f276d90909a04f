"""Training steps on one GPU: GPT-2 124M, its modern variant, a small GPT and an LSTM, beside a plain loop in PyTorch.

    python benchmarks/training.py [ROW ...] [--list] [--steps 15] [--json FILE] > benchmarks/results/training-gpu.md

A row is one way to make steps; without names those of the default list are measured, each in turn in this process. What
is measured is the step of the training loop itself: batches made and copied ahead, forward and backward passes, norm,
clipping, AdamW. A row that fails says why and the others go on.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from kernel_times import kernels
from plain_gpt import Peer
from timed_step import Found, operations, timed
from torch import Tensor

from regard.core import registry
from regard.data.batch import Batch
from regard.kernels import cross_entropy
from regard.layers import head
from regard.training.display import Silent
from regard.training.execution import as_chosen, choose, settle
from regard.training.loop import new_session
from regard.training.problem import TrainingProblem
from regard.training.random_streams import seed_step
from regard.training.run_folder import claim
from regard.training.settings import TrainSettings
from regard.training.step import make_step

MODERN = {"norm": "rms", "position": "rotary", "activation": "relu_squared", "qk_norm": True, "bias": False}


@dataclass(frozen=True)
class Ours:
    """A step of the package.

    model, train  settings of the model and of the training.
    attention     the kernel to take, instead of the fastest.
    loss          the function that the head calls, instead of its own.
    logits        how many logits are held at a time.
    """

    name: str
    vocab_size: int
    model: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    attention: str | None = None
    loss: Callable[..., Tensor] | None = None
    logits: int | None = None

    def __call__(self, steps: int) -> Found:
        with tempfile.TemporaryDirectory() as folder, self._changed(), claim(Path(folder) / "run") as run:
            torch.manual_seed(0)
            model = registry.build(self.name, vocab_size=self.vocab_size, **self.model)
            settings = TrainSettings(budget="1000000steps", device="cuda", **({"optimiser": "adamw"} | self.train))
            carries = not model.stack.state_grows
            problem = TrainingProblem(Tokens(self.vocab_size, settings.length), carries=carries)
            session = new_session(model, problem, settings, run, Silent())
            session.display.note = lambda text: print(text, file=sys.stderr)  # type: ignore[method-assign]
            if self.attention is not None:
                session.chosen = replace(choose(session), attention=(self.attention,))
            settle(session)
            with as_chosen(session), closing(session.prefetch):
                model.train()

                def step() -> Tensor:
                    seed_step(0, session.counters.step, session.device)
                    loaded = session.prefetch.take(session.counters.step)
                    session.rate = 1e-4
                    pending = make_step(session, loaded)
                    session.counters.step += 1
                    session.steps_here += 1
                    return pending.loss

                tokens = settings.batch_size * settings.length
                return timed(step, steps, tokens, operations(model, settings.length), lambda: session.choice.told)

    @contextmanager
    def _changed(self) -> Iterator[None]:
        loss, logits = head.linear_cross_entropy, cross_entropy.LOGITS_AT_A_TIME["cuda"]
        head.linear_cross_entropy = self.loss or loss
        cross_entropy.LOGITS_AT_A_TIME["cuda"] = self.logits or logits
        try:
            yield
        finally:
            head.linear_cross_entropy, cross_entropy.LOGITS_AT_A_TIME["cuda"] = loss, logits


@dataclass(frozen=True)
class Tokens:
    """Random tokens, a pure function of the step."""

    vocab_size: int
    length: int

    def batch(self, step: int, batch_size: int) -> Batch:
        drawn = np.random.default_rng(step).integers(self.vocab_size, size=(batch_size, self.length + 1))
        ids = torch.from_numpy(drawn)
        lengths = torch.full((batch_size,), self.length)
        return Batch(ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), lengths, [], fresh=step == 0)


def gpt2(batch_size: int = 64, model: dict[str, Any] | None = None, **more: Any) -> Ours:
    """GPT-2 124M at 1,024 tokens; `more` are settings of training, or what a row may change."""
    own = {key: more.pop(key) for key in ("attention", "loss", "logits") if key in more}
    train = {"batch_size": batch_size, "length": 1024, "graphs": False, "precision": "bfloat16"} | more
    return Ours("gpt", 50257, {"size": "paper", "dropout": 0.0} | (model or {}), train, **own)


def small(**train: Any) -> Ours:
    """The gpt of size base on 65 characters."""
    return Ours("gpt", 65, {"size": "base", "max_length": 256}, {"batch_size": 64, "length": 256} | train)


def lstm(**train: Any) -> Ours:
    model = {"d_model": 1024, "n_layers": 2, "dropout": 0.0}
    return Ours("lstm", 33278, model, {"batch_size": 256, "length": 256, "precision": "bfloat16"} | train)


def long(position: str = "learned", window: int | None = None, **train: Any) -> Ours:
    model = {"size": "paper", "dropout": 0.0, "max_length": 16384, "position": position, "window": window}
    sizes = {"batch_size": 4, "length": 16384, "graphs": False, "precision": "bfloat16"}
    return Ours("gpt", 50257, model, sizes | train)


READABLE = cross_entropy.linear_cross_entropy_readable
YES, NO = {"compile": True}, {"compile": False}
ROWS: dict[str, Callable[[int], Found]] = {
    "peer": Peer(),
    "peer-bf16": Peer(torch.bfloat16),
    "peer-eager": Peer(compile=False),
    "gpt2-eager": gpt2(**NO),
    "gpt2": gpt2(**YES),
    "gpt2-inductor-head": gpt2(loss=READABLE, **YES),
    "gpt2-whole-logits": gpt2(logits=1 << 40, **YES),
    "gpt2-100M-logits": gpt2(logits=100_000_000, **YES),
    "gpt2-flash": gpt2(attention="FLASH_ATTENTION", **YES),
    "gpt2-cudnn": gpt2(attention="CUDNN_ATTENTION", **YES),
    "gpt2-fp8": gpt2(precision="fp8", **YES),
    "gpt2-float16": gpt2(precision="float16", **YES),
    "gpt2-graphs": gpt2(compile=True, graphs=True),
    "gpt2-32": gpt2(32, **YES),
    "gpt2-muon": gpt2(optimiser="muon", **YES),
    "modern-eager": gpt2(model=MODERN, **NO),
    "modern": gpt2(model=MODERN, **YES),
    "modern-fp8": gpt2(model=MODERN, precision="fp8", **YES),
    "modern-32": gpt2(32, model=MODERN, **YES),
    "small-eager": small(graphs=False, **NO),
    "small-graphs": small(graphs=True, **NO),
    "small-compiled": small(graphs=False, **YES),
    "small": small(graphs=True, **YES),
    "lstm-eager": lstm(graphs=False, **NO),
    "lstm": lstm(graphs=True, **NO),
    "lstm-compiled": lstm(graphs=False, **YES),
    "long": long(**YES),
    "long-window": long("learned", 1024, **YES),
    "long-alibi": long("alibi", **YES),
}
LEFT_OUT = {
    *(
        "peer-eager",
        "gpt2-whole-logits",
        "gpt2-100M-logits",
        "gpt2-flash",
        "gpt2-cudnn",
        "gpt2-float16",
        "gpt2-graphs",
        "gpt2-32",
    ),
    *("gpt2-muon", "modern-fp8", "modern-32", "lstm-compiled", "long", "long-window", "long-alibi"),
}
DEFAULT = [name for name in ROWS if name not in LEFT_OUT]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="of --list, or kernels")
    parser.add_argument("--list", action="store_true", help="name the rows")
    parser.add_argument("--all", action="store_true", help="every row")
    parser.add_argument("--steps", type=int, default=15, help="timed steps of a row")
    parser.add_argument("--json", type=Path, help="a file for a JSON object a row")
    options = parser.parse_args()
    unknown = [name for name in options.rows if name not in (*ROWS, "kernels")]
    if unknown:
        parser.error(f"no row {', '.join(unknown)}; see --list")
    if options.list:
        print("\n".join(f"{name}{'' if name in DEFAULT else '  (named only)'}" for name in ROWS))
        return
    if not torch.cuda.is_available():
        parser.error("there is no CUDA device here")
    device = torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, {options.steps} timed steps a row.\n")
    print("| row | tokens/s | GiB | first step, s | of 989 TFLOP/s | loss | how |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in options.rows or (ROWS if options.all else DEFAULT):
        if name != "kernels":
            report(name, options.steps, options.json)
    if "kernels" in options.rows or not options.rows:
        try:
            kernels()
        except Exception:
            traceback.print_exc()


def report(name: str, steps: int, path: Path | None) -> None:
    """Measure one row and print it; whatever it leaves behind is cleared away."""
    start, facts = time.perf_counter(), {"row": name}
    try:
        found = ROWS[name](steps)
        numbers = f"{found.tokens_per_second:,.0f} | {found.gigabytes:.1f} | {found.first_seconds:.1f}"
        loss = f"{found.loss:.3f}" if math.isfinite(found.loss) else "not finite"
        print(f"| {name} | {numbers} | {found.share:.1%} | {loss} | {found.told} |", flush=True)
        facts |= vars(found)
    except Exception as error:
        told = " ".join(str(error).split())[:200].replace("|", "/")
        print(f"| {name} | failed: {type(error).__name__}: {told} | | | | | |", flush=True)
        traceback.print_exc()
        facts |= {"error": f"{type(error).__name__}: {error}"}
    facts["seconds"] = round(time.perf_counter() - start, 1)
    print(f"{name}: {facts['seconds']} s", file=sys.stderr, flush=True)
    if path is not None:
        with path.open("a") as file:
            print(json.dumps(facts), file=file)
    torch.compiler.reset()
    gc.collect()
    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
