"""Worked views: how a model came to a probability, as a calculation that can be followed by hand."""

from regard.explain.ngram import NgramExplanation, explain_ngram
from regard.explain.worked import OrderStep, TokenExplanation

__all__ = ["NgramExplanation", "OrderStep", "TokenExplanation", "explain_ngram"]
