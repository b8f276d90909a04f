"""A text as its tokens come: characters that may be shown, stop strings that end it, and what it was at last."""

from __future__ import annotations

from dataclasses import dataclass, field

from regard.decoding.ending import Finish
from regard.decoding.row import Drawn
from regard.decoding.stop import StopFilter, Streamer
from regard.errors import NumericError


@dataclass(frozen=True)
class Piece:
    """One token of one row as it comes.

    text      what may be shown now: never half a character, never part of a stop string. "" without a streamer.
    log_prob  under the raw distribution.
    finish    why the row ends with this token, or None.
    """

    row: int
    token: int
    log_prob: float
    text: str
    finish: Finish | None


@dataclass(frozen=True)
class Generation:
    """A finished row.

    tokens     all that were drawn, an ending token or those that spell a stop string among them.
    log_probs  of each token under the raw distribution.
    finish     "eos", "stop" (a stop string), "length" (max_tokens) or "context" (the model's window is full).
    text       what was shown: neither the stop string nor the ending token is part of it. "" without a streamer.
    slides     how often the context was cut to half a window.
    """

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    finish: Finish
    text: str
    slides: int


@dataclass
class StreamedText:
    """A prompt and what has been drawn after it, as text."""

    number: int
    prompt: list[int]
    streamer: Streamer | None
    filter: StopFilter
    slides: int = 0
    finish: Finish | None = None
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    def push(self, drawn: Drawn) -> Piece:
        """Take one drawn token; a stop string that it completes ends the text."""
        if drawn.finish == "numeric":
            where = f"token {len(self.tokens)} of prompt {self.number}"
            raise NumericError(f"the model's logits for {where} are not numbers")
        self.tokens.append(drawn.token)
        self.log_probs.append(drawn.log_prob)
        self.finish, self.slides, text = drawn.finish, drawn.slides, ""
        if self.streamer is not None:
            if self.finish != "eos":
                text = self.filter.push(self.streamer.push(drawn.token))
            if self.finish is not None:
                text += self.filter.push(self.streamer.finish())
                text += self.filter.finish()
        if self.filter.stopped:
            self.finish = "stop"
        self.shown.append(text)
        return Piece(self.number, drawn.token, drawn.log_prob, text, self.finish)

    def generation(self) -> Generation:
        assert self.finish is not None
        shown = "".join(self.shown)
        return Generation(tuple(self.tokens), tuple(self.log_probs), self.finish, shown, self.slides)
