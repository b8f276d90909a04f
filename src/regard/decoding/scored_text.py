"""A text with the probability of each of its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from regard.charts.notebook import cell_table, shaded, told
from regard.decoding.score import Score
from regard.terminal.table import power_of_ten, show_table

SHOWN = 40  # characters of a text where there is little room
UNLIKELY = 7.0  # nats from which on a token is as dark as can be: one in a thousand


@dataclass(frozen=True, repr=False)
class ScoredText:
    """A text with log p of each token and the chain-rule product p(w_1 .. w_n) = prod_t p(w_t | w_1 .. w_(t-1))."""

    text: str
    score: Score
    token_texts: tuple[str, ...]
    columns: ClassVar[tuple[str, ...]] = ("token", "log p#", "p#", "log p so far#", "p so far#")

    @property
    def log_prob(self) -> float:
        """log p of the whole text, in nats."""
        return self.score.log_prob

    @property
    def perplexity(self) -> float:
        """Between how many equally likely tokens the model wavered, on average."""
        return self.score.perplexity

    @property
    def bits_per_character(self) -> float | None:
        """None of a text without characters."""
        return self.score.bits_per_character

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Token, log p, p, and the product so far as a logarithm and as itself."""
        return [
            (shown(token), f"{log_prob:.4f}", power_of_ten(log_prob), f"{total:.4f}", power_of_ten(total))
            for token, log_prob, total in zip(self.token_texts, self.score.log_probs, self.score.running, strict=True)
        ]

    def totals(self) -> str:
        """One line: log p, perplexity, bits per character."""
        bits = self.bits_per_character
        tail = "" if bits is None else f", {bits:.4f} bits per character"
        return f"log p {self.log_prob:.4f} over {len(self.token_texts)} tokens, perplexity {self.perplexity:.4g}{tail}"

    def show(self) -> None:
        """Print the table and the totals."""
        show_table(self.columns, self.rows())
        print(self.totals())

    def __repr__(self) -> str:
        return f"ScoredText({self.text[:SHOWN]!r}{'...' if len(self.text) > SHOWN else ''}: {self.totals()})"

    def _repr_html_(self) -> str:
        """The tokens of a text, in a notebook, the darker the less they were expected, and their numbers below."""
        tokens = zip(self.token_texts, self.score.log_probs, self.rows(), strict=True)
        words = [(token, -log_prob / UNLIKELY, f"p {row[2]}") for token, log_prob, row in tokens]
        table = cell_table([name.rstrip("#") for name in self.columns], self.rows())
        return f"{shaded(words)}<p>{told(self.totals())}</p><details><summary>tokens</summary>{table}</details>"

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain keys, a mapping for each token."""
        pairs = zip(self.token_texts, self.score.tokens, self.score.log_probs, self.score.running, strict=True)
        return {
            "text": self.text,
            "log_prob": self.log_prob,
            "perplexity": self.perplexity,
            "bits_per_character": self.bits_per_character,
            "bits_per_byte": self.score.bits_per_byte,
            "tokens": [{"text": t, "id": i, "log_prob": p, "log_prob_so_far": total} for t, i, p, total in pairs],
        }


def shown(token: str) -> str:
    """A token with its blanks made visible.

    >>> shown(" a"), shown("\\n"), shown("é")
    ('␣a', '\\\\n', 'é')
    """
    return "".join("␣" if c == " " else c if c.isprintable() else repr(c)[1:-1] for c in token) or "(empty)"
