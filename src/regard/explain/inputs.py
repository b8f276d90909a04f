"""Readers: how the input that a person gives becomes a reading, one for every task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.inputs import PastKnown, SourceTokens
from regard.core.model import logits_of
from regard.data.tokenizer import Tokenizer
from regard.data.tokenizer.word import split
from regard.data.worlds import PREFIX
from regard.decoding.text import TextOptions
from regard.errors import UsageError
from regard.explain.reading import END, START, Capabilities, Reading, Side
from regard.explain.word import word_numbers, word_texts
from regard.layers.picture import as_input
from regard.tasks import TEXT
from regard.tasks.filling import MASK, gapped
from regard.tasks.series import next_moment

GREEDY = TextOptions(temperature=0.0)


def read(run: Any, given: str, target: str | None = None) -> Reading:
    """The reading of one input. target: what a run of two texts is taken to write, instead of what it would write."""
    task = run.config["data"].get("task", TEXT)
    if target is not None and task not in ("pairs", "captions"):
        raise UsageError(f"a run of the task {task} writes nothing from a source: leave the target out")
    if task not in READERS:
        raise UsageError(f"{run.path}: there is no way to look at a run of the task {task} yet")
    with torch.no_grad():
        reading = replace(READERS[task](run, given, target), owner=run, can=task_capabilities(run))
    _refuse_long(run, reading)
    return reading


def task_capabilities(run: Any) -> Capabilities:
    """What the task of a run says of what can be asked of it."""
    return CAPABILITIES.get(run.config["data"].get("task", TEXT), Capabilities())


def length_of(run: Any, given: str) -> int | None:
    """How many tokens a typed input has, found without running the model; None where what is typed is no text."""
    counted = LENGTHS.get(run.config["data"].get("task", TEXT))
    return None if counted is None else counted(run, given)


def target_length(run: Any, target: str) -> int | None:
    """The same of a text that is taken to be written from a source."""
    counted = TARGET_LENGTHS.get(run.config["data"].get("task", TEXT))
    return None if counted is None else counted(run, target)


def positions_of(run: Any) -> int | None:
    """How many tokens of a typed input the model has positions for; None: as many as there are."""
    encoder = getattr(run.model, "encoder", None)
    return getattr(run.model if encoder is None else encoder, "max_length", None)


def _text(run: Any, given: str, _target: str | None) -> Reading:
    tokens = run.writer.prompt_ids(given).to(run.device)
    ids = tokens.tolist()
    side = _side("text", run.tokenizer, ids, (START, *labels_of(run.tokenizer, ids[1:], given)))
    model = run.model
    return Reading(
        model, (tokens[None],), (side,), lambda x: logits_of(model, x), _named(run.tokenizer), _next(ids), given
    )


def _masked(run: Any, given: str, _target: str | None) -> Reading:
    masking, ids = run.processor.masking, _masked_ids(run, given)
    # A mask is no token of the tokenizer; as the end of a text it is no word that was typed either.
    is_mask = ids == masking.mask_id
    plain = np.where(is_mask, run.processor.tokenizer.eos_id, ids).tolist()
    told = labels_of(run.processor.tokenizer, plain, given.replace(MASK, " "))
    labels = tuple(MASK if hidden else label for hidden, label in zip(is_mask, told, strict=True))
    tokens = torch.from_numpy(ids)[None].to(run.device)
    side = _side("text", run.processor.tokenizer, ids.tolist(), labels)
    model = run.model

    def forward(x: Tensor) -> Tensor:
        return logits_of(model, x)

    def named(token: int) -> str:
        return MASK if token == masking.mask_id else token_label(run.processor.tokenizer, token)

    return Reading(model, (tokens,), (side,), forward, named, (), given)


def _masked_ids(run: Any, given: str) -> np.ndarray:
    return gapped(given, run.processor.masking, "the text").ids if MASK in given else run.processor.framed(given)


def _labelled(run: Any, given: str, _target: str | None) -> Reading:
    ids = run.processor.read(given)
    plain = ids[:, 0] if ids.ndim == 2 else ids
    labels = tuple(labels_of(run.processor.tokenizer, plain.tolist(), given))
    return _classes(run, ids, _side("text", run.processor.tokenizer, plain.tolist(), labels), given)


def _tagged(run: Any, given: str, _target: str | None) -> Reading:
    words = tuple(given.split())
    if not words:
        raise UsageError("there are no words to tag")
    ids = run.processor.read(words)
    if ids.ndim == 2:
        return _classes(run, ids, Side("text", words, tuple(range(len(words)))), given)
    labels = tuple(labels_of(run.processor.tokenizer, ids.tolist(), " ".join(words)))
    return _classes(run, ids, _side("text", run.processor.tokenizer, ids.tolist(), labels), given)


def _classes(run: Any, ids: np.ndarray, side: Side, given: str) -> Reading:
    tokens = torch.from_numpy(ids)[None].to(run.device)
    return Reading(
        run.model,
        (tokens,),
        (side,),
        lambda x: logits_of(run.model, x),
        lambda number: run.processor.classes[number],
        (),
        given,
    )


def _pairs(run: Any, given: str, target: str | None) -> Reading:
    processor = run.processor
    ids = processor.read(given)
    labels = tuple(labels_of(processor.source, ids.tolist(), given))
    source = _side("source", processor.source, ids.tolist(), labels)
    if target is None:
        written = run.task.written(run.model, processor, [given], GREEDY)[0].tokens
    else:
        written = processor.target.encode(target).tolist()
    return _written(run, torch.from_numpy(ids)[None], source, processor.target, written, given, target or "")


def _captions(run: Any, given: str, target: str | None) -> Reading:
    one = run.task.inputs(given)[0] if given else run.held_out("valid")[0]
    picture = as_input(torch.from_numpy(run.processor.see(one)[None]))
    count = run.model.encode(picture.to(run.device))[0].shape[1]
    across = round(count**0.5)
    labels = tuple(f"{place // across + 1},{place % across + 1}" for place in range(count))
    if target is None:
        written = run.task.written(run.model, run.processor, [one], GREEDY)[0].tokens
    else:
        written = run.processor.tokenizer.encode(target).tolist()
    return _written(run, picture, Side("picture", labels), run.processor.tokenizer, written, given, target or "")


def _written(
    run: Any, source: Tensor, side: Side, tokenizer: Tokenizer, written: Sequence[int], given: str, typed: str
) -> Reading:
    """A source and a text that is written from it, token by token; as it was typed, where it was."""
    ids = [tokenizer.eos_id, *written]
    labels = (START, *labels_of(tokenizer, written, typed))
    target = _side("target", tokenizer, ids, labels)
    if getattr(run.model.encoder.config, "reverse", False):
        side = replace(side, labels=side.labels[::-1], words=side.words[::-1])
    tokens = torch.tensor([ids], device=run.device)
    targets = (*_next(ids)[:-1], tokenizer.eos_id)
    model = run.model

    def forward(source: Tensor, tokens: Tensor) -> Tensor:
        return logits_of(model, SourceTokens(source, tokens))

    inputs = (source.to(run.device), tokens)
    return Reading(model, inputs, (side, target), forward, _named(tokenizer), targets, given)


def _series(run: Any, given: str, _target: str | None) -> Reading:
    if given.startswith(PREFIX) or not given:
        moment = (run.held_out("valid") if not given else run.task.examples(given, run.settings, run.seed))[0]
    else:
        moment = next_moment(given, run.processor)
    rows = run.processor.rows(moment.series, np.array([moment.origin]))
    batch = rows.batch_of(np.arange(1), np.arange(1)).to(run.device)
    times = [str(time)[:16].replace("T", " ") for time in moment.series.times]
    past = times[moment.origin - run.processor.history : moment.origin]
    encoder = run.model.encoder
    patch = getattr(encoder.embedding, "patch", 1) if encoder is not None else 1
    horizon = tuple(times[moment.origin : moment.origin + run.processor.horizon])
    quantiles = run.model.config.quantiles
    sides = Side("past", tuple(past[::patch])), Side("horizon", horizon)
    if encoder is None:
        sides = (Side("past", (*past, *horizon)), sides[1])
    inputs = (batch.source, batch.tokens)
    values = moment.series.target
    about = {
        "past": values[moment.origin - run.processor.history : moment.origin],
        "came": values[moment.origin : moment.origin + run.processor.horizon],
        "unit": run.processor.target_name,
        "invert": run.processor.target.invert,
    }
    return Reading(
        run.model,
        inputs,
        sides,
        lambda a, b: logits_of(run.model, PastKnown(a, b)),
        lambda n: f"q{quantiles[n]:g}",
        (),
        given or str(moment.time),
        about,
    )


def _side(name: str, tokenizer: Tokenizer, ids: Sequence[int], labels: tuple[str, ...]) -> Side:
    """A side of text."""
    words = word_numbers(tokenizer, ids)
    return Side(name, labels, tuple(words), word_texts(tokenizer, ids, words))


def token_label(tokenizer: Tokenizer, token: int) -> str:
    """A token as people see it; the end of a text is no word."""
    return END if token == tokenizer.eos_id else tokenizer.token_text(token)


def _named(tokenizer: Tokenizer) -> Callable[[int], str]:
    """The name of each token."""
    return lambda token: token_label(tokenizer, token)


def labels_of(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[str]:
    """A label for each token; a word that has no token of its own as it was typed, with a question mark.

    An end before anything else is the start of a text that stands in a frame.
    """
    labels = [token_label(tokenizer, token) for token in ids]
    if len(ids) > 1 and ids[0] == tokenizer.eos_id:
        labels[0] = START
    inner = [place for place, token in enumerate(ids) if token != tokenizer.eos_id]
    typed = split(text) if tokenizer.kind == "words" else []
    if len(typed) == len(inner):
        for place, word in zip(inner, typed, strict=True):
            labels[place] = f"{word}?" if ids[place] == tokenizer.unknown_id else labels[place]
    return labels


def _next(ids: Sequence[int]) -> tuple[int | None, ...]:
    """The token after each, and none after the last."""
    return (*ids[1:], None)


def _refuse_long(run: Any, reading: Reading) -> None:
    limits = {reading.main.name: getattr(run.model, "max_length", None)}
    if len(reading.sides) == 2 and reading.sides[0].name == "source":
        limits["source"] = run.model.encoder.max_length
    for name, limit in limits.items():
        if limit is not None and name != "horizon" and len(reading.side(name)) > limit:
            raise UsageError(
                f"the {name} has {len(reading.side(name))} tokens and the model has positions for {limit}: give less"
            )


LENGTHS: dict[str, Callable[[Any, str], int]] = {
    TEXT: lambda run, given: len(run.writer.prompt_ids(given)),
    "masked": lambda run, given: len(_masked_ids(run, given)),
    "labelled": lambda run, given: len(run.processor.read(given)),
    "tagged": lambda run, given: len(run.processor.read(tuple(given.split()))) if given.split() else 0,
    "pairs": lambda run, given: len(run.processor.read(given)),
}
TARGET_LENGTHS: dict[str, Callable[[Any, str], int]] = {
    "pairs": lambda run, target: len(run.processor.target.encode(target)),
    "captions": lambda run, target: len(run.processor.tokenizer.encode(target)),
}
READERS: dict[str, Callable[[Any, str, str | None], Reading]] = {
    TEXT: _text,
    "masked": _masked,
    "labelled": _labelled,
    "tagged": _tagged,
    "pairs": _pairs,
    "captions": _captions,
    "series": _series,
}
CAPABILITIES: dict[str, Capabilities] = {
    TEXT: Capabilities(tokens=True, next=True),
    "masked": Capabilities(tokens=True, mask=True),
    "labelled": Capabilities(tokens=True, classes=True, whole=True),
    "tagged": Capabilities(tokens=True, classes=True),
    "pairs": Capabilities(tokens=True, next=True, source=True),
    "captions": Capabilities(next=True, source=True),
    "series": Capabilities(source=True, quantiles=True),
}
