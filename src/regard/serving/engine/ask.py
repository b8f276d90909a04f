"""A request for texts as it comes over the pipe, and the refusals that it may meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.decoding.constraint import Form
from regard.decoding.logits_processing import Sampling
from regard.errors import DataError, RegardError, ResourceError, TooLong, UsageError, is_out_of_memory
from regard.serving.engine.placeless import placeless
from regard.serving.guard import Refused
from regard.serving.wire import Message

LONGEST = 1000  # characters of a refusal
LONGEST_PROMPT = 1 << 15  # tokens, of a model that has no last position


@dataclass(frozen=True)
class Ask:
    """Continuations of one prompt.

    prompt    a text or tokens. messages: the turns of a conversation in its place.
    n         continuations, each from a random stream of its own.
    logprobs  how many of the likeliest tokens are told at every place; None for no probabilities at all.
    echo      whether the prompt's own probabilities are told too.
    pattern   a regular expression that what is written has to match. form: the same, ready for the engine.
    """

    number: int
    run: str
    prompt: str | list[int]
    messages: list[dict[str, Any]] | None
    n: int
    max_tokens: int
    sampling: Sampling
    seed: int
    stop: tuple[str, ...]
    logprobs: int | None
    echo: bool
    bias: dict[int, float]
    presence: float
    frequency: float
    pattern: str | None
    form: Form | None

    @property
    def is_ready(self) -> bool:
        """Whether it can be submitted as it came: turns become a text first, and a pattern a form."""
        return self.messages is None and self.pattern is None

    @classmethod
    def of(cls, message: Message) -> Ask:
        told = {name: message[name] for name in ("run", "prompt", "n", "max_tokens", "seed", "logprobs", "echo")}
        told |= {name: message.get(name) for name in ("messages", "pattern", "form")}
        return cls(
            **told,
            number=message["id"],
            sampling=Sampling(**message["sampling"]),
            stop=tuple(message["stop"]),
            bias={int(token): value for token, value in message["bias"].items()},
            presence=message["presence"],
            frequency=message["frequency"],
        )


def refusal(number: int, error: BaseException, run: str = "", path: object = "") -> Message:
    """The message that a request meets in the place of its answer. It names a run and no place of this machine.

    >>> refusal(1, UsageError("/home/a/runs/lstm: has no chat template"), "lstm", "/home/a/runs/lstm")["message"]
    'lstm: has no chat template'
    """
    text = " ".join(str(error).split()) or type(error).__name__
    text = placeless(text, run, path)[:LONGEST]
    status, kind = 500, "server_error"
    if isinstance(error, Refused):
        status, kind = error.status, "invalid_request_error" if error.status < 500 else "server_error"
    elif isinstance(error, TooLong):
        status, kind = 400, "context_length_exceeded"
    elif isinstance(error, ResourceError) or is_out_of_memory(error):
        status, text = 503, "there is not enough memory for this now"
    elif isinstance(error, UsageError | DataError | ValueError):
        status, kind = 400, "invalid_request_error"
    elif not isinstance(error, RegardError):
        text = "the engine failed on this request; the log of the server says more"
    return {"refused": number, "status": status, "kind": kind, "message": text}
