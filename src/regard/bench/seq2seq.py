"""Encoders and decoders: training, beam search, cost of a step as the source grows, and memory.

Every side has the same sizes, batch, optimiser and label smoothing, no dropout, and random weights. Beams never meet an
end, so that both sides make the same number of steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.bench.floor import Cost, beam_cost, pair_training_cost, source_steps_cost
from regard.bench.machine import dtype_of
from regard.bench.memory import peak_of
from regard.bench.race import Row, Work, installed, ratio_of, speed_row
from regard.bench.step import CPU, optimised
from regard.bench.translator import N_HEADS, SMOOTHING, Size, handwritten_step, marian_beam, marian_step
from regard.core import registry
from regard.core.context import EMPTY, Context
from regard.core.state import State
from regard.data.batch import Batch
from regard.data.ragged import ragged
from regard.data.rows import PairRows
from regard.decoding.beam import beam_search
from regard.models.encoder_decoder import EncoderDecoder
from regard.training.losses import model_loss

SIZES = (Size(3, 128), Size(6, 256))
AIMS = (1.6, 1.3)  # of training beside MarianMT
# What is translated in earnest, how many sources at once, and sentences a second to be reached on two cores.
TRANSLATOR, MANY, FIGURE = Size(3, 256), 64, 68.0
RECURRENT = ("bahdanau", "seq2seq")
PAIRS, SOURCES, WIDTH, STEPS = 64, 16, 5, 24
# Lengths of the source, and steps after each that are timed together: one is too short to be timed alone.
GROWING, TURNS = (16, 64, 256), 10


def seq2seq(repeats: int, device: torch.device = CPU) -> list[Row]:
    """Every row but those of `translation`, in one run; memory is that of the host."""
    return [*training(repeats, device), *decoding(repeats, device), *growing(repeats, device), *memory()]


def training(repeats: int, device: torch.device) -> list[Row]:
    """Target tokens a second."""
    batch = pairs(PAIRS).to(device)
    n_tokens = batch.n_counted
    rows = []
    for size, aim in zip(SIZES, AIMS, strict=True):
        count = repeats * (4 if size.d_model < 200 else 2)
        model = built("transformer", size, device)
        ours, cost = our_step(model, batch), step_cost(model, batch)
        name = f"transformer step, {size}, {PAIRS} pairs"
        peer = handwritten_step(size, batch)
        rows.append(speed_row(f"{name}, beside torch.nn.Transformer", n_tokens, ours, peer, count, None, cost=cost))
        peer = marian_step(size, batch) if installed("transformers") else None
        rows.append(speed_row(f"{name}, beside MarianMT", n_tokens, ours, peer, count, aim, cost=cost))
    for name in RECURRENT:
        model = built(name, SIZES[1], device)
        work, cost = our_step(model, batch), step_cost(model, batch)
        label = f"{name} step, width 256, {PAIRS} pairs"
        rows.append(speed_row(label, n_tokens, work, None, repeats, None, cost=cost))
    return rows


def decoding(repeats: int, device: torch.device) -> list[Row]:
    """Sentences a second with a beam of 5."""
    batch = pairs(SOURCES).to(device)
    rows = [beam_row(size, batch, repeats) for size in SIZES]
    for name in RECURRENT:
        label = f"{name} beam {WIDTH}, width 256, {SOURCES} sources, {STEPS} steps"
        model = decoder_of(name, SIZES[1], device)
        work, cost = our_beam(model, batch), searched_cost(model, batch)
        rows.append(speed_row(label, SOURCES, work, None, repeats, None, "sentences/s", cost))
    return rows


def translation(repeats: int, device: torch.device = CPU) -> list[Row]:
    """Sentences a second of a translator, beside MarianMT and beside the figure to be reached."""
    row = beam_row(TRANSLATOR, pairs(MANY).to(device), max(2, repeats // 2))
    return [row, row.beside(FIGURE)] if device.type == "cpu" else [row]


def beam_row(size: Size, batch: Batch, repeats: int) -> Row:
    """Beam search of the transformer beside MarianMT's."""
    count = len(batch.tokens)
    model = decoder_of("transformer", size, batch.tokens.device)
    peer = marian_beam(size, batch, WIDTH, STEPS) if installed("transformers") else None
    name = f"transformer beam {WIDTH}, {size}, {count} sources, {STEPS} steps, beside MarianMT"
    cost = searched_cost(model, batch)
    return speed_row(name, count, our_beam(model, batch), peer, repeats, None, "sentences/s", cost)


def growing(repeats: int, device: torch.device) -> list[Row]:
    """Steps a second beside those after the shortest source: 1 where a step does not feel how long the source is.

    The last rows are the transformer beside the same steps with keys and values of the memory projected at each of
    them, which is what carrying them saves.
    """
    rows = []
    for name in ("seq2seq", "bahdanau", "transformer"):
        for length in GROWING[1:]:
            model = decoder_of(name, SIZES[0], device)
            long, short = (source_step(model, size) for size in (length, GROWING[0]))
            label = f"{name} step of {WIDTH * SOURCES} rows, source of {length} beside {GROWING[0]}"
            aim = 0.9 if name == "seq2seq" else None
            cost = source_steps_cost(model, [length] * SOURCES, WIDTH, TURNS)
            rows.append(speed_row(label, TURNS, long, short, 4 * repeats, aim, "steps/s", cost))
    for length in GROWING:
        label = f"transformer step of {WIDTH * SOURCES} rows, source of {length}, beside projecting it at every step"
        model = decoder_of("transformer", SIZES[0], device)
        kept, anew = source_step(model, length), projecting_step(model, length)
        cost = source_steps_cost(model, [length] * SOURCES, WIDTH, TURNS)
        rows.append(speed_row(label, TURNS, kept, anew, 4 * repeats, 1.0, "steps/s", cost))
    return rows


