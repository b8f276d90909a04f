"""Answers in the forms that clients know: completions and chat, whole and in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from regard.serving.http.choices import Change, Told

Json = dict[str, Any]


class Form(Protocol):
    """How changes are told."""

    def head(self) -> list[Json]:
        """Chunks that come before any text."""
        ...

    def chunk(self, change: Change) -> Json: ...
    def whole(self, changes: Sequence[Change], usage: Json) -> Json: ...
    def usage_chunk(self, usage: Json) -> Json: ...


class CompletionForm:
    """Of /v1/completions. wants_logprobs: whether tokens are told with their probabilities."""

    def __init__(self, name: str, model: str, created: int, wants_logprobs: bool) -> None:
        self.base: Json = {"id": f"cmpl-{name}", "object": "text_completion", "created": created, "model": model}
        self.wants_logprobs = wants_logprobs

    def head(self) -> list[Json]:
        return []

    def chunk(self, change: Change) -> Json:
        return self.base | {"choices": [self._choice(change)]}

    def whole(self, changes: Sequence[Change], usage: Json) -> Json:
        return self.base | {"choices": [self._choice(change) for change in changes], "usage": usage}

    def usage_chunk(self, usage: Json) -> Json:
        return self.base | {"choices": [], "usage": usage}

    def _choice(self, change: Change) -> Json:
        told = self._logprobs(change) if self.wants_logprobs else None
        return {"index": change.index, "text": change.text, "logprobs": told, "finish_reason": change.finish}

    def _logprobs(self, change: Change) -> Json:
        """Tokens side by side; an offset is where a token begins in the text."""
        return {
            "tokens": [told[1] for told in change.logprobs],
            "token_logprobs": [told[2] for told in change.logprobs],
            "top_logprobs": [_likeliest(told) for told in change.logprobs],
            "text_offset": change.offsets,
        }


def _likeliest(told: Told) -> dict[str, float] | None:
    """The likeliest tokens of a place by their texts, that which stands there among them."""
    if told[2] is None:
        return None
    found: dict[str, float] = {}
    pairs: list[tuple[str, float]] = [(told[1], told[2]), *((text, log_prob) for _, text, log_prob, _ in told[3])]
    for text, log_prob in pairs:
        found[text] = max(log_prob, found.get(text, log_prob))
    return found


class ChatForm:
    """Of /v1/chat/completions."""

    def __init__(self, name: str, model: str, created: int, n: int, top: int | None) -> None:
        self.base: Json = {"id": f"chatcmpl-{name}", "created": created, "model": model}
        self.n, self.top = n, top

    def head(self) -> list[Json]:
        delta = {"role": "assistant", "content": ""}
        empty = {"delta": delta, "logprobs": None, "finish_reason": None}
        return [self._chunk({"index": number, **empty}) for number in range(self.n)]

    def chunk(self, change: Change) -> Json:
        delta = {"content": change.text} if change.text or change.finish is None else {}
        told = self._logprobs(change)
        return self._chunk({"index": change.index, "delta": delta, "logprobs": told, "finish_reason": change.finish})

    def whole(self, changes: Sequence[Change], usage: Json) -> Json:
        choices = [
            {
                "index": change.index,
                "message": {"role": "assistant", "content": change.text, "refusal": None},
                "logprobs": self._logprobs(change),
                "finish_reason": change.finish,
            }
            for change in changes
        ]
        return self.base | {"object": "chat.completion", "choices": choices, "usage": usage}

    def usage_chunk(self, usage: Json) -> Json:
        return self._chunk(None) | {"usage": usage}

    def _chunk(self, choice: Json | None) -> Json:
        return self.base | {"object": "chat.completion.chunk", "choices": [] if choice is None else [choice]}

    def _logprobs(self, change: Change) -> Json | None:
        if self.top is None:
            return None
        content = [_entry(told[1], told[2], told[4]) | self._top(told) for told in change.logprobs]
        return {"content": content, "refusal": None}

    def _top(self, told: Told) -> Json:
        return {"top_logprobs": [_entry(*likely) for _, *likely in told[3]]}


def _entry(text: str, log_prob: float, spelt: str) -> Json:
    """spelt: a character for each byte. Those of all tokens are the text."""
    return {"token": text, "logprob": log_prob, "bytes": list(spelt.encode("latin-1"))}
