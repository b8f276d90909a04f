"""Generation: tokens a second with a preallocated state, beside transformers' cached generate."""

from __future__ import annotations

import time
from typing import Any

import torch

from regard.bench.floor import generation_cost, token_cost
from regard.bench.machine import dtype_of, finish
from regard.bench.race import Row, Work, installed, speed_row
from regard.bench.step import CPU, GPT2, built
from regard.decoding.generate import Limits
from regard.decoding.generate import generate as decode
from regard.decoding.logits_processing import GREEDY
from regard.layers.int8 import in_int8

PROMPT = 16
TOKENS = {"cpu": 24, "cuda": 256}  # that are written; a GPU needs more of them to be timed
# Tokens a second to be reached on two cores, by batch: in float32 and with weights of 8 bits.
FIGURES = {1: (36.0, 50.0), 16: (160.0, 290.0)}


def generate(repeats: int, device: torch.device = CPU) -> list[Row]:
    """GPT-2 small's size with random weights, greedy, from a prompt of 16 tokens; on a CPU in 8 bits too."""
    model, count = gpt2(device), TOKENS[device.type]
    narrow = in_int8(model).model if device.type == "cpu" else None
    rows, times = [], max(2, repeats // 2)
    for batch, (figure, figure_int8) in FIGURES.items():
        prompts = random_prompts(batch)
        size = f"GPT-2 small's size, batch {batch}"
        ours, peer = our_texts(model, prompts, count), _transformers(prompts.to(device), count)
        cost = generation_cost(model, batch, PROMPT, count)
        units = batch * count
        rows.append(speed_row(f"generate, {size}, beside transformers", units, ours, peer, times, None, cost=cost))
        if narrow is None:
            continue
        rows.append(rows[-1].beside(figure))
        name, ours_int8 = f"generate int8, {size}", our_texts(narrow, prompts, count)
        cost = generation_cost(model, batch, PROMPT, count, weight=1)
        rows.append(speed_row(f"{name}, beside transformers", units, ours_int8, peer, times, None, cost=cost))
        rows.append(rows[-1].beside(figure_int8))
        rows.append(speed_row(f"{name}, beside float32", units, ours_int8, ours, times, None, cost=cost))
    return rows


def gpt2(device: torch.device) -> Any:
    """Our model of GPT-2 small's size."""
    settings = {"d_model": 768, "n_layers": 12, "n_heads": 12, "max_length": 1024}
    return built("gpt", 50257, device, **settings, **GPT2).to(dtype_of(device)).eval()


def random_prompts(batch: int) -> torch.Tensor:
    return torch.randint(50257, (batch, PROMPT), generator=torch.Generator().manual_seed(0))


def our_texts(model: Any, prompts: torch.Tensor, count: int) -> Work:
    """Prompts continued side by side."""
    return lambda: decode(model, list(prompts), limits=Limits(count), settings=GREEDY)


def constant_cost(repeats: int, device: torch.device = CPU) -> list[Row]:
    """Seconds a token of recurrent models after 64 and after 2,048 tokens: the ratio should be 1."""
    rows = []
    for name in ("lstm", "s4d", "mamba", "mamba2"):
        model = built(name, 65, device).to(dtype_of(device)).eval()
        early, late = (_seconds_a_step(model, seen, 20 * repeats, device) for seen in (64, 2048))
        cost = token_cost(model, 1, 2048)
        label = f"{name} step after 64 and after 2,048 tokens"
        counted = (cost.operations, cost.bytes)
        rows.append(Row(label, 1 / late, 1 / early, early / late, 0.8, "tokens/s", "", late, *counted))
    return rows


@torch.no_grad()
def _seconds_a_step(model: Any, seen: int, steps: int, device: torch.device) -> float:
    _, state = model(torch.zeros(1, seen, dtype=torch.long, device=device), model.init_state(1))
    token = torch.zeros(1, 1, dtype=torch.long, device=device)
    best = float("inf")
    for _ in range(steps):
        finish()
        start = time.perf_counter()
        _, state = model(token, state)
        finish()
        best = min(best, time.perf_counter() - start)
    return best


def _transformers(prompts: torch.Tensor, count: int) -> Work | None:
    if not installed("transformers"):
        return None
    from transformers import GPT2Config, GPT2LMHeadModel

    model: Any = GPT2LMHeadModel(GPT2Config())
    model.to(prompts.device, dtype_of(prompts.device)).eval()
    model.set_attn_implementation("sdpa")
    mask = torch.ones_like(prompts)

    def work() -> None:
        model.generate(
            prompts, attention_mask=mask, max_new_tokens=count, min_new_tokens=count, do_sample=False, pad_token_id=0
        )

    return work
