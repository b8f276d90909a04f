"""Time to a loss on one GPU: a plain loop with nanoGPT's settings for GPT-2, and a recipe of regard in a quarter of it.

    python benchmarks/time_to_loss.py peer TRAIN VALID --seconds 480
    python benchmarks/time_to_loss.py ours TRAIN VALID --seconds 120

Both read the same tokens (BPE of 32,768, prepared once into --cache) and are judged by one function: the mean loss a
token over the validation text in windows of 1,024. The peer's clock runs while it trains, without compilation and
without evaluation; ours is the budget of `regard train`, in which both are.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from language import number
from plain_gpt import PlainGpt
from torch import Tensor, nn

import regard
from regard.data.corpus import Corpus, prepare

LENGTH = 1024
VOCABULARY = 32768
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROWS, PASSES = 60, 8  # 491,520 tokens a step
RATE, LOWEST, WARMUP = 6e-4, 6e-5, 0.1
RECIPE = {
    "d_model": 512,
    "n_layers": 8,
    "n_heads": 4,
    "max_length": LENGTH,
    "length": LENGTH,
    "batch_size": 64,
    "optimiser": "muon",
    "lr": 3e-3,
    "min_lr": 0.0,
    "schedule": "linear",
    "warmup": 0.03,
    "compile": True,
}


def windows(ids: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Rows (count, LENGTH + 1) from anywhere in a text."""
    begin = torch.randint(len(ids) - LENGTH - 1, (count, 1), generator=generator, device=ids.device)
    return ids[begin + torch.arange(LENGTH + 1, device=ids.device)].long()


@torch.no_grad()
def judged(loss_of: Callable[[Tensor, Tensor], Tensor], ids: Tensor) -> float:
    """Mean loss a token over all whole windows of a text; `loss_of` gives that of a batch."""
    count = (len(ids) - 1) // LENGTH
    rows = torch.stack([ids[i * LENGTH : i * LENGTH + LENGTH + 1] for i in range(count)]).long()
    # Batches of one size: a compiled function is compiled for it once.
    found = [float(loss_of(part[:, :-1], part[:, 1:])) for part in rows.split(32) if len(part) == 32]
    return sum(found) / len(found)


def peer(corpus: Corpus, seconds: float) -> None:
    """GPT-2 124M as nanoGPT trains it: AdamW, batches of half a million tokens, warm-up and cosine over the time."""
    torch.manual_seed(0)
    train, valid = (torch.from_numpy(np.array(part.ids, np.int32)).to(DEVICE) for part in (corpus.train, corpus.valid))
    model = PlainGpt(VOCABULARY, 768, 12, 12, LENGTH).to(DEVICE)
    called = torch.compile(model)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95), fused=True)
    generator = torch.Generator(DEVICE).manual_seed(0)

    def loss_of(tokens: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast(DEVICE, torch.bfloat16):
            return called(tokens, targets)

    def step(rate: float) -> None:
        for _ in range(PASSES):
            batch = windows(train, ROWS, generator)
            (loss_of(batch[:, :-1], batch[:, 1:]) / PASSES).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    step(0.0)
    judged(loss_of, valid)
    spent, steps, told = 0.0, 0, 0.0
    while spent < seconds:
        torch.cuda.synchronize()
        start = time.perf_counter()
        progress = spent / seconds
        q = max(0.0, (progress - WARMUP) / (1 - WARMUP))
        step(min(1.0, (progress + 1e-3) / WARMUP) * (LOWEST + (RATE - LOWEST) * (1 + math.cos(math.pi * q)) / 2))
        torch.cuda.synchronize()
        spent += time.perf_counter() - start
        steps += 1
        if spent - told >= seconds / 8 or spent >= seconds:
            told = spent
            tokens = steps * PASSES * ROWS * LENGTH
            print(f"peer: {spent:.0f} s, {steps} steps, {tokens / 1e6:.0f}M tokens, {judged(loss_of, valid):.4f}")


def ours(corpus: Corpus, arguments: argparse.Namespace) -> None:
    """What `regard train` makes of the recipe, with its curve."""
    settings = RECIPE | {key: number(value) for key, value in (pair.split("=") for pair in arguments.set)}
    with TemporaryDirectory() as folder:
        start = time.perf_counter()
        run = regard.train(
            "gpt",
            arguments.train,
            budget=f"{arguments.seconds:g}s",
            out=Path(folder) / "run",
            device=DEVICE,
            quiet=True,
            valid=arguments.valid,
            tokens="bpe",
            vocab_size=VOCABULARY,
            cache=arguments.cache,
            **settings,
        )
        spent = time.perf_counter() - start
        for line in (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines():
            if "valid" in line:
                print(line[:200])
        model = run.model.to(DEVICE).eval()
    valid = torch.from_numpy(np.array(corpus.valid.ids, np.int32)).to(DEVICE)

    def loss_of(tokens: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast(DEVICE, torch.bfloat16):
            vectors, _ = model(tokens)
            return model.head(vectors, targets) / targets.numel()

    parameters = sum(p.numel() for p in model.parameters())
    print(f"ours: {parameters:,} parameters, {spent:.0f} s in all, {judged(loss_of, valid):.4f}, {settings}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("who", choices=("peer", "ours"))
    parser.add_argument("train")
    parser.add_argument("valid")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--cache", default="books")
    parser.add_argument("--set", action="append", default=[], help="key=value of the recipe")
    arguments = parser.parse_args()
    corpus = prepare(arguments.train, valid=arguments.valid, tokens="bpe", vocab_size=VOCABULARY, cache=arguments.cache)
    if arguments.who == "peer":
        peer(corpus, arguments.seconds)
    else:
        ours(corpus, arguments)


if __name__ == "__main__":
    main()
