"""How tags are chosen: each for itself, those of a sentence together under a model's own chain, and within BIO.

    O  B-X  I-X        an I-X stands only after B-X or I-X: what breaks the rule is never answered

The rule holds where the training part keeps it. Files that begin a span with I-X (as those of CoNLL 2003 do) do not,
and their tags are free.

Spans are judged by F1, and F1 is not largest where each word has its likeliest tag: a thing is worth telling where its
chance is above half of the F1 that can be reached (Lipton, Elkan, Naryanaswamy 2014, theorem 1). Of hard data much is
told that is not likely, of easy data little:

    lean = log((2 - F1) / F1)        taken from the score of O, with the F1 of held-out sentences
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from regard.core.context import Context
from regard.core.device import device_of
from regard.data.ragged import Ragged
from regard.evaluation.tagging import is_bio
from regard.layers.crf import Chain, Decodes, viterbi

BEGIN, INSIDE, OUTSIDE = "B-", "I-", "O"
MOST_LEAN = 2.0  # of an F1 of 0.24: below that there is little to be told by it


def keeps_bio(sentences: Iterable[Sequence[str]]) -> bool:
    """Whether tags mark spans and every I-X comes after B-X or I-X.

    >>> keeps_bio([["O", "B-PER", "I-PER"], ["B-LOC"]]), keeps_bio([["I-PER"]])
    (True, False)
    """
    met = set[str]()
    for tags in sentences:
        met.update(tags)
        for before, tag in zip(("O", *tags), tags, strict=False):
            if tag[:2] == INSIDE and before not in (BEGIN + tag[2:], tag):
                return False
    return is_bio(met)


@runtime_checkable
class Leans(Protocol):
    """A model that answers spans. lean: what is taken from the score of O."""

    @property
    def lean(self) -> Tensor: ...


def lean_for(f1: float) -> float:
    """By how much spans are preferred where they are found with this F1.

    >>> lean_for(1.0), round(lean_for(0.5), 3), lean_for(0.0)
    (0.0, 1.099, 2.0)
    """
    return min(MOST_LEAN, math.log((2 - f1) / f1)) if f1 > 0 else MOST_LEAN


def span_chain(model: nn.Module, classes: Sequence[str]) -> Chain:
    """The rule of BIO, and the lean of a model that has one."""
    lean = torch.tensor([name == OUTSIDE for name in classes]) * float(model.lean if isinstance(model, Leans) else 0.0)
    return bio_chain(classes) + Chain(-lean.expand(len(classes), -1), -lean, torch.zeros(len(classes)))


def bio_chain(classes: Sequence[str]) -> Chain:
    """0 where a tag may follow another or begin a sentence, -inf where not."""
    inside = np.array([name[:2] == INSIDE for name in classes])
    same = np.array([[name[2:] == other[2:] and name[:2] in (BEGIN, INSIDE) for other in classes] for name in classes])
    forbidden = inside[None, :] & ~same
    between, start = (
        torch.zeros(part.shape).masked_fill(torch.from_numpy(part), -torch.inf) for part in (forbidden, inside)
    )
    return Chain(between, start, torch.zeros(len(classes)))


def decoder_of(model: nn.Module) -> Decodes | None:
    """What chooses tags together: the model itself, or its head; None where each is chosen for itself."""
    whole: Any = model
    return next((part for part in (whole, whole.head) if isinstance(part, Decodes)), None)


def best_tags(model: nn.Module, vectors: Tensor, lengths: Tensor, allowed: Chain | None) -> Tensor:
    """The tags of sentences, (B, T), of what a model gives for their words."""
    decoder = decoder_of(model)
    if decoder is not None:
        return decoder.decode(vectors, lengths, allowed)
    whole: Any = model
    logits = whole.head(vectors)
    if allowed is None:
        return logits.argmax(-1)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    return viterbi(logits, lengths, allowed.to(logits))


@torch.no_grad()
def tag_rows(
    model: nn.Module, ids: Ragged, rows: np.ndarray, places: Sequence[np.ndarray], allowed: Chain | None
) -> list[list[int]]:
    """The tags of the sentences `rows`. places: where the tag of each word of each of them is told."""
    own, counts = _of_words(model, ids, rows, places)
    best = best_tags(model, own, counts, allowed).cpu()
    return [best[row, :count].tolist() for row, count in enumerate(counts.tolist())]


@torch.no_grad()
def chance_rows(model: nn.Module, ids: Ragged, rows: np.ndarray, places: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The chance of every tag for each word of the sentences `rows`, (words, C): under a model's own chain if any."""
    whole: Any = model
    own, counts = _of_words(model, ids, rows, places)
    decoder = decoder_of(model)
    found = whole.head(own).float() if decoder is None else decoder.log_chances(own, counts)
    chances = found.double().softmax(-1).cpu().numpy()
    return [chances[row, :count] for row, count in enumerate(counts.tolist())]


def _of_words(model: nn.Module, ids: Ragged, rows: np.ndarray, places: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
    """The vectors of the words of sentences, (B, T, D), and how many each has."""
    whole: Any = model
    device = device_of(model)
    tokens, lengths = ids.padded(rows, 0)
    vectors = whole(tokens.to(device), None, Context(lengths=lengths.to(device)))[0]
    at, counts = Ragged(np.concatenate(places), np.cumsum([0, *map(len, places)])).padded(np.arange(len(rows)), 0)
    return vectors[torch.arange(len(rows), device=device)[:, None], at.to(device)], counts.to(device)


def log_chances_at(model: nn.Module, tokens: Tensor, places: np.ndarray | None) -> Tensor:
    """Answers (B, T, C) of sentences without padding: log p under a model's own chain, else its logits.

    places  where the tags of words are told; None: at every position. Elsewhere each position answers for itself.
    """
    whole: Any = model
    vectors, decoder = whole(tokens)[0], decoder_of(model)
    if decoder is None:
        return whole.head(vectors)
    n_positions = vectors.shape[1]
    told = torch.arange(n_positions) if places is None else torch.from_numpy(places[places < n_positions])
    told = told.to(vectors.device)
    found = decoder.log_chances(vectors[:, told], torch.full((len(vectors),), len(told), device=vectors.device))
    return found if places is None else whole.head(vectors).log_softmax(-1).to(found).index_copy(1, told, found)
