"""The probabilities of an n-gram model as worked calculations: which orders matched, and what each of them added.

    p(w | h) = (c - D) / N + gamma(h) x p(w | h')                              interpolated
    p(w | h) = (c - D) / N where h w was seen, else beta(h) x p(w | h')        back-off
    p(w)     = (c - D) / N + gamma x 1/n                                       the shortest order, always interpolated

A calculation goes from the shortest order that takes part to the longest, so that every number on the right of a line
stands in a line before it, and the last line is the probability. The same steps in the same order as in
`regard.ngram.table`, so that both give the same number.

Glossary
h, h'     the tokens before w, and the same without the first of them; <s> begins a sentence and </s> ends it
c         count of h w; below the highest order of the Kneser-Ney kinds the continuation count, the number of different
          tokens before h w, except that an n-gram that begins a sentence keeps its count
D         discount: what is taken off a count of c
N         what is divided by: the counts after h, and what the smoothing adds to them
alpha     (c - D) / N, or what was given without counts
gamma     the weight of p(w | h') after h: beta where the model backs off, and for p(w) that of the uniform 1/n
matched   the longest order whose n-gram was seen, 0 when not even w was and only the uniform part is left
path      the orders that were tried, from the longest the sentence allows to the one that matched
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from regard.decoding.score import perplexity
from regard.decoding.scored_text import shown
from regard.errors import UsageError
from regard.explain.ngram_lines import OrderStep, TokenExplanation, worked
from regard.models.ngram import NgramModel
from regard.ngram.level import Values
from regard.ngram.shares import Rules
from regard.ngram.smoothing import CONTINUATION
from regard.ngram.table import ABSENT, NgramTable
from regard.terminal.table import power_of_ten, show_table

if TYPE_CHECKING:
    from regard.data.tokenizer import Tokenizer

BEGIN, END = "<s>", "</s>"


@dataclass(frozen=True)
class NgramExplanation:
    """A text, its end included, with the calculation of every token. Positions count from 1."""

    text: str
    order: int
    rules: Rules
    n_base: int
    tokens: tuple[TokenExplanation, ...]
    columns: ClassVar[tuple[str, ...]] = ("position#", "token", "matched#", "path", "p#", "log p#")

    @property
    def log_prob(self) -> float:
        """log p of the text and its end, in nats."""
        return math.fsum(token.log_prob for token in self.tokens)

    @property
    def perplexity(self) -> float:
        return perplexity(-self.log_prob / len(self.tokens))

    def token(self, position: int) -> TokenExplanation:
        """The token at a position."""
        if not 1 <= position <= len(self.tokens):
            raise UsageError(
                f"position {position}: the text has positions 1 to {len(self.tokens)}, the last one its end"
            )
        return self.tokens[position - 1]

    def steps(self, position: int) -> list[str]:
        """The worked calculation of one token; its last line gives p and log p."""
        return worked(self.token(position), self.rules, self.n_base)

    def rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """Position, token, longest matched order, path, p and log p."""
        return [
            (
                str(token.position),
                shown(token.text),
                str(token.matched),
                token.shown_path,
                power_of_ten(token.log_prob),
                f"{token.log_prob:.4f}",
            )
            for token in self.tokens
        ]

    def totals(self) -> str:
        """One line: log p and perplexity."""
        n_tokens = len(self.tokens)
        return f"log p {self.log_prob:.4f} over {n_tokens} tokens with the end, perplexity {self.perplexity:.4g}"

    def show(self) -> None:
        """Print the table and the totals."""
        show_table(self.columns, self.rows())
        print(self.totals())

    def token_dict(self, position: int) -> dict[str, Any]:
        """One token as plain JSON values, its calculation as numbers and as lines."""
        token = self.token(position)
        return {
            "position": position,
            "text": token.text,
            "id": token.id,
            "matched_order": token.matched,
            "path": list(token.path),
            "probability": token.probability,
            "log_prob": token.log_prob,
            "orders": [asdict(step) | {"context": list(step.context)} for step in token.orders],
            "steps": self.steps(position),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "text": self.text,
            "order": self.order,
            "smoothing": self.rules.smoothing,
            "interpolate": self.rules.interpolate,
            "log_prob": self.log_prob,
            "perplexity": self.perplexity,
            "tokens": [self.token_dict(token.position) for token in self.tokens],
        }


def explain_ngram(model: NgramModel, tokenizer: Tokenizer, text: str) -> NgramExplanation:
    """The calculation of every token of `text`, and of its end, from the beginning of a sentence on."""
    if tokenizer.vocab_size != model.vocab_size:
        raise UsageError(
            f"the model has a vocabulary of {model.vocab_size} and the tokenizer one of {tokenizer.vocab_size}: "
            f"explain a text with the tokenizer that the model was fitted with"
        )
    end = tokenizer.eos_id
    reader = _Reader.of(model.table, [end, *tokenizer.encode(text).tolist(), end], tokenizer)
    tokens = tuple(reader.token(position) for position in range(1, len(reader.ids)))
    return NgramExplanation(text, model.config.order, model.config.rules, int(model.table.root[1]), tokens)


def explain_last(model: NgramModel, tokenizer: Tokenizer, ids: list[int]) -> TokenExplanation:
    """The calculation of the last of some tokens, after the others alone."""
    return _Reader.of(model.table, ids, tokenizer).token(len(ids) - 1)


@dataclass(frozen=True)
class _Reader:
    """A text with its places in the table.

    contexts, found  by order from 2 on and by position: the place of h, and that of h w.
    """

    table: NgramTable
    ids: list[int]
    texts: list[str]
    contexts: list[list[int]]
    found: list[list[int]]

    @classmethod
    def of(cls, table: NgramTable, ids: list[int], tokenizer: Tokenizer) -> _Reader:
        tokens = torch.tensor([ids], device=table.root.device)
        places = table.places(tokens, table.order)
        lengths = range(1, table.order)
        contexts = [[ABSENT, *table.contexts(places[n - 1], tokens, n)[0, :-1].tolist()] for n in lengths]
        texts = [BEGIN, *(tokenizer.token_text(token) for token in ids[1:-1]), END]
        return cls(table, ids, texts, contexts, [place[0].tolist() for place in places[1:]])

    def token(self, position: int) -> TokenExplanation:
        """All that is known of the token at a position."""
        longest = 1 + sum(context[position] != ABSENT for context in self.contexts)
        uniform = float(self.table.uniform[self.ids[position]])
        if self.table.rules.smoothing == "add_k" and longest > 1:
            steps = [self._longer(longest, position, uniform)]  # it never leaves the longest context
        else:
            steps = [self._word(position, uniform)]
            for order in range(2, longest + 1):
                steps.append(self._longer(order, position, steps[-1].probability))
        matched = max((step.order for step in steps if step.seen), default=0)
        if not self.table.rules.interpolate:
            steps = [step for step in steps if step.order >= matched]
        tried = [step.order for step in reversed(steps) if step.order >= matched]
        path = tuple(tried) if matched else (*tried, 0)
        return TokenExplanation(position, self.ids[position], self.texts[position], tuple(steps), path)

    def _word(self, position: int, uniform: float) -> OrderStep:
        """Order 1: the token by itself, above the uniform distribution."""
        word, alphas = self.ids[position], self.table.level(1).alpha
        alpha, gamma = _at(alphas, word), float(self.table.root[0])
        count, divisor = _counted(alphas, word)
        return OrderStep(
            order=1,
            context=(),
            seen=alpha > 0 if count is None else count > 0,
            context_seen=True,
            count=count,
            continuation=self._continues(1, position),
            discount=self._discount(1, count),
            divisor=divisor,
            alpha=alpha,
            gamma=gamma,
            lower=uniform,
            probability=alpha + gamma * uniform,
        )

    def _longer(self, order: int, position: int, lower: float) -> OrderStep:
        """An order above the first. The one place that repeats what NgramTable.probabilities does."""
        context, place = self.contexts[order - 2][position], self.found[order - 2][position]
        alphas, gammas = self.table.level(order).alpha, self.table.level(order - 1).gamma
        seen, gamma = place >= 0, _at(gammas, context) if context >= 0 else 1.0
        first, last = self._following(order, context)
        alpha = _at(alphas, place) if seen else 0.0
        count, divisor = _counted(alphas, place if seen else first) if last > first else (None, None)
        count = count if seen or count is None else 0
        mixed = self.table.rules.interpolate or not seen
        return OrderStep(
            order=order,
            context=tuple(self.texts[position - order + 1 : position]),
            seen=seen,
            context_seen=last > first or gamma != 1,
            count=count,
            continuation=self._continues(order, position),
            discount=self._discount(order, count),
            divisor=divisor,
            alpha=alpha,
            gamma=gamma,
            lower=lower if mixed else None,
            probability=alpha + gamma * lower if mixed else alpha,
        )

    def _following(self, order: int, context: int) -> tuple[int, int]:
        """Where the n-grams after a context begin and end."""
        if context < 0:
            return 0, 0
        first, last = self.table.level(order).following(torch.tensor([context], device=self.table.root.device))
        return int(first), int(last)

    def _continues(self, order: int, position: int) -> bool:
        """Whether the count is a continuation count."""
        begins = order > 1 and self.ids[position - order + 1] == self.table.eos_id
        return self.table.rules.smoothing in CONTINUATION and order < self.table.order and not begins

    def _discount(self, order: int, count: int | None) -> float | None:
        if count is None:
            return None
        return float(self.table.discounts[order - 1, min(count, 3) - 1]) if count else 0.0


def _at(values: Values, place: int) -> float:
    return float(values.at(torch.tensor([place], device=values.codes.device)))


def _counted(values: Values, place: int) -> tuple[int | None, float | None]:
    """The count at a place and what it was divided by, where the model keeps them."""
    if len(values.counts) == 0:
        return None, None
    entry = values.entry(torch.tensor([place], device=values.codes.device))
    return int(values.counts[entry]), float(values.totals[entry])
