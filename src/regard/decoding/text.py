"""Prompts in, texts out: a tokenizer and the decoders put together.

A prompt is read after the start symbol, so the empty prompt is a text from its beginning.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.core.model import TokenModel
from regard.decoding.beam import Hypothesis, beam_search
from regard.decoding.draft import Drafter
from regard.decoding.generate import Limits, generate, stream
from regard.decoding.logits_processing import Sampling
from regard.decoding.penalty import LengthPenalty
from regard.decoding.score import TextSize, score
from regard.decoding.scored_text import ScoredText
from regard.errors import UsageError, nearest

if TYPE_CHECKING:
    from regard.data.tokenizer import Streamer, Tokenizer

AT_ONCE = 32  # prompts that are continued side by side


@dataclass(frozen=True)
class TextOptions:
    """How a text is written.

    max_tokens      tokens at most.
    temperature     0 is greedy.
    top_k           draw among the k most probable tokens; None for all.
    top_p           draw among the fewest tokens that hold this mass.
    min_p           draw among tokens at least this times as probable as the best one.
    stop            strings that end a text; they are not part of it.
    seed            of the random draws.
    beam            width of the beam; None draws at random instead of searching.
    length_penalty  of the beam: none, power or gnmt; with strength `alpha`.
    coverage        of the beam, where the text has a source: strength beta of the coverage penalty.
    n_best          texts of the beam that are told, where the text has a source.
    draft           what proposes tokens that the model accepts or not, several in one read; None for none.
    """

    max_tokens: int = 200
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    stop: tuple[str, ...] = ()
    seed: int = 0
    beam: int | None = None
    length_penalty: str = "none"
    alpha: float = 0.6
    coverage: float = 0.0
    n_best: int = 1
    draft: Drafter | None = None

    def __post_init__(self) -> None:
        if self.beam is not None and self.draft is not None:
            raise UsageError(
                "a draft proposes tokens to a text that is drawn, not searched for; leave out draft or beam"
            )
        if self.beam is not None and self.stop:
            raise UsageError("a beam searches whole texts and knows no stop strings; leave out --stop or --beam")
        drawn = ("temperature", "top_k", "top_p", "min_p")
        given = [name for name in drawn if getattr(self, name) != getattr(TextOptions, name)]
        if self.beam is not None and given:
            raise UsageError(f"a beam searches and draws nothing; leave out {', '.join(given)} or beam")
        if self.coverage and self.beam is None:
            raise UsageError("coverage ranks the texts of a beam; say beam as well")
        ranks = [name for name in ("length_penalty", "alpha") if getattr(self, name) != getattr(TextOptions, name)]
        if ranks and self.beam is None:
            raise UsageError(f"{ranks[0]} ranks the texts of a beam; say beam as well")
        if ranks == ["alpha"]:
            raise UsageError("alpha is the strength of a length penalty; say length_penalty=gnmt or power as well")
        if self.n_best != 1 and not 1 <= self.n_best <= (self.beam or 0):
            raise UsageError(f"n_best, found {self.n_best}, are texts of a beam, at most as many as it is wide")
        if isinstance(self.stop, str):
            object.__setattr__(self, "stop", (self.stop,))

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_k, self.top_p, self.min_p)

    @property
    def penalty(self) -> LengthPenalty:
        return LengthPenalty(self.length_penalty, self.alpha)  # pyright: ignore[reportArgumentType]  # checked there


def options_from(values: dict[str, Any]) -> TextOptions:
    """Options from keywords; an unknown one names the nearest."""
    known = [field.name for field in dataclasses.fields(TextOptions)]
    for name in values:
        if name not in known:
            raise UsageError(f"generate has no option {name!r}{nearest(name, known)}")
    return TextOptions(**values)


@dataclass(frozen=True)
class Text:
    """A prompt and what was written after it.

    log_prob  of the continuation under the model's own distribution, in nats.
    finish    "eos", "stop", "length" or "context".
    """

    prompt: str
    continuation: str
    tokens: int
    log_prob: float
    finish: str

    @property
    def text(self) -> str:
        return self.prompt + self.continuation

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text} | vars(self)


@dataclass(frozen=True)
class TextGenerator:
    """A model and its tokenizer.

    window    tokens of context it was trained on, where it would look further back than it has learnt to.
    in_turns  prompts are conversations as a template writes them, which say themselves how a text begins; what is
              written ends with a turn.
    """

    model: TokenModel
    tokenizer: Tokenizer
    window: int | None = None
    in_turns: bool = False

    def write(self, prompts: Sequence[str], options: TextOptions, *, copies: int = 1) -> list[Text]:
        """Each prompt continued `copies` times. Text i depends on the seed and on i, not on the texts beside it."""
        if options.coverage:
            raise UsageError("coverage is of a source, and a text that is continued has none; leave it out")
        if options.n_best != 1:
            raise UsageError("n_best is of texts that have a source; say how many of each prompt with copies (--n)")
        if options.beam is not None:
            return self._search(prompts, options, copies)
        repeated = [prompt for prompt in prompts for _ in range(copies)]
        # Each row's streamer has seen its prompt, so that it knows whether a space belongs before the first word.
        streamers = iter([self._streamer(prompt) for prompt in repeated])
        drawn = generate(
            self.model,
            [self.prompt_ids(prompt) for prompt in repeated],
            limits=self._limits(options),
            settings=options.sampling,
            streamer=lambda: next(streamers),
            seed=options.seed,
            slots=AT_ONCE,
            draft=options.draft,
        )
        return [
            Text(prompt, found.text, len(found.tokens), sum(found.log_probs), found.finish)
            for prompt, found in zip(repeated, drawn, strict=True)
        ]

    def stream(self, prompt: str, options: TextOptions) -> Iterator[str]:
        """The continuation of one prompt, piece by piece as it is drawn."""
        pieces = stream(
            self.model,
            [self.prompt_ids(prompt)],
            limits=self._limits(options),
            settings=options.sampling,
            streamer=lambda: self._streamer(prompt),
            seed=options.seed,
            draft=options.draft,
        )
        return (piece.text for piece in pieces if piece.text)

    def score(self, text: str) -> ScoredText:
        """log p of every token of `text`."""
        ids = self.tokenizer.encode(text)
        spelling = self.tokenizer.spelling(self.tokenizer.unknown_sizes(text))
        size = TextSize.of(text, float(spelling.sum()))
        given = [torch.from_numpy(ids)]
        (found,) = score(self.model, given, start_id=self.tokenizer.start_id, sizes=[size], window=self.window)
        return ScoredText(text, found, tuple(self.tokenizer.token_text(token) for token in found.tokens))

    def prompt_ids(self, prompt: str) -> Tensor:
        """The start symbol and the tokens of `prompt`, (T,)."""
        start = [] if self.in_turns else [self.tokenizer.start_id]
        return torch.cat([torch.tensor(start, dtype=torch.long), torch.from_numpy(self.tokenizer.encode(prompt))])

    @property
    def end_id(self) -> int:
        """The token that ends what is written."""
        return self.tokenizer.turn_id if self.in_turns else self.tokenizer.eos_id

    def _limits(self, options: TextOptions) -> Limits:
        return Limits(options.max_tokens, self.end_id, tuple(options.stop), window=self.window)

    def _streamer(self, prompt: str) -> Streamer:
        """A streamer that has seen the prompt."""
        from regard.data.tokenizer import streamer

        text = streamer(self.tokenizer)
        for token in self.tokenizer.encode(prompt).tolist():
            text.push(token)
        return text

    def _search(self, prompts: Sequence[str], options: TextOptions, copies: int) -> list[Text]:
        assert options.beam is not None
        results = beam_search(
            self.model,
            [self.prompt_ids(prompt) for prompt in prompts],
            width=options.beam,
            max_tokens=options.max_tokens,
            eos_id=self.end_id,
            penalty=options.penalty,
            n_best=copies,
        )
        return [
            self._found(prompt, hypothesis)
            for prompt, result in zip(prompts, results, strict=True)
            for hypothesis in result.best
        ]

    def _found(self, prompt: str, hypothesis: Hypothesis) -> Text:
        text = self._streamer(prompt)
        continuation = "".join(text.push(token) for token in hypothesis.tokens) + text.finish()
        return Text(prompt, continuation, len(hypothesis.tokens), hypothesis.log_prob, str(hypothesis.finish))
