"""Mixtures of models, with a cache among them: distributions, laws, fitted weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import regard
from answers import answered
from regard.core.config import Config, from_dict
from regard.core.context import Context
from regard.core.model import TokenModel, logits_of
from regard.core.state import Chain
from regard.decoding.mixture import Mixture, MixtureConfig, fit_weights
from regard.decoding.score import score
from regard.errors import DataError, UsageError
from regard.laws.check import LAWS, _run, failures
from regard.laws.subject import VOCABULARY, from_model
from regard.models.cache import CacheConfig
from regard.models.ngram import NgramConfig, NgramModel

TEXT = np.random.default_rng(3).integers(VOCABULARY, size=400)
COUNTED = NgramConfig(VOCABULARY, 3)
CACHE = CacheConfig(VOCABULARY, window=4, decay=0.7)


def fitted(config: NgramConfig, ids: np.ndarray = TEXT) -> NgramModel:
    model = config.build()
    model.estimate(model.count(ids))
    return model


def neural() -> Any:
    torch.manual_seed(5)
    return regard.build("lstm", vocab_size=VOCABULARY, size="tiny").eval()


def loss(model: TokenModel, ids: np.ndarray) -> float:
    return score(model, [torch.from_numpy(ids)], start_id=VOCABULARY - 1)[0].loss


SUBJECTS: dict[str, Config] = {
    "cache": CacheConfig(VOCABULARY, window=4, decay=0.7, prior=0.5),
    "cache of a window": CacheConfig(VOCABULARY, window=3, prior=1.0),
    "n-gram with cache": MixtureConfig((COUNTED, CACHE), (0.8, 0.2)),
    "n-grams of two orders": MixtureConfig((COUNTED, NgramConfig(VOCABULARY, 1)), (0.3, 0.7)),
}


def neural_mixture() -> MixtureConfig:
    """The lstm has nine tenths: the loss of a text that it has learnt by heart is then 0.1."""
    return MixtureConfig((neural().config, CacheConfig(VOCABULARY, 5), COUNTED), (0.9, 0.04, 0.06))


@pytest.mark.parametrize("name", [*SUBJECTS, "lstm, cache and n-gram"])
def test_the_laws_hold(name: str):
    config = SUBJECTS.get(name) or neural_mixture()
    results = list(_run(lambda: from_model(name, config)))
    has_parameters = any(True for _ in config.build().parameters())
    # What has nothing to fit cannot overfit a batch; the fits of a mixture's parts are their own.
    broken = [result for result in failures(results) if has_parameters or result.law != "learn"]
    assert not broken, broken
    held = {result.law for result in results if result.held}
    assert held >= set(LAWS) - {"gradient", "reach", "equivariance", "enumeration", "learn", "source"}
    assert not has_parameters or {"gradient", "learn"} <= held


def test_a_mixture_is_the_weighted_sum_of_its_parts():
    parts = [fitted(COUNTED), neural(), CACHE.build()]
    weights = (0.5, 0.3, 0.2)
    mixture = Mixture([part.double() for part in parts], weights)
    tokens = torch.randint(VOCABULARY, (3, 9))
    logits, state = answered(mixture, tokens, mixture.init_state(3))
    expected = sum(w * logits_of(part, tokens).softmax(-1) for w, part in zip(weights, parts, strict=True))
    torch.testing.assert_close(logits.exp(), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(3, 9, dtype=torch.float64), rtol=0, atol=1e-12)
    assert isinstance(state, Chain)
    assert len(state) == 3
    assert state.position.tolist() == [9, 9, 9]


@pytest.mark.parametrize("config", [COUNTED, CACHE, SUBJECTS["n-gram with cache"]], ids=["n-gram", "cache", "both"])
def test_packed_texts_need_no_state(config: Config):
    model = config.build_example().double()
    texts = [torch.randint(VOCABULARY, (1, size)) for size in (4, 1, 6)]
    packed = logits_of(model, torch.cat(texts, 1), None, Context(offsets=torch.tensor([0, 4, 5, 11])))
    torch.testing.assert_close(packed, torch.cat([logits_of(model, text) for text in texts], 1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("names", [("n-gram", "cache"), ("n-gram", "lstm"), ("lstm", "cache")])
def test_single_probabilities_are_those_of_the_distributions(names: tuple[str, ...]):
    made = {"n-gram": fitted(COUNTED), "cache": CacheConfig(VOCABULARY, 3).build(), "lstm": neural()}
    mixture = Mixture([made[name].double() for name in names], (0.6, 0.4))
    tokens = torch.randint(VOCABULARY, (2, 12))
    logits, after = answered(mixture, tokens[:, :-1], mixture.init_state(2))
    log_p, state = mixture.log_probs(tokens, mixture.init_state(2))
    expected = logits.gather(-1, tokens[:, 1:, None])[..., 0]
    assert log_p.dtype == torch.float64
    torch.testing.assert_close(log_p, expected, rtol=0, atol=1e-12)
    for got, wanted in zip(state.tensors(), after.tensors(), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)


def test_a_part_of_weight_zero_changes_nothing():
    model = fitted(COUNTED).double()
    mixture = Mixture([model, CACHE.build().double()], (1.0, 0.0))
    tokens = torch.randint(VOCABULARY, (2, 8))
    torch.testing.assert_close(logits_of(mixture, tokens), logits_of(model, tokens), rtol=0, atol=1e-12)
    log_p, _ = mixture.log_probs(tokens, mixture.init_state(2))
    torch.testing.assert_close(log_p, model.log_probs(tokens, model.init_state(2))[0], rtol=0, atol=1e-12)


def test_a_mixture_scores_and_generates():
    mixture = Mixture([fitted(COUNTED), CACHE.build()], (0.9, 0.1))
    from regard.decoding.generate import Limits, generate

    drawn = generate(mixture, [torch.tensor([VOCABULARY - 1, 2])], limits=Limits(6, VOCABULARY - 1), seed=1)
    assert 1 <= len(drawn[0].tokens) <= 6
    assert loss(mixture, TEXT[:50]) < math.log(VOCABULARY)


def test_a_mixture_is_read_back_from_its_config_and_tensors():
    mixture = Mixture([fitted(COUNTED), neural()], (0.25, 0.75))
    twin = from_dict(mixture.config.to_dict()).build()
    result = twin.load_state_dict(mixture.state_dict())
    assert result.missing_keys == result.unexpected_keys == []
    tokens = torch.randint(VOCABULARY, (2, 7))
    assert twin.weights == (0.25, 0.75)
    torch.testing.assert_close(twin.eval()(tokens), mixture.eval()(tokens), rtol=0, atol=0)


def test_a_cache_helps_where_words_come_back():
    """Held-out text that keeps to two tokens for long: the cache gets weight and lowers the loss."""
    bursts = np.repeat(np.random.default_rng(0).integers(0, VOCABULARY - 1, (20, 2)), 10, axis=0).ravel()
    models = [fitted(COUNTED), CacheConfig(VOCABULARY, window=10).build()]
    weights = fit_weights(models, bursts, VOCABULARY - 1)
    assert weights[1] > 0.5
    assert loss(Mixture(models, weights), bursts) < loss(models[0], bursts) - 0.3


def held_out() -> np.ndarray:
    return np.random.default_rng(4).choice(VOCABULARY, size=500, p=np.arange(1, VOCABULARY + 1) / 66)


def sharp() -> NgramModel:
    """A model that knows something of the held-out text, and too much of other text."""
    return fitted(NgramConfig(VOCABULARY, 2, "absolute"), held_out()[::-1][:120].copy())


def test_fitted_weights_equal_those_of_a_search():
    models = [fitted(NgramConfig(VOCABULARY, 1, "add_k")), sharp()]
    ids = held_out()
    (w, rest) = fit_weights(models, ids, VOCABULARY - 1)
    assert w + rest == pytest.approx(1, abs=1e-12)
    assert 0.01 < w < 0.99
    log_p = np.array([score(m, [torch.from_numpy(ids)], start_id=VOCABULARY - 1)[0].log_probs for m in models])
    p = np.exp(log_p)
    low, high = 0.0, 1.0
    for _ in range(4):  # a grid ever finer around its best point
        grid = np.linspace(low, high, 101)
        losses = [-np.log(x * p[0] + (1 - x) * p[1]).mean() for x in grid]
        best, step = grid[int(np.argmin(losses))], grid[1] - grid[0]
        low, high = max(0.0, best - 2 * step), min(1.0, best + 2 * step)
    assert w == pytest.approx(best, abs=1e-6)
    assert loss(Mixture(models, (w, rest)), ids) == pytest.approx(min(losses), abs=1e-9)
    assert fit_weights(models, ids, VOCABULARY - 1) == (w, rest)


def test_three_fitted_weights_are_better_than_any_on_a_grid():
    models = [fitted(NgramConfig(VOCABULARY, 1, "add_k")), sharp(), neural()]
    ids = held_out()
    found = loss(Mixture(models, fit_weights(models, ids, VOCABULARY - 1)), ids)
    log_p = np.array([score(m, [torch.from_numpy(ids)], start_id=VOCABULARY - 1)[0].log_probs for m in models])
    grid = [(a, b, 20 - a - b) for a in range(21) for b in range(21 - a)]
    assert found <= min(-np.log(np.array(g) / 20 @ np.exp(log_p)).mean() for g in grid) + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_no_single_model_is_better_than_the_fitted_mixture(seed: int):
    ids = np.random.default_rng(seed).integers(VOCABULARY, size=150)
    own = fitted(NgramConfig(VOCABULARY, 4, "witten_bell"), ids)  # has seen the held-out text: nothing beats it
    for models in ([own, sharp()], [sharp(), own, fitted(COUNTED)], [sharp(), fitted(COUNTED)]):
        weights = fit_weights(models, ids, VOCABULARY - 1)
        assert loss(Mixture(models, weights), ids) <= min(loss(model, ids) for model in models) + 1e-14


def test_a_model_that_finds_the_text_impossible_alone_may_still_help():
    ids = held_out()
    strict = fitted(NgramConfig(VOCABULARY, 2, "mle"), ids[:100].copy())
    models = [strict, fitted(NgramConfig(VOCABULARY, 1, "add_k"))]
    assert loss(strict, ids) == math.inf
    weights = fit_weights(models, ids, VOCABULARY - 1)
    assert 0 < weights[0] < 1
    assert loss(Mixture(models, weights), ids) < loss(models[1], ids)


def test_of_equal_models_none_is_preferred():
    model = fitted(COUNTED)
    assert fit_weights([model, fitted(COUNTED)], TEXT[:50], VOCABULARY - 1) == (0.5, 0.5)
    assert fit_weights([model], TEXT[:50], VOCABULARY - 1) == (1.0,)


def test_different_vocabularies_are_refused_in_one_line():
    models = [fitted(COUNTED), NgramConfig(VOCABULARY + 1, 2).build()]
    for call in (lambda: Mixture(models, (0.5, 0.5)), lambda: fit_weights(models, TEXT, 0)):
        with pytest.raises(UsageError, match="one vocabulary, found 11, 12 tokens: train them with the same tokenizer"):
            call()


def test_impossible_mixtures_are_refused():
    model = fitted(COUNTED)
    for weights in ((0.5,), (0.5, 0.6), (-0.5, 1.5), (math.nan, 0.5)):
        with pytest.raises(UsageError, match="weights"):
            Mixture([model, model], weights)
    with pytest.raises(UsageError, match="at least one model"):
        Mixture([], ())
    with pytest.raises(DataError, match="no held-out tokens"):
        fit_weights([model], np.zeros(0, np.int64), 0)
