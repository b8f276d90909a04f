"""Generation: tokens a second with a preallocated state, beside transformers' cached generate."""

from __future__ import annotations

import time
from typing import Any

import torch

from regard.bench.race import Row, Work, installed, speed_row
from regard.bench.step import GPT2
from regard.core import registry
from regard.decoding.generate import Limits
from regard.decoding.generate import generate as decode
from regard.decoding.logits_processing import GREEDY
from regard.layers.int8 import in_int8

# Times as fast as transformers, for texts side by side: with float32 and with weights of 8 bits.
AIMS = {1: (1.6, 2.3), 16: (1.7, 2.2)}


def generate(repeats: int) -> list[Row]:
    """GPT-2 small's size with random weights, greedy, from a prompt of 16 tokens; in float32 and in 8 bits."""
    torch.manual_seed(0)
    settings = {"d_model": 768, "n_layers": 12, "n_heads": 12, "max_length": 1024}
    model = registry.build("gpt", vocab_size=50257, **settings, **GPT2).eval()
    narrow = in_int8(model).model
    rows, count, times = [], 24, max(2, repeats // 2)
    for batch, (aim, aim_int8) in AIMS.items():
        prompts = torch.randint(50257, (batch, 16), generator=torch.Generator().manual_seed(0))
        peer = _transformers(prompts, count)
        ours, ours_int8 = (_generation(one, prompts, count) for one in (model, narrow))
        size = f"GPT-2 small's size, batch {batch}"
        units = batch * count
        rows.append(speed_row(f"generate, {size}, beside transformers", units, ours, peer, times, aim))
        rows.append(speed_row(f"generate int8, {size}, beside transformers", units, ours_int8, peer, times, aim_int8))
        rows.append(speed_row(f"generate int8, {size}, beside float32", units, ours_int8, ours, times, None))
    return rows


def _generation(model: Any, prompts: torch.Tensor, count: int) -> Work:
    return lambda: decode(model, list(prompts), limits=Limits(count), settings=GREEDY)


def constant_cost(repeats: int) -> list[Row]:
    """Seconds a token of recurrent models after 64 and after 2,048 tokens: the ratio should be 1."""
    rows = []
    for name in ("lstm", "s4d", "mamba", "mamba2"):
        model = registry.build(name, vocab_size=65).eval()
        early, late = (_seconds_a_step(model, seen, 20 * repeats) for seen in (64, 2048))
        rows.append(
            Row(f"{name} step after 64 and after 2,048 tokens", 1 / late, 1 / early, early / late, 0.8, "tokens/s")
        )
    return rows


@torch.no_grad()
def _seconds_a_step(model: torch.nn.Module, seen: int, steps: int) -> float:
    _, state = model(torch.zeros(1, seen, dtype=torch.long), model.init_state(1))  # pyright: ignore
    token = torch.zeros(1, 1, dtype=torch.long)
    best = float("inf")
    for _ in range(steps):
        start = time.perf_counter()
        _, state = model(token, state)
        best = min(best, time.perf_counter() - start)
    return best


def _transformers(prompts: torch.Tensor, count: int) -> Work | None:
    if not installed("transformers"):
        return None
    from transformers import GPT2Config, GPT2LMHeadModel

    model: Any = GPT2LMHeadModel(GPT2Config()).eval()
    model.set_attn_implementation("sdpa")
    mask = torch.ones_like(prompts)

    def work() -> None:
        model.generate(
            prompts, attention_mask=mask, max_new_tokens=count, min_new_tokens=count, do_sample=False, pad_token_id=0
        )

    return work
