"""The continuations of a request, put together from what the engine tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.serving.http.errors import Error
from regard.serving.http.offsets import Offsets, offsets_in
from regard.serving.wire import Message

# Why a text ended, in the words that clients know.
FINISH = {"eos": "stop", "stop": "stop", "length": "length", "context": "length"}

# A token: number, text, log p, the likeliest of its place, and what it spells, a character for each byte.
Told = list[Any]


@dataclass
class Change:
    """What came to one continuation: text, the tokens of it, and why it ended, if it did.

    offsets  where the tokens that are told begin in the whole text.
    """

    index: int
    text: str = ""
    tokens: int = 0
    logprobs: list[Told] = field(default_factory=list)
    finish: str | None = None
    offsets: list[int] = field(default_factory=list)

    def add(self, later: Change) -> None:
        """Take what came to it later."""
        self.text += later.text
        self.tokens += later.tokens
        self.logprobs += later.logprobs
        self.offsets += later.offsets
        self.finish = later.finish or self.finish


class Continued:
    """A prompt and what is told of its continuations.

    places  of its continuations among all of the request. open: those that have not ended.
    held    what waits until the probabilities of the prompt are there, which stands before it; None: nothing waits.
    """

    def __init__(self, places: range, waits: bool) -> None:
        self.places, self.open = places, set(places)
        self.text = ""
        self.offsets: list[Offsets] = []
        self.held: list[Change] | None = [] if waits else None

    @property
    def done(self) -> bool:
        return not self.open and self.held is None

    def begin(self, text: str) -> list[Change]:
        """The prompt, "" where it is not part of the answer."""
        self.text = text
        self.offsets = [Offsets(len(text)) for _ in self.places]
        return [Change(place, text) for place in self.places] if text and self.held is None else []

    def echo(self, logprobs: list[Told]) -> list[Change]:
        """The prompt with its probabilities before each continuation, and what these had to wait with."""
        held, self.held = self.held or [], None
        offsets = offsets_in(self.text, map(_spelt, logprobs))
        before = [Change(place, self.text, 0, list(logprobs), offsets=list(offsets)) for place in self.places]
        return [*before, *held]

    def go_on(self, change: Change) -> list[Change]:
        """What came to a continuation, if it may be told already."""
        if change.finish is not None:
            self.open.discard(change.index)
        offsets = self.offsets[self.places.index(change.index)]
        change.offsets = [offsets.next(*_spelt(told)) for told in change.logprobs]
        if self.held is None:
            return [change]
        self.held.append(change)
        return []

    def cut(self, finish: str) -> list[Change]:
        """The continuations that are open end here."""
        changes = [Change(place, finish=finish) for place in sorted(self.open)]
        self.open.clear()
        return changes


class Choices:
    """numbers: of the engine's requests, one for each prompt; n: continuations of each.

    waits    whether a prompt is told with its probabilities, so that its continuations wait for these.
    started  whether the engine has come to any of them.
    """

    def __init__(self, numbers: Sequence[int], n: int, waits: bool = False) -> None:
        self.prompts = {
            number: Continued(range(place * n, (place + 1) * n), waits) for place, number in enumerate(numbers)
        }
        self.prompt_tokens = self.completion_tokens = 0
        self.started = False

    @property
    def done(self) -> bool:
        return all(prompt.done for prompt in self.prompts.values())

    def take(self, messages: Sequence[Message]) -> list[Change]:
        """The changes of these messages, those of one continuation together; a refusal is raised."""
        found: dict[int, Change] = {}
        for message in messages:
            gather(found, self._changes(message))
        return list(found.values())

    def cut(self, finish: str) -> list[Change]:
        """All that are still open end here; refused where the probabilities of a prompt, which come first, are not
        there: who adds them up would take others for them.
        """
        if any(prompt.held is not None for prompt in self.prompts.values()):
            told = "the probabilities of the prompts take longer than a request may: ask for fewer at once"
            raise Error(503, told, retry=10)
        return [change for prompt in self.prompts.values() for change in prompt.cut(finish)]

    def usage(self) -> dict[str, int]:
        both = {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens}
        return both | {"total_tokens": self.prompt_tokens + self.completion_tokens}

    def _changes(self, message: Message) -> list[Change]:
        if "refused" in message:
            kind = message["kind"] if message["kind"] in ("context_length_exceeded", "engine_died") else None
            retry = 2 if message["status"] == 503 else None
            raise Error(message["status"], message["message"], code=kind, retry=retry)
        if "begun" in message:
            self.prompt_tokens += message["prompt_tokens"]
            return self.prompts[message["begun"]].begin(message["text"])
        if "echoed" in message:
            self.started = True
            return self.prompts[message["echoed"]].echo(message["logprobs"])
        if "event" in message:
            self.started = True
            return self._grown(*message["event"])
        return []

    def _grown(
        self, number: int, choice: int, text: str, tokens: int, finish: str | None, logprobs: list[Told]
    ) -> list[Change]:
        """What came to one continuation, as the engine tells it."""
        prompt = self.prompts[number]
        self.completion_tokens += tokens
        finish = None if finish is None else FINISH.get(finish, finish)
        return prompt.go_on(Change(prompt.places[choice], text, tokens, logprobs, finish))


def _spelt(told: Told) -> tuple[str, bytes]:
    """The name of a token and its bytes."""
    return told[1], told[4].encode("latin-1")


def gather(found: dict[int, Change], changes: Iterable[Change]) -> None:
    """Add to what is known of each continuation what came to it."""
    for change in changes:
        found.setdefault(change.index, Change(change.index)).add(change)
