"""Conversations with a run whose model was taught to answer: its own template writes what is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from regard.data.chat import rendered
from regard.decoding.text import Text, options_from
from regard.errors import UsageError, blamed_on

if TYPE_CHECKING:
    from regard.run.run import Run

Messages = str | Sequence[Mapping[str, Any]]


def conversation(run: Run, messages: Messages) -> str:
    """The text that the model reads before it answers."""
    tokenizer = run.writer.tokenizer
    if not tokenizer.chat:
        raise UsageError(f"{run.path}: has no chat template: it goes on with texts and was not taught to answer")
    with blamed_on(run.path):
        return rendered(tokenizer.chat, messages, tokenizer.template_names)


def answers(run: Run, messages: Messages, options: dict[str, Any], copies: int = 1) -> list[Text]:
    """What the model says, `copies` times, with the numbers of each."""
    writer = replace(run.writer, in_turns=True)
    found = writer.write([conversation(run, messages)], options_from(options), copies=copies)
    return [replace(one, prompt="") for one in found]


def stream(run: Run, messages: Messages, options: dict[str, Any]) -> Iterator[str]:
    """What the model says, piece by piece."""
    return replace(run.writer, in_turns=True).stream(conversation(run, messages), options_from(options))
