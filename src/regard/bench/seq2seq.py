"""Encoders and decoders: training, beam search, cost of a step as the source grows, and memory.

Every side has the same sizes, batch, optimiser and label smoothing, no dropout, and random weights. Beams never meet an
end, so that both sides make the same number of steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.bench.memory import peak_of
from regard.bench.race import Row, Work, installed, ratio_of, speed_row
from regard.bench.step import optimised
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
RECURRENT = ("bahdanau", "seq2seq")
PAIRS, SOURCES, WIDTH, STEPS = 64, 16, 5, 24
# Lengths of the source, and steps after each that are timed together: one is too short to be timed alone.
GROWING, TURNS = (16, 64, 256), 10


def seq2seq(repeats: int) -> list[Row]:
    """Every row, in one run."""
    return [*training(repeats), *decoding(repeats), *growing(repeats), *memory()]


def training(repeats: int) -> list[Row]:
    """Target tokens a second."""
    batch = pairs(PAIRS)
    rows = []
    for size in SIZES:
        count = repeats * (4 if size.d_model < 200 else 2)
        ours = our_step("transformer", size, batch)
        name = f"transformer step, {size}, {PAIRS} pairs"
        peer = handwritten_step(size, batch)
        rows.append(speed_row(f"{name}, beside torch.nn.Transformer", batch.n_counted, ours, peer, count, None))
        peer = marian_step(size, batch) if installed("transformers") else None
        rows.append(speed_row(f"{name}, beside MarianMT", batch.n_counted, ours, peer, count, 1.2))
    for name in RECURRENT:
        work = our_step(name, SIZES[1], batch)
        rows.append(speed_row(f"{name} step, width 256, {PAIRS} pairs", batch.n_counted, work, None, repeats, None))
    return rows


def decoding(repeats: int) -> list[Row]:
    """Sentences a second with a beam of 5."""
    batch = pairs(SOURCES)
    rows = []
    for size in SIZES:
        peer = marian_beam(size, batch, WIDTH, STEPS) if installed("transformers") else None
        name = f"transformer beam {WIDTH}, {size}, {SOURCES} sources, {STEPS} steps, beside MarianMT"
        ours = our_beam("transformer", size, batch)
        rows.append(speed_row(name, SOURCES, ours, peer, repeats, 2.0, "sentences/s"))
    for name in RECURRENT:
        label = f"{name} beam {WIDTH}, width 256, {SOURCES} sources, {STEPS} steps"
        work = our_beam(name, SIZES[1], batch)
        rows.append(speed_row(label, SOURCES, work, None, repeats, None, "sentences/s"))
    return rows


def growing(repeats: int) -> list[Row]:
    """Steps a second beside those after the shortest source: 1 where a step does not feel how long the source is.

    The last rows are the transformer beside the same steps with keys and values of the memory projected at each of
    them, which is what carrying them saves.
    """
    rows = []
    for name in ("seq2seq", "bahdanau", "transformer"):
        for length in GROWING[1:]:
            long, short = (source_step(name, size) for size in (length, GROWING[0]))
            label = f"{name} step of {WIDTH * SOURCES} rows, source of {length} beside {GROWING[0]}"
            aim = 0.9 if name == "seq2seq" else None
            rows.append(speed_row(label, TURNS, long, short, 4 * repeats, aim, "steps/s"))
    for length in GROWING:
        label = f"transformer step of {WIDTH * SOURCES} rows, source of {length}, beside projecting it at every step"
        kept, anew = source_step("transformer", length), projecting_step(length)
        rows.append(speed_row(label, TURNS, kept, anew, 4 * repeats, 1.0, "steps/s"))
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


def built(name: str, size: Size) -> EncoderDecoder:
    """One of our models: the transformer with Marian's order of norms, a recurrence of the same width."""
    torch.manual_seed(0)
    settings: dict[str, Any] = {"d_model": size.d_model, "dropout": 0.0}
    if name == "transformer":
        settings |= {"n_layers": size.n_layers, "n_heads": N_HEADS, "placement": "after"}
    model = registry.build(name, vocab_size=size.vocab_size, **settings)
    assert isinstance(model, EncoderDecoder)
    return model


def our_step(name: str, size: Size, batch: Batch) -> Work:
    """A training step as the training loop makes it."""
    model = built(name, size)

    def loss() -> Tensor:
        total, count, _ = model_loss(model, batch, None, SMOOTHING)
        return total / count

    return optimised(model, loss)


def our_beam(name: str, size: Size, batch: Batch) -> Work:
    """Beam search over the sources of a batch."""
    model = built(name, size).eval()
    assert batch.source is not None
    source, lengths = batch.source, batch.source_lengths
    starts = [torch.tensor([0])] * len(source)

    def work() -> object:
        with torch.no_grad():
            return beam_search(model.given(source, lengths), starts, width=WIDTH, max_tokens=STEPS, eos_id=None)

    return work


def source_step(name: str, length: int) -> Work:
    """Steps of a beam's rows whose sources have `length` tokens, met before."""
    model, sources = built(name, SIZES[0]).eval(), _sources(length)
    with torch.no_grad():
        state = model.start(sources).select(_rows()).reserve(STEPS)
    return _step(model, state, EMPTY)


def projecting_step(length: int) -> Work:
    """The same with a state that meets the memory anew."""
    model, sources = built("transformer", SIZES[0]).eval(), _sources(length)
    with torch.no_grad():
        memory = model.encode(sources)[0][_rows()]
        state = model.init_state(len(memory)).reserve(STEPS)
    return _step(model, state, Context(memory=memory))


def step_of(what: str, n_layers: str, d_model: str) -> Work:
    """A training step by name, as a fresh process is asked for it."""
    size, batch = Size(int(n_layers), int(d_model)), pairs(PAIRS)
    peers = {"handwritten": handwritten_step, "marian": marian_step}
    return peers[what](size, batch) if what in peers else our_step(what, size, batch)


def _peak(what: str, size: Size) -> float:
    return peak_of(f"{what} of {size}", step_of, what, str(size.n_layers), str(size.d_model))


def _step(model: EncoderDecoder, state: State, context: Context) -> Work:
    token = torch.zeros(state.batch_size, 1, dtype=torch.long)

    def work() -> None:
        # The state is used again: the step writes the same numbers to the same place.
        with torch.no_grad():
            for _ in range(TURNS):
                model(token, state, context)

    return work


def _sources(length: int) -> Tensor:
    return torch.randint(1, SIZES[0].vocab_size, (SOURCES, length), generator=torch.Generator().manual_seed(0))


def _rows() -> Tensor:
    return torch.arange(SOURCES).repeat_interleave(WIDTH)
