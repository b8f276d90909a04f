"""The toy language pair at sizes that a study can afford: models to compare, and scores by the length of the source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from regard.core.data_spec import DataSpec
from regard.data.example import Pair
from regard.data.worlds import world_of
from regard.studies.entrant import parameters, width_for
from regard.tasks.pairs import Pairs
from regard.training import metrics
from regard.training.run_folder import METRICS

# What all runs share: the last weights are the ones that count, and no text is written before them.
PLAIN: dict[str, Any] = {"evaluate_every": 10**6, "choose_by": "loss"}
GATED: dict[str, Any] = {"cell": "gru", "encoder": "gru", "n_layers": 1}


def sentences(shortest: int, longest: int, train: int = 1, valid: int = 100) -> str:
    """The address of sentences of so many words."""
    return f"world:translation?min_length={shortest}&max_length={longest}&train={train}&valid={valid}"


def spec_of(data: str) -> DataSpec:
    """What a model must know of a world of pairs: the words of both sides and the two symbols beside them."""
    pairs: list[Pair] = world_of(data, Pairs.name).examples("train", 2000)
    words = {word for pair in pairs for word in f"{pair.source} {pair.target}".split()}
    return DataSpec(vocab_size=len(words) + 2)


def matched(data: str, like: tuple[str, dict[str, Any]], name: str, **settings: Any) -> dict[str, Any]:
    """`settings` of a model and the width at which it is as large as the model `like`."""
    spec = spec_of(data)
    target = parameters(like[0], spec, **like[1])
    assert target is not None
    return settings | {"d_model": width_for(name, spec, target, 1, **settings)}


def bleu_by_length(run: Any, lengths: Sequence[int], count: int) -> dict[str, float]:
    """BLEU of held-out sentences of exactly so many words."""
    return {str(n): run.evaluate(sentences(n, n, valid=count)).to_dict()["bleu"] for n in lengths}


def held_out_perplexity(run: Any) -> float:
    """Of the last evaluation while training, a word of the target at a time."""
    losses = [record["valid_loss"] for record in metrics.read(run.path / METRICS) if "valid_loss" in record]
    return math.exp(losses[-1])
