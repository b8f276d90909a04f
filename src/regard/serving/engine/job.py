"""A request underway: its continuations as they grow, and the events that tell of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.decoding.completion import Completion, Opened
from regard.decoding.constraint import FormRule
from regard.decoding.prompt_reading import PromptReading
from regard.decoding.row import Drawn
from regard.decoding.stop import StopFilter
from regard.decoding.streamed_text import StreamedText
from regard.errors import UsageError
from regard.serving.engine.ask import Ask
from regard.serving.engine.spelling import Spelling

Event = list[Any]


@dataclass
class Grown:
    """What came to one continuation in one step of the engine."""

    text: str = ""
    tokens: int = 0
    finish: str | None = None
    logprobs: list[Any] = field(default_factory=list)


class Job:
    """choices: the continuations. reading: of the prompt's own probabilities, while it is underway.

    forms: the rules of those that have to match a pattern.
    """

    def __init__(self, ask: Ask, completion: Completion, opened: Opened) -> None:
        self.ask, self.completion, self.opened = ask, completion, opened
        self.choices = [
            StreamedText(number, opened.tokens, opened.streamer(), StopFilter(ask.stop)) for number in range(ask.n)
        ]
        before = opened.given if completion.continues else []
        self.spellings = [Spelling(completion.tokenizer, before) for _ in self.choices]
        self.reading: PromptReading | None = None
        self.forms: list[FormRule] = []
        self.left = ask.n

    def begun(self) -> dict[str, Any]:
        """The first thing that is told: how large the prompt is."""
        text = self._text_of(self.opened.given) if self.ask.echo else ""
        return {"begun": self.ask.number, "prompt_tokens": len(self.opened.given), "text": text}

    def events(self, drawn: Sequence[tuple[int, Drawn]]) -> Iterator[tuple[int, Event]]:
        """What is told of the tokens of a step, once for each continuation that grew. Pairs of its number and event."""
        if any(form.stuck for form in self.forms):
            raise UsageError("the vocabulary has no token with which the text could go on to match the pattern")
        grown: dict[int, Grown] = {}
        for number, one in drawn:
            choice = self.choices[number]
            if choice.finish is not None:
                continue  # drawn before a stop string was seen to be complete
            found = grown.setdefault(number, Grown())
            piece = choice.push(one)
            found.text += piece.text
            found.tokens += 1
            found.finish = piece.finish
            # Of completions the end is told too: clients count on as many numbers as tokens, and a turn has none.
            if self.ask.logprobs is not None and (piece.finish != "eos" or self.ask.messages is None):
                found.logprobs.append(self.spellings[number].told(one.token, one.log_prob, one.likeliest))
        for number, found in grown.items():
            if found.finish is not None:
                self.left -= 1
            yield number, self._event(number, found)

    def ended(self, finish: str) -> list[Event]:
        """The events of all continuations that end without another token."""
        open_ones = [number for number, choice in enumerate(self.choices) if choice.finish is None]
        self.left = 0
        return [self._event(number, Grown(finish=finish)) for number in open_ones]

    def echoed(self) -> dict[str, Any]:
        """The prompt's tokens with their probabilities."""
        reading, given = self.reading, self.opened.given
        assert reading is not None
        likeliest = reading.likeliest or [()] * len(reading.log_probs)
        # Tokens that begin a text themselves have nothing before them that would say how probable they are.
        first = len(given) - len(reading.log_probs)
        spelling = Spelling(self.completion.tokenizer)
        told = [spelling.told(token, None, ()) for token in given[:first]]
        for token, log_prob, likely in zip(given[first:], reading.log_probs, likeliest, strict=True):
            told.append(spelling.told(token, log_prob, likely))
        return {"echoed": self.ask.number, "logprobs": told}

    def _event(self, number: int, found: Grown) -> Event:
        return [self.ask.number, number, found.text, found.tokens, found.finish, found.logprobs]

    def _text_of(self, tokens: Sequence[int]) -> str:
        asked = self.ask.prompt
        return asked if isinstance(asked, str) else self.completion.tokenizer.decode(tokens)
