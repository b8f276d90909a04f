"""Fitted models: what there is to see of them, without vectors or gradients."""

from __future__ import annotations

from regard.explain.mechanism import Mechanism, register_mechanism
from regard.models.gram_classifier import GramClassifier
from regard.models.linear_forecaster import LinearForecaster
from regard.models.ngram import NgramModel

register_mechanism(NgramModel, Mechanism("n-grams", "an n-gram model", shows=frozenset({"orders"})))
register_mechanism(GramClassifier, Mechanism("n-grams", "a sum over n-grams", shows=frozenset({"evidence"})))
register_mechanism(LinearForecaster, Mechanism("lags", "a sum over lags", shows=frozenset({"lags"})))
