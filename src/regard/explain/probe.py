"""Probes: what a linear map can tell of each word from the vectors of each layer, such as its part of speech.

    p(tag | h) = softmax(W h + b)         h the vector of a word in its context, fitted on half of the sentences

The other half is told, beside what one can tell without any vector: the most frequent tag of all, and of each word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.context import Context
from regard.core.device import wide
from regard.data.example import Tagged
from regard.data.ragged import in_batches, ragged
from regard.data.settings import DataSettings
from regard.errors import DataError, UsageError
from regard.explain.layers import vectors_by_layer
from regard.explain.look import points
from regard.explain.view import Curves, Listing, View
from regard.tasks.tagged import TaggedText
from regard.tasks.word import word_numbers

SENTENCES = 400
KNOWN = 0.5  # of the words of the data, at least, a run has to know
PENALTY, STEPS = 1e-3, 40
CAVEAT = (
    "What a probe finds is there to be found, not used by the model; and a probe of wide vectors can learn a little of "
    "anything, so that only differences between layers, and to the words alone, tell of the model."
)


@dataclass(frozen=True, eq=False)
class Told:
    """Words with their tags, the sentence of each, and their vectors (n, D) by layer."""

    words: list[str]
    tags: list[str]
    sentence: np.ndarray
    vectors: dict[str, Tensor]


def probe(run: Any, data: str, limit: int = SENTENCES) -> View:
    """How well the tags of `data` can be told from the vectors of each layer.

    data   a world of tagged sentences, such as world:tags, or a file as `regard train` reads them.
    limit  sentences at most.
    """
    if not run.task.gives_encoder or run.fitted:
        raise UsageError(f"{run.path}: probes are of language models, with or without a mask, that have vectors")
    if limit < 2:
        raise UsageError(f"limit {limit}: a probe is fitted on half of the sentences and needs two at least")
    sentences = TaggedText().examples(data, DataSettings(), run.seed)
    told = read_words(run, sentences[:limit], data)
    held = told.sentence % 2 == 1
    if len(set(told.tags)) < 2 or held.all() or not held.any():
        raise DataError(f"{data}: a probe needs two sentences and two different tags, at least")
    names = sorted(set(told.tags))
    tags = torch.tensor([names.index(tag) for tag in told.tags])
    found = {layer: accuracy(vectors, tags, held, len(names)) for layer, vectors in told.vectors.items()}
    return _view(run, data, told, held, found)


def accuracy(vectors: Tensor, tags: Tensor, held: np.ndarray, n_tags: int) -> float:
    """How often a linear map that was fitted where `held` is False tells the tag where it is True."""
    apart = torch.from_numpy(held)
    mean, spread = vectors[~apart].mean(0), vectors[~apart].std(0) + 1e-6
    x = (vectors - mean) / spread
    weight, bias = fitted(x[~apart], tags[~apart], n_tags)
    right = (x[apart] @ weight + bias).argmax(-1) == tags[apart]
    return float(wide(right).mean())


def fitted(x: Tensor, tags: Tensor, n_tags: int) -> tuple[Tensor, Tensor]:
    """W (D, C) and b (C,) of the logistic regression of tags (n,) on x (n, D), with a small penalty on W."""
    weight = x.new_zeros(x.shape[1], n_tags, requires_grad=True)
    bias = x.new_zeros(n_tags, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        with torch.enable_grad():
            loss = torch.nn.functional.cross_entropy(x @ weight + bias, tags) + PENALTY * weight.square().sum()
            loss.backward()
        return loss

    optimiser.step(closure)
    return weight.detach(), bias.detach()


def read_words(run: Any, sentences: Sequence[Tagged], data: str) -> Told:
    """The words of sentences as a run reads them; what it has no tokens for is refused."""
    tokenizer = run.tokenizer
    kept, rows, places, unknown = [], [], [], Counter[bool]()
    for one in sentences:
        ids, found = placed_words(run, one.words)
        if found is None or (run.model.max_length is not None and len(ids) > run.model.max_length):
            continue
        unknown.update(bool(ids[place] == tokenizer.unknown_id) for place in found)
        kept.append(one)
        rows.append(ids)
        places.append(found)
    share = unknown[False] / max(1, unknown.total())
    if share < KNOWN:
        raise DataError(f"{data}: {run.path} has tokens for {share:.0%} of its words: probe a run that knows them")
    vectors = word_vectors(run, rows, places)
    words = [word for one in kept for word in one.words]
    tags = [tag for one in kept for tag in one.tags]
    sentence = np.repeat(np.arange(len(kept)), [len(one.words) for one in kept])
    return Told(words, tags, sentence, vectors)


def placed_words(run: Any, words: Sequence[str]) -> tuple[np.ndarray, list[int] | None]:
    """The ids of words side by side, and the token that stands for each: its last one where a model looks back only,
    else its first. None where the tokens do not make these words.

    A tokenizer may take a point for a part of the word before it: then words are told by how many tokens come before.
    """
    ids, last = run.task.ids(run.processor, " ".join(words)), run.model.causal
    found: dict[int, int] = {}
    for place, number in enumerate(word_numbers(run.tokenizer, ids.tolist())):
        if number is not None and (last or number not in found):
            found[number] = place
    return ids, list(found.values()) if len(found) == len(words) else _by_beginnings(run, words, ids)


def _by_beginnings(run: Any, words: Sequence[str], ids: np.ndarray) -> list[int] | None:
    ends = len(run.task.ids(run.processor, "")) - 1  # what stands after a text
    found, before = [], 1
    for count in range(1, len(words) + 1):
        part = run.task.ids(run.processor, " ".join(words[:count]))
        until = len(part) - ends
        if until <= before or not np.array_equal(part[:until], ids[:until]):
            return None
        found.append(until - 1 if run.model.causal else before)
        before = until
    return found


@torch.no_grad()
def word_vectors(run: Any, rows: list[np.ndarray], places: list[list[int]]) -> dict[str, Tensor]:
    """Vectors (n, D) of all words by layer, in the order of the sentences."""
    ids = ragged(rows)
    found: dict[str, dict[int, Tensor]] = {}
    for batch in in_batches(ids.sizes.tolist()):
        tokens, lengths = ids.padded(batch, 0)
        tokens, context = tokens.to(run.device), Context(lengths=lengths.to(run.device))
        seen = vectors_by_layer(run.model, lambda tokens=tokens, context=context: run.model.encode(tokens, context))
        for layer, vectors in seen.items():
            for row, number in enumerate(batch.tolist()):
                found.setdefault(layer, {})[number] = vectors[row, places[number]].float().cpu()
    return {layer: torch.cat([parts[number] for number in sorted(parts)]) for layer, parts in found.items()}


def _view(run: Any, data: str, told: Told, held: np.ndarray, found: dict[str, float]) -> View:
    """Accuracies by layer, and what can be told without vectors."""
    pairs = list(zip(told.words, told.tags, strict=True))
    learnt = [pair for pair, apart in zip(pairs, held, strict=True) if not apart]
    asked = [pair for pair, apart in zip(pairs, held, strict=True) if apart]
    most = Counter(tag for _, tag in learnt).most_common(1)[0][0]
    of_word: dict[str, Counter[str]] = {}
    for word, tag in learnt:
        of_word.setdefault(word, Counter())[tag] += 1
    majority = float(np.mean([tag == most for _, tag in asked]))
    by_word = float(np.mean([tag == of_word.get(word, Counter([most])).most_common(1)[0][0] for word, tag in asked]))
    layers = range(len(found))
    curves = Curves(
        title="Tags told rightly, by layer",
        lines={
            "probe": points(layers, found.values()),
            "most frequent tag of the word": points(layers, [by_word] * len(found)),
        },
        x="layer",
        y="share right",
        note=f"{len(asked)} words that the probe was not fitted on; {len(learnt)} that it was. 0 is before any layer.",
        key="accuracy",
    )
    rows: list[list[str | float | None]] = [[f"probe, {name}", value] for name, value in found.items()]
    rows += [["most frequent tag of the word", by_word], [f"most frequent tag, {most}", majority]]
    listing = Listing(title="The same in numbers", columns=["told from", "share right#"], rows=rows, key="numbers")
    about = {"run": str(run.path), "model": run.config["model"].get("name"), "data": data}
    title = f"What the vectors of {Path(run.path).name} tell of the tags of {data}"
    return View(title, [curves, listing], about, CAVEAT, name="probe")
