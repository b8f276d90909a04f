"""The continuations of a request, put together from what the engine tells of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.serving.http.errors import Error
from regard.serving.wire import Message

# Why a text ended, in the words that clients know.
FINISH = {"eos": "stop", "stop": "stop", "length": "length", "context": "length"}

Told = list[Any]  # a token: number, text, log p, the likeliest of its place


@dataclass
class Change:
    """What came to one continuation: text, the tokens of it, and why it ended, if it did."""

    index: int
    text: str = ""
    tokens: int = 0
    logprobs: list[Told] = field(default_factory=list)
    finish: str | None = None


class Choices:
    """numbers: of the engine's requests, one for each prompt; n: continuations of each.

    echo  "" for none, "text" where the prompt stands before its continuations, "logprobs" where with its probabilities.
    """

    def __init__(self, numbers: Sequence[int], n: int, echo: str = "") -> None:
        self.place = {number: prompt for prompt, number in enumerate(numbers)}
        self.n, self.echo = n, echo
        self.prompt_tokens = self.completion_tokens = 0
        self.open = set(range(len(numbers) * n))
        self.held: dict[int, list[Change]] = {prompt: [] for prompt in range(len(numbers))} if echo else {}
        self.begun: dict[int, str] = {}

    @property
    def done(self) -> bool:
        return not self.open and not self.held

    def take(self, messages: Sequence[Message]) -> list[Change]:
        """The changes of these messages, those of one continuation together; a refusal is raised."""
        merged: dict[int, Change] = {}
        for message in messages:
            for change in self._changes(message):
                self._merge(merged, change)
        return list(merged.values())

    def cut(self, finish: str) -> list[Change]:
        """All that are still open end here."""
        changes = [Change(index, finish=finish) for index in sorted(self.open)]
        self.open.clear()
        self.held.clear()
        return changes

    def usage(self) -> dict[str, int]:
        both = {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens}
        return both | {"total_tokens": self.prompt_tokens + self.completion_tokens}

    def _changes(self, message: Message) -> Iterator[Change]:
        if "refused" in message:
            kind = message["kind"] if message["kind"] in ("context_length_exceeded", "engine_died") else None
            retry = 2 if message["status"] == 503 else None
            raise Error(message["status"], message["message"], code=kind, retry=retry)
        if "begun" in message:
            prompt = self.place[message["begun"]]
            self.prompt_tokens += message["prompt_tokens"]
            self.begun[prompt] = message["text"]
            if self.echo == "text" or (self.echo and message["prompt_tokens"] == 0):
                yield from self._released(prompt, [])
        elif "echoed" in message:
            yield from self._released(self.place[message["echoed"]], message["logprobs"])
        elif "event" in message:
            number, choice, text, tokens, finish, logprobs = message["event"]
            prompt = self.place[number]
            index = prompt * self.n + choice
            self.completion_tokens += tokens
            if finish is not None:
                self.open.discard(index)
            change = Change(index, text, tokens, logprobs, None if finish is None else FINISH.get(finish, finish))
            if prompt in self.held:
                self.held[prompt].append(change)
            else:
                yield change

    def _released(self, prompt: int, logprobs: list[Told]) -> Iterator[Change]:
        """The prompt before each of its continuations, and what these had to wait with."""
        for choice in range(self.n):
            yield Change(prompt * self.n + choice, self.begun[prompt], 0, list(logprobs))
        yield from self.held.pop(prompt, [])

    @staticmethod
    def _merge(merged: dict[int, Change], change: Change) -> None:
        one = merged.setdefault(change.index, Change(change.index))
        one.text += change.text
        one.tokens += change.tokens
        one.logprobs += change.logprobs
        one.finish = change.finish or one.finish
