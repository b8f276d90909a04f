"""Completion: what a run writes after an input, as requests of an engine that many of them share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from regard.core.model import TokenModel
from regard.core.state import State
from regard.decoding.prompt import check_tokens
from regard.decoding.stop import Streamer
from regard.decoding.text import TextGenerator

if TYPE_CHECKING:
    from regard.data.tokenizer import Tokenizer


@dataclass(frozen=True)
class Opened:
    """An input, ready to be gone on with.

    given     its own tokens, without what stands before or after every input.
    tokens    what is read before the first token is drawn.
    streamer  makes what turns one continuation into text.
    start     a state and the row of it to begin with; None for the model's own beginning.
    most      tokens that may be drawn at most, where the input says so.
    """

    given: list[int]
    tokens: list[int]
    streamer: Callable[[], Streamer]
    start: tuple[State, int] | None = None
    most: int | None = None


class Completion(Protocol):
    """A run that completes inputs. window: tokens of context at most, None for the model's own limit."""

    @property
    def model(self) -> TokenModel: ...
    @property
    def tokenizer(self) -> Tokenizer:
        """Of what is written."""
        ...

    @property
    def end_id(self) -> int: ...
    @property
    def window(self) -> int | None: ...
    @property
    def continues(self) -> bool:
        """Whether what is written goes on with the input itself, so that both are one text of one distribution."""
        ...

    @property
    def of_turns(self) -> Completion | None:
        """The same for conversations as a template writes them; None where there is no template."""
        ...

    def opened(self, given: str | Sequence[int]) -> Opened:
        """An input as text, or as tokens."""
        ...


@dataclass(frozen=True)
class TextCompletion:
    """Texts that go on."""

    writer: TextGenerator

    @property
    def model(self) -> TokenModel:
        return self.writer.model

    @property
    def tokenizer(self) -> Tokenizer:
        return self.writer.tokenizer

    @property
    def end_id(self) -> int:
        return self.writer.end_id

    @property
    def window(self) -> int | None:
        return self.writer.window

    @property
    def continues(self) -> bool:
        return True

    @property
    def of_turns(self) -> TextCompletion | None:
        return TextCompletion(replace(self.writer, in_turns=True)) if self.tokenizer.chat else None

    def opened(self, given: str | Sequence[int]) -> Opened:
        """Tokens may say themselves how they begin; a text never does."""
        ids = self.tokenizer.encode(given).tolist() if isinstance(given, str) else list(given)
        check_tokens(self.model, ids, "the prompt")
        start = self.tokenizer.start_id
        begun = self.writer.in_turns or (not isinstance(given, str) and ids[:1] == [start])
        return Opened(ids, ids if begun and ids else [start, *ids], lambda: self._streamer(ids))

    def _streamer(self, ids: Sequence[int]) -> Streamer:
        """One that has seen the input, and so knows whether a space belongs before the first word."""
        from regard.data.tokenizer import streamer

        text = streamer(self.tokenizer)
        for token in ids:
            text.push(token)
        return text