def memory() -> list[Row]:
    """What one training step adds to the resident memory of a fresh process."""
    rows = []
    for size in SIZES:
        ours, plain = (_peak(what, size) for what in ("transformer", "handwritten"))
        other = _peak("marian", size) if installed("transformers") else None
        for label, peer in (("torch.nn.Transformer", plain), ("MarianMT", other)):
            name = f"transformer step, {size}, {PAIRS} pairs, memory beside {label}"
            rows.append(Row(name, ours, peer, ratio_of(peer, ours), None, "MB"))
    for name in RECURRENT:
        label = f"{name} step, width 256, {PAIRS} pairs, memory"
        rows.append(Row(label, _peak(name, SIZES[1]), None, None, None, "MB"))
    return rows


def pairs(count: int, vocab_size: int = 8000) -> Batch:
    """Pairs of 10 to 18 tokens on each side, 14 on average, as they lie in a batch of similar lengths."""
    chance = np.random.default_rng(0)

    def side() -> list[np.ndarray]:
        return [chance.integers(1, vocab_size - 1, chance.integers(10, 19)) for _ in range(count)]

    order = np.arange(count)
    return PairRows(ragged(side()), ragged(side()), 0).batch_of(order, order)


def built(name: str, size: Size, device: torch.device = CPU) -> EncoderDecoder:
    """One of our models: the transformer with Marian's order of norms, a recurrence of the same width."""
    torch.manual_seed(0)
    settings: dict[str, Any] = {"d_model": size.d_model, "dropout": 0.0}
    if name == "transformer":
        settings |= {"n_layers": size.n_layers, "n_heads": N_HEADS, "placement": "after"}
    model = registry.build(name, vocab_size=size.vocab_size, **settings)
    assert isinstance(model, EncoderDecoder)
    return model.to(device)


def decoder_of(name: str, size: Size, device: torch.device) -> EncoderDecoder:
    """The same, to decode with."""
    return built(name, size, device).to(dtype_of(device)).eval()


def step_cost(model: EncoderDecoder, batch: Batch) -> Cost:
    return pair_training_cost(model, source_lengths(batch), batch.lengths.tolist())


def searched_cost(model: EncoderDecoder, batch: Batch) -> Cost:
    return beam_cost(model, source_lengths(batch), WIDTH, STEPS)


def source_lengths(batch: Batch) -> list[int]:
    assert batch.source_lengths is not None
    return batch.source_lengths.tolist()


def our_step(model: EncoderDecoder, batch: Batch) -> Work:
    """A training step as the training loop makes it."""

    def loss() -> Tensor:
        total, count, _ = model_loss(model, batch, None, SMOOTHING)
        return total / count

    return optimised(model, loss, batch.tokens.device)


def our_beam(model: EncoderDecoder, batch: Batch) -> Work:
    """Beam search over the sources of a batch."""
    assert batch.source is not None
    assert batch.source_lengths is not None
    source, lengths = batch.source, batch.source_lengths.to(batch.source.device)
    starts = [torch.tensor([0])] * len(source)

    def work() -> object:
        with torch.no_grad():
            return beam_search(model.given(source, lengths), starts, width=WIDTH, max_tokens=STEPS, eos_id=None)

    return work


def source_step(model: EncoderDecoder, length: int) -> Work:
    """Steps of a beam's rows whose sources have `length` tokens, met before."""
    with torch.no_grad():
        state = model.start(_sources(length).to(_device(model))).select(_rows().to(_device(model))).reserve(STEPS)
    return _step(model, state, EMPTY)


def projecting_step(model: EncoderDecoder, length: int) -> Work:
    """The same with a state that meets the memory anew."""
    with torch.no_grad():
        memory = model.encode(_sources(length).to(_device(model)))[0][_rows().to(_device(model))]
        state = model.init_state(len(memory)).reserve(STEPS)
    return _step(model, state, Context(memory=memory))


def step_of(what: str, n_layers: str, d_model: str) -> Work:
    """A training step by name, as a fresh process is asked for it."""
    size, batch = Size(int(n_layers), int(d_model)), pairs(PAIRS)
    peers = {"handwritten": handwritten_step, "marian": marian_step}
    return peers[what](size, batch) if what in peers else our_step(built(what, size), batch)


def _peak(what: str, size: Size) -> float:
    return peak_of(f"{what} of {size}", step_of, what, str(size.n_layers), str(size.d_model))


def _step(model: EncoderDecoder, state: State, context: Context) -> Work:
    token = torch.zeros(state.batch_size, 1, dtype=torch.long, device=_device(model))

    def work() -> None:
        # The state is used again: the step writes the same numbers to the same place.
        with torch.no_grad():
            for _ in range(TURNS):
                model(token, state, context)

    return work


def _sources(length: int) -> Tensor:
    return torch.randint(1, SIZES[0].vocab_size, (SOURCES, length), generator=torch.Generator().manual_seed(0))


def _device(model: EncoderDecoder) -> torch.device:
    return next(model.parameters()).device


def _rows() -> Tensor:
    return torch.arange(SOURCES).repeat_interleave(WIDTH)
