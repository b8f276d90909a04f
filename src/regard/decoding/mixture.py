"""Mixture: several models of one vocabulary as one.

    p(w | h) = sum over i of w_i p_i(w | h)              linear interpolation, Jelinek and Mercer 1980

Parts may count or be neural: a mixture knows only the contract. An n-gram model with a cache (models/cache.py) is the
classic cache model. Weights are fitted on held-out text by expectation maximisation (Dempster, Laird and Rubin 1977):

    w_i <- w_i g_i     with     g_i = mean over t of p_i(w_t | h_t) / p(w_t | h_t)

The loss is convex in w with gradient -g, so that it lies at most max g - 1 nats above the best one: that is when to
stop.

Glossary
w_i   weight of part i; all of them are at least 0 and sum to 1
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.modules.module import _IncompatibleKeys as IncompatibleKeys

from regard.core.config import Config
from regard.core.context import EMPTY, Context
from regard.core.device import wide
from regard.core.model import StatefulModel, TokenModel
from regard.core.state import Chain, State
from regard.decoding.logits import read
from regard.decoding.score import score
from regard.errors import DataError, UsageError

# Nats above the best loss at which fitting ends, and rounds after which it does in any case.
GAP, MOST_ROUNDS = 1e-10, 20_000


def fit_weights(models: Sequence[TokenModel], ids: np.ndarray, start_id: int) -> tuple[float, ...]:
    """The weights with which a mixture of `models` gives the held-out `ids` the lowest loss.

    No single model has a lower one. The first token is predicted from `start_id`. Tokens that no model thinks possible
    say nothing about the weights.
    """
    check_parts(models)
    if len(ids) == 0:
        raise DataError("there are no held-out tokens to fit the weights of a mixture on")
    text = torch.from_numpy(np.asarray(ids, dtype=np.int64))
    scores = [score(model, [text], start_id=start_id)[0].log_probs for model in models]
    log_p = np.array(scores).T  # (T, M)
    best = log_p.max(1, keepdims=True)
    possible = best[:, 0] > -math.inf
    p = np.exp(log_p[possible] - best[possible])
    return tuple(_best_weights(p).tolist())


def _best_weights(p: Float[np.ndarray, "T M"]) -> Float[np.ndarray, "M"]:
    """Expectation maximisation from equal weights; a single model where no mixture is better."""
    n_tokens, n_models = p.shape
    weights = np.full(n_models, 1 / n_models)
    if n_tokens == 0:
        return weights
    for _ in range(MOST_ROUNDS):
        gain = (1 / (p @ weights)) @ p / n_tokens
        if gain.max() - 1 <= GAP:
            break
        weights = weights * gain
        weights /= weights.sum()
    with np.errstate(divide="ignore"):
        alone = np.log(p).mean(0)
    # Weights creep towards a corner and never reach it; where it is the best place, they are put there.
    return np.eye(n_models)[alone.argmax()] if alone.max() > np.log(p @ weights).mean() else weights


def check_parts(models: Sequence[TokenModel]) -> None:
    """Refuse what cannot be mixed."""
    if not models:
        raise UsageError("a mixture needs at least one model")
    sizes = [model.vocab_size for model in models]
    if len(set(sizes)) > 1:
        raise UsageError(
            f"models of a mixture must share one vocabulary, found {', '.join(map(str, sizes))} tokens: "
            f"train them with the same tokenizer"
        )


def check_weights(weights: Sequence[float], n_parts: int) -> tuple[float, ...]:
    """The weights, which must be a distribution over the parts."""
    if len(weights) != n_parts:
        raise UsageError(f"a mixture of {n_parts} models needs as many weights, found {len(weights)}")
    total = math.fsum(weights)
    if not all(weight >= 0 for weight in weights) or not abs(total - 1) < 1e-6:
        raise UsageError(f"weights of a mixture must be at least 0 and sum to 1, found {list(weights)}")
    return tuple(float(weight) / total for weight in weights)


@dataclass(frozen=True)
class MixtureConfig(Config, kind="mixture"):
    """parts: the configs of the models. weights: one for each."""

    parts: tuple[Config, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        check_weights(self.weights, len(self.parts))

    def build(self) -> Mixture:
        return Mixture([part.build() for part in self.parts], self.weights)

    def build_example(self) -> Mixture:
        return Mixture([part.build_example() for part in self.parts], self.weights)


class Mixture(StatefulModel):
    """p = sum of w_i p_i behind the contract; the state is the chain of the parts' states, the logits are log p."""

    permutes = False
    reads = "tokens"

    def __init__(self, models: Sequence[TokenModel], weights: Sequence[float]) -> None:
        super().__init__()
        check_parts(models)
        self.weights = check_weights(weights, len(models))
        self.parts = nn.ModuleList(models)  # pyright: ignore[reportArgumentType]
        self.vocab_size = models[0].vocab_size
        self.max_length = min((m.max_length for m in models if m.max_length is not None), default=None)
        facts = [getattr(model, "stack", model) for model in models]
        self.causal = all(getattr(fact, "causal", True) for fact in facts)
        self.state_grows = any(getattr(fact, "state_grows", False) for fact in facts)
        self.chunk_sizes = tuple(sorted({size for fact in facts for size in getattr(fact, "chunk_sizes", ())}))

    @property
    def config(self) -> MixtureConfig:
        return MixtureConfig(tuple(part.config for part in self.parts), self.weights)  # pyright: ignore

    def init_state(self, batch_size: int) -> Chain:
        return Chain(tuple(part.init_state(batch_size) for part in self.parts))  # pyright: ignore[reportCallIssue]

    def forward(
        self, tokens: Int[Tensor, "B T"], state: Chain, context: Context = EMPTY
    ) -> tuple[Float[Tensor, "B T V"], Chain]:
        """log p of every token after every token."""
        mixed, after = None, []
        for part, own, weight in self._with(state):
            vectors, own = part(tokens, own, context)
            after.append(own)
            shares = part.head(vectors).log_softmax(-1) + weight
            mixed = shares if mixed is None else torch.logaddexp(mixed, shares)
        assert mixed is not None
        return mixed, Chain(tuple(after))

    @torch.no_grad()
    def log_probs(self, tokens: Int[Tensor, "B T1"], state: Chain) -> tuple[Float[Tensor, "B T"], Chain]:
        """log p of every token but the first, float64, and the state before the last one.

        Parts that know single probabilities are asked for those only.
        """
        mixed, after = [], []
        for part, own, weight in self._with(state):
            log_p, _, own = read(part, tokens[:, :-1], tokens[:, 1:], own, best=False)
            mixed.append(wide(log_p) + weight)
            after.append(own)
        return torch.stack(mixed).logsumexp(0), Chain(tuple(after))

    def _with(self, state: Chain) -> Iterator[tuple[Any, State, float]]:
        """Each part with its state and the logarithm of its weight."""
        logs = [math.log(weight) if weight > 0 else -math.inf for weight in self.weights]
        return zip(self.parts, state.parts, logs, strict=True)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Let each part take its own tensors in its own way: a part that counts takes arrays of any length."""
        missing, unexpected = [], [key for key in state_dict if not key.startswith("parts.")]
        for i, part in enumerate(self.parts):
            prefix = f"parts.{i}."
            inner = {key.removeprefix(prefix): state_dict[key] for key in state_dict if key.startswith(prefix)}
            found = part.load_state_dict(inner, strict, assign)
            missing += [prefix + key for key in found.missing_keys]
            unexpected += [prefix + key for key in found.unexpected_keys]
        return IncompatibleKeys(missing, unexpected)
