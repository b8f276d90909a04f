"""TrainingProblem: what a run reads and what it minimises. The loop knows batches and a loss, and nothing of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from torch import nn

from regard.data.batch import Batch, Documents, Lanes, Windows, evaluation_batches
from regard.data.tokenizer import as_file
from regard.errors import UsageError
from regard.training import run_folder
from regard.training.losses import Objective, model_loss
from regard.training.settings import TrainSettings

if TYPE_CHECKING:
    from regard.data.corpus import Corpus


class Sampler(Protocol):
    """Batches by number: a pure function, so that the position in the data is one integer."""

    def batch(self, step: int, batch_size: int) -> Batch: ...


@dataclass(frozen=True)
class Metric:
    """The score of the task itself, by which the best weights are chosen instead of by the loss."""

    name: str
    measure: Callable[[nn.Module], float]
    lower_is_better: bool = False

    def is_better(self, new: float, old: float | None) -> bool:
        return old is None or (new < old if self.lower_is_better else new > old)


@dataclass(frozen=True)
class TrainingProblem:
    """What a run reads and minimises.

    sampler          training batches by number, for ever.
    held_out         the batches of an evaluation, always the same; None without held-out data.
    held_out_tokens  targets in all of them.
    objective        (model, batch, state) to (summed loss, count, state).
    carries          whether the state of a batch goes on into the next one.
    identity         what a resume compares: hashes of the data and of the tokenizer.
    files            further files of the run folder, by name.
    metric           what the best weights are chosen by; None: the held-out loss.
    unit             what a target is, for the eye.
    """

    sampler: Sampler
    held_out: Callable[[], Iterator[Batch]] | None = None
    held_out_tokens: int = 0
    objective: Objective = model_loss
    carries: bool = False
    identity: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    metric: Metric | None = None
    unit: str = "tokens"


def language_problem(corpus: Corpus, model: nn.Module, settings: TrainSettings) -> TrainingProblem:
    """Next-token prediction on a corpus: windows of a stream of text, or documents one by one."""
    _require_length(model, settings)
    if settings.word_dropout:
        raise UsageError("train.word_dropout: plain text has no input apart from what is predicted; leave it out")
    kind = corpus.samples if settings.samples == "auto" else settings.samples
    carries = carries_state(model, settings, kind)
    packed = packs_documents(model, settings, kind)
    if packed and settings.tar:
        raise UsageError("train.tar: documents that lie end to end change where one follows another; leave one out")
    length, seed = settings.length, settings.seed
    sampler: Sampler
    if kind == "documents":
        sampler = Documents(corpus.train, seed, length, packed=packed)
    elif carries:
        sampler = Lanes(corpus.train, length, settings.batch_size, seed)
    else:
        sampler = Windows(corpus.train, length, seed)
    extra = {key: getattr(settings, key) for key in ("label_smoothing", "ar", "tar") if getattr(settings, key)}
    objective = partial(model_loss, smoothing=settings.smoothing, **extra) if extra else model_loss
    stream = "documents" if kind == "documents" else "stream"
    batches = partial(evaluation_batches, corpus.valid, length=length, batch_size=settings.batch_size, kind=stream)
    return TrainingProblem(
        sampler,
        batches if corpus.valid.tokens else None,
        corpus.valid.tokens,
        objective,
        carries,
        {"name": corpus.name, "hash": corpus.hash, "tokenizer": corpus.tokenizer.hash},
        {run_folder.TOKENIZER: as_file(corpus.tokenizer)},
    )


def carries_state(model: nn.Module, settings: TrainSettings, kind: str) -> bool:
    """Whether rows go on where they ended: truncated backpropagation."""
    grows = getattr(getattr(model, "stack", None), "state_grows", True)
    if settings.carry_state is None:
        return kind == "windows" and not grows
    if settings.carry_state and grows:
        raise UsageError("train.carry_state: the state of this model grows with every token; set it to false")
    if settings.carry_state and kind == "documents":
        raise UsageError("train.carry_state: documents stand alone; set it to false, or train.samples to windows")
    return settings.carry_state


def packs_documents(model: nn.Module, settings: TrainSettings, kind: str) -> bool:
    """Whether documents lie end to end, where that was asked for."""
    if settings.packed and kind != "documents":
        raise UsageError(f"train.packed: {kind} are full already; leave it out, or set train.samples to documents")
    if settings.packed and not getattr(model, "packs", False):
        raise UsageError("train.packed: a layer of this model reads no documents end to end; leave it out")
    return settings.packed


def _require_length(model: nn.Module, settings: TrainSettings) -> None:
    longest = getattr(model, "max_length", None)
    if longest is not None and settings.length > longest:
        raise UsageError(
            f"train.length: {settings.length} is above the {longest} positions of the model; set train.length={longest}"
        )
