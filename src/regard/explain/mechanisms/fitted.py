"""Fitted models: what there is to see of them, without vectors or gradients."""

from __future__ import annotations

from regard.explain.mechanism import Mechanism, register_mechanism
from regard.explain.mechanisms import sums
from regard.layers.crf import CrfHead
from regard.models.crf import Crf
from regard.models.gram_classifier import GramClassifier
from regard.models.hmm import Hmm
from regard.models.ibm1 import Ibm1
from regard.models.linear_forecaster import LinearForecaster
from regard.models.linear_half import LinearHalf
from regard.models.ngram import NgramModel
from regard.models.soft_lookup import SoftLookup
from regard.models.word_tagger import WordTagger

register_mechanism(NgramModel, Mechanism("n-grams", "an n-gram model", shows=frozenset({"orders"}), parts=sums.orders))
register_mechanism(
    GramClassifier,
    Mechanism("n-grams", "a sum over n-grams", shows=frozenset({"evidence", "gram weights"}), parts=sums.evidence),
)
register_mechanism(LinearHalf, Mechanism("n-grams", "a sum over n-grams", shows=frozenset({"evidence"}), rank=9))
register_mechanism(LinearForecaster, Mechanism("lags", "a sum over lags", shows=frozenset({"lags"}), parts=sums.lags))
register_mechanism(Ibm1, Mechanism("lexicon", "a lexicon"))
register_mechanism(SoftLookup, Mechanism("lookup", "a soft lookup", shows=frozenset({"neighbours"}), parts=sums.lookup))
register_mechanism(WordTagger, Mechanism("words", "a table of words", shows=frozenset({"emissions"})))
register_mechanism(Hmm, Mechanism("hmm", "a hidden Markov model", shows=frozenset({"emissions", "transitions"})))
register_mechanism(Crf, Mechanism("crf", "a chain of tags", shows=frozenset({"emissions", "transitions"})))
register_mechanism(
    CrfHead,
    Mechanism(
        "crf",
        "a chain of tags",
        order=lambda _: "weighs tags beside each other",
        shows=frozenset({"transitions"}),
        rank=9,
    ),
)
