"""Training steps: forward, backward, clipping and the optimiser, beside peers at the same sizes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.bench.floor import training_cost
from regard.bench.machine import dtype_of
from regard.bench.race import Row, Work, installed, speed_row
from regard.core import registry
from regard.models.recurrent import PLAIN

CPU = torch.device("cpu")
GPT2 = {"norm": "layer", "position": "learned", "activation": "gelu_tanh", "qk_norm": False, "bias": True, "tied": True}


def gpt(repeats: int, device: torch.device = CPU) -> list[Row]:
    """GPT-2's architecture at two sizes, beside transformers (sdpa) and x-transformers; the modern variant as well."""
    rows = []
    for layers, width, heads, length, batch, aim in ((4, 128, 4, 64, 12, 1.6), (6, 384, 6, 256, 8, 1.2)):
        size = {"d_model": width, "n_layers": layers, "n_heads": heads, "max_length": length}
        tokens = random_tokens(65, batch, length, device)
        name = f"gpt step, {layers} layers of {width}, {length} tokens, batch {batch}"
        plain, modern = built("gpt", 65, device, **size, **GPT2), built("gpt", 65, device, **size)
        count = repeats * (8 if width < 200 else 1)
        rows.append(step_row(f"{name}, beside transformers", plain, tokens, _transformers(tokens, size), count, aim))
        if installed("x_transformers"):
            peer = _x_transformers(tokens, size)
            rows.append(step_row(f"{name}, beside x-transformers", plain, tokens, peer, count, None))
        peer = _transformers(tokens, size)
        rows.append(step_row(f"{name}, modern, beside transformers", modern, tokens, peer, count, None))
    return rows


def lstm(repeats: int, device: torch.device = CPU) -> list[Row]:
    """Two layers of 256, beside torch.nn.LSTM with the same embedding and head."""
    tokens = random_tokens(65, 12, 128, device)
    ours = built("lstm", 65, device, d_model=256, n_layers=2, **PLAIN)
    peer = training_step(_TorchLstm(65, 256, 2), tokens)
    name = "lstm step, 2 layers of 256, 128 tokens, batch 12, beside torch.nn.LSTM"
    return [step_row(name, ours, tokens, peer, 4 * repeats, 0.95)]


def vocabulary(repeats: int, device: torch.device = CPU) -> list[Row]:
    """An LSTM language model with 33,278 words, beside the same with a plain linear + cross-entropy."""
    rows = []
    for width in (128, 200, 256):
        tokens = random_tokens(33278, 20, 35, device)
        ours = built("lstm", 33278, device, d_model=width, n_layers=1, **PLAIN)
        peer = training_step(_TorchLstm(33278, width, 1), tokens)
        name = f"lstm step, 33,278 words, width {width}, beside linear + cross-entropy"
        rows.append(step_row(name, ours, tokens, peer, repeats, 1.5))
    return rows


def scan(repeats: int, device: torch.device = CPU) -> list[Row]:
    """Mamba and Mamba-2 layers, beside mambapy's parallel scan."""
    rows = []
    for length in (256, 1024):
        tokens = random_tokens(65, 4, length, device)
        peer = mambapy(tokens)
        for name, settings, aim in (("mamba", {}, 6.0), ("mamba2", {"d_state": 64, "d_head": 64}, 10.0)):
            ours = built(name, 65, device, d_model=256, n_layers=4, **settings)
            label = f"{name} step, 4 layers of 256, {length} tokens, batch 4, beside mambapy"
            rows.append(step_row(label, ours, tokens, peer, max(2, repeats // 2), aim))
    return rows


def random_tokens(vocab_size: int, rows: int, length: int, device: torch.device) -> Tensor:
    """Rows of inputs and the target of the last of each."""
    return torch.randint(vocab_size, (rows, length + 1), generator=torch.Generator().manual_seed(0)).to(device)


def built(name: str, vocab_size: int, device: torch.device, **settings: Any) -> Any:
    """One of our models."""
    torch.manual_seed(0)
    return registry.build(name, vocab_size=vocab_size, **settings).to(device)


def step_row(name: str, model: Any, tokens: Tensor, peer: Work | None, repeats: int, aim: float | None) -> Row:
    """A race of one of our models, with what its step costs at least."""
    rows, length = len(tokens), tokens.shape[1] - 1
    cost = training_cost(model, rows, length)
    return speed_row(name, rows * length, our_step(model, tokens), peer, repeats, aim, cost=cost)


def our_step(model: Any, tokens: Tensor) -> Work:
    """A training step of one of our models, as the training loop makes it."""

    def loss() -> Tensor:
        targets = tokens[:, 1:]
        return model.head(model(tokens[:, :-1])[0], targets) / targets.numel()

    return optimised(model, loss, tokens.device)


def training_step(model: nn.Module, tokens: Tensor) -> Work:
    """A training step of a peer that maps tokens to logits."""

    def loss() -> Tensor:
        logits = model(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    return optimised(model, loss, tokens.device)


def optimised(model: nn.Module, loss: Callable[[], Tensor], device: torch.device) -> Work:
    """The same optimiser, clipping and number type for every side of a race: float32, off the CPU with products in
    bfloat16."""
    model.to(device).train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=1e-4, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        with torch.autocast(device.type, dtype_of(device), enabled=device.type != "cpu"):
            now = loss()
        now.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()

    return step


class _TorchLstm(nn.Module):
    """The usual few lines: embedding, nn.LSTM, linear."""

    def __init__(self, vocab_size: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, vocab_size)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.lstm(self.embedding(tokens))[0])


def _transformers(tokens: Tensor, size: dict[str, int]) -> Work | None:
    if not installed("transformers"):
        return None
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=65,
        n_positions=size["max_length"],
        n_embd=size["d_model"],
        n_layer=size["n_layers"],
        n_head=size["n_heads"],
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    model: Any = GPT2LMHeadModel(config)
    model.set_attn_implementation("sdpa")

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens: Tensor) -> Tensor:
            return self.model(tokens).logits

    return training_step(Logits(), tokens)


def _x_transformers(tokens: Tensor, size: dict[str, int]) -> Work:
    peer = importlib.import_module("x_transformers")
    layers = peer.Decoder(dim=size["d_model"], depth=size["n_layers"], heads=size["n_heads"], attn_flash=True)
    model = peer.TransformerWrapper(num_tokens=65, max_seq_len=size["max_length"], attn_layers=layers)
    return training_step(model, tokens)


def mambapy(tokens: Tensor) -> Work | None:
    if not installed("mambapy"):
        return None
    peer = importlib.import_module("mambapy.mamba")

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(65, 256)
            self.mamba = peer.Mamba(peer.MambaConfig(d_model=256, n_layers=4))
            self.head = nn.Linear(256, 65, bias=False)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(self.mamba(self.embedding(tokens)))

    return training_step(Model(), tokens)
