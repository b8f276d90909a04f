"""GPT-2 and its training as one would write them in an hour of plain PyTorch: the peer of benchmarks/training.py."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from timed_step import Found, operations, timed
from torch import Tensor, nn


class PlainAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.input_to_heads = nn.Linear(width, 3 * width)
        self.heads_to_output = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in self.input_to_heads(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.heads_to_output(y.transpose(1, 2).flatten(2))


class PlainBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = PlainAttention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


class PlainGpt(nn.Module):
    def __init__(self, vocab_size: int, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(PlainBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size, bias=False)
        for part in self.modules():
            if isinstance(part, (nn.Linear, nn.Embedding)):
                nn.init.normal_(part.weight, std=0.02)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


@dataclass(frozen=True)
class Peer:
    """What one would write without the package: GPT-2 as a plain module, its vocabulary padded, and a loop.

    weights  their number type: float32 with autocast, or bfloat16 without.
    """

    weights: torch.dtype = torch.float32
    compile: bool = True
    batch_size: int = 64

    def __call__(self, steps: int) -> Found:
        torch.manual_seed(0)
        model = PlainGpt(50304, 768, 12, 12, 1024).to("cuda", self.weights)
        cost = operations(model, 1024)
        called = torch.compile(model) if self.compile else model
        decayed = [p for p in model.parameters() if p.dim() == 2]
        others = [p for p in model.parameters() if p.dim() != 2]
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        optimiser = torch.optim.AdamW(groups, lr=1e-4, fused=True)
        ids = torch.randint(50257, (8, self.batch_size, 1025)).pin_memory()
        number = 0

        def step() -> Tensor:
            nonlocal number
            number += 1
            batch = ids[number % 8].to("cuda", non_blocking=True)
            with torch.autocast("cuda", torch.bfloat16, enabled=self.weights == torch.float32):
                loss = called(batch[:, :-1], batch[:, 1:])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            return loss.detach()

        words = f"plain loop, {str(self.weights).removeprefix('torch.')} weights{', compiled' if self.compile else ''}"
        return timed(step, steps, self.batch_size * 1024, cost, lambda: words)
