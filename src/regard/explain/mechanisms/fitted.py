"""Fitted models: what there is to see of them, without vectors or gradients."""

from __future__ import annotations

from regard.explain.mechanism import Mechanism, register_mechanism
from regard.models.gram_classifier import GramClassifier
from regard.models.ibm1 import Ibm1
from regard.models.linear_forecaster import LinearForecaster
from regard.models.ngram import NgramModel
from regard.models.soft_lookup import SoftLookup

register_mechanism(NgramModel, Mechanism("n-grams", "an n-gram model", shows=frozenset({"orders"})))
register_mechanism(GramClassifier, Mechanism("n-grams", "a sum over n-grams", shows=frozenset({"evidence"})))
register_mechanism(LinearForecaster, Mechanism("lags", "a sum over lags", shows=frozenset({"lags"})))
register_mechanism(Ibm1, Mechanism("lexicon", "a lexicon"))
register_mechanism(SoftLookup, Mechanism("lookup", "a soft lookup", shows=frozenset({"neighbours"})))
