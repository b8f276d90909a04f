"""Translators of other packages at a given size: torch.nn.Transformer in a hand-written loop, transformers' Marian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.bench.machine import dtype_of
from regard.bench.race import Work
from regard.bench.step import optimised
from regard.data.batch import NOT_COUNTED, Batch

SMOOTHING = 0.1
N_HEADS = 4


@dataclass(frozen=True)
class Size:
    """A Transformer with equally many layers on both sides, all weights tied to one table."""

    n_layers: int
    d_model: int
    vocab_size: int = 8000
    max_length: int = 512

    def __str__(self) -> str:
        return f"{self.n_layers}+{self.n_layers} layers of {self.d_model}"


class Handwritten(nn.Module):
    """What one writes around torch.nn.Transformer: tables, sinusoids, masks and a head."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.scale = math.sqrt(size.d_model)
        self.table = nn.Embedding(size.vocab_size, size.d_model)
        nn.init.normal_(self.table.weight, std=size.d_model**-0.5)
        angles = torch.arange(size.max_length)[:, None] / 10000 ** (torch.arange(0, size.d_model, 2) / size.d_model)
        self.register_buffer("places", torch.cat([angles.sin(), angles.cos()], -1), persistent=False)
        self.layers = nn.Transformer(
            size.d_model, N_HEADS, size.n_layers, size.n_layers, 4 * size.d_model, dropout=0.0, batch_first=True
        )

    def forward(self, source: Tensor, padding: Tensor, tokens: Tensor) -> Tensor:
        causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device).triu(1)
        h = self.layers(
            self._placed(source),
            self._placed(tokens),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return h @ self.table.weight.T

    def _placed(self, tokens: Tensor) -> Tensor:
        places: Any = self.places
        return self.table(tokens) * self.scale + places[: tokens.shape[1]]


def handwritten_step(size: Size, batch: Batch) -> Work:
    """A training step around torch.nn.Transformer."""
    model = Handwritten(size)
    source, real = _source(batch)

    def loss() -> Tensor:
        return _smoothed(model(source, ~real, batch.tokens), batch)

    return optimised(model, loss, source.device)


def marian(size: Size) -> Any:
    """MarianMT with random weights."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=size.vocab_size,
        d_model=size.d_model,
        encoder_layers=size.n_layers,
        decoder_layers=size.n_layers,
        encoder_attention_heads=N_HEADS,
        decoder_attention_heads=N_HEADS,
        encoder_ffn_dim=4 * size.d_model,
        decoder_ffn_dim=4 * size.d_model,
        max_position_embeddings=size.max_length,
        activation_function="relu",
        scale_embedding=True,
        dropout=0.0,
        pad_token_id=size.vocab_size - 1,
        decoder_start_token_id=size.vocab_size - 1,
        forced_eos_token_id=None,
    )
    model: Any = MarianMTModel(config)
    model.set_attn_implementation("sdpa")
    return model


def marian_step(size: Size, batch: Batch) -> Work:
    """A training step of MarianMT."""
    model = marian(size)
    source, real = _source(batch)

    def loss() -> Tensor:
        out = model(input_ids=source, attention_mask=real.long(), decoder_input_ids=batch.tokens, use_cache=False)
        return _smoothed(out.logits, batch)

    return optimised(model, loss, source.device)


def marian_beam(size: Size, batch: Batch, width: int, steps: int) -> Work:
    """Beam search of MarianMT over the sources of a batch, without an end so that every step is made."""
    source, real = _source(batch)
    model = marian(size).to(source.device, dtype_of(source.device)).eval()
    model.generation_config.eos_token_id = None

    def work() -> object:
        return model.generate(
            source,
            attention_mask=real.long(),
            num_beams=width,
            max_new_tokens=steps,
            max_length=None,
            do_sample=False,
            early_stopping=False,
        )

    return work


def _source(batch: Batch) -> tuple[Tensor, Tensor]:
    """Ids, and True where they are real."""
    assert batch.source is not None
    assert batch.source_lengths is not None
    source, lengths = batch.source, batch.source_lengths.to(batch.source.device)
    return source, torch.arange(source.shape[1], device=source.device) < lengths[:, None]


def _smoothed(logits: Tensor, batch: Batch) -> Tensor:
    return F.cross_entropy(
        logits.flatten(0, 1), batch.targets.flatten(), ignore_index=NOT_COUNTED, label_smoothing=SMOOTHING
    )
