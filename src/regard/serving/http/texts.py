"""/v1/completions and /v1/chat/completions: requests for texts as the engine takes them."""

from __future__ import annotations

import secrets
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from regard.serving.http.answering import Stream, Underway, Whole
from regard.serving.http.body import asked
from regard.serving.http.choices import Choices
from regard.serving.http.client import EngineClient
from regard.serving.http.constrained import pattern_of
from regard.serving.http.errors import Error, ending
from regard.serving.http.form import ChatForm, CompletionForm, Form
from regard.serving.http.names import named
from regard.serving.http.schema import ChatRequest, CompletionRequest, Sampled
from regard.serving.http.settings import Settings
from regard.serving.wire import Message

LARGEST_QUEUE = 1 << 25  # bytes of prompts that wait
ANSWER = 256  # tokens of a turn, unless more or fewer are asked for
MOST_TOLD = 1 << 18  # probabilities of prompts in one answer, of which each is some dozen bytes


class Texts:
    """rows, nbytes: continuations and bytes of prompts that are underway."""

    def __init__(self, engine: EngineClient, settings: Settings) -> None:
        self.engine, self.settings = engine, settings
        self.draining = False
        self.rows = self.nbytes = 0

    def end(self) -> None:
        """Hand back whatever is underway."""
        for box in set(self.engine.boxes.values()):
            box.put({"ends": True})

    async def completions(self, request: Request) -> Response:
        given = await asked(request, CompletionRequest)
        if given.best_of is not None and given.best_of != given.n:
            raise Error(400, "best_of: only what is asked for is drawn; leave it out, or let it be n", param="best_of")
        model = named(given.model, self.settings.paths)
        most = 16 if given.max_tokens is None else given.max_tokens
        if most == 0 and not given.echo:
            raise Error(400, "max_tokens: 0 leaves nothing to answer without echo", param="max_tokens")
        _check_told(given)
        base = self._base(given, model, most) | {"logprobs": given.logprobs, "echo": given.echo}
        messages = [base | {"prompt": prompt, "seed": _seed(given)} for prompt in given.prompts]
        form = CompletionForm(secrets.token_hex(12), model, int(time.time()), given.logprobs is not None)
        return self._response(request, given, messages, form, waits=given.echo and given.logprobs is not None)

    async def chat(self, request: Request) -> Response:
        given = await asked(request, ChatRequest)
        model = named(given.model, self.settings.paths)
        if given.top_logprobs is not None and not given.logprobs:
            raise Error(400, "top_logprobs: say logprobs as well", param="top_logprobs")
        top = (given.top_logprobs or 0) if given.logprobs else None
        most = given.max_completion_tokens or given.max_tokens or ANSWER
        turns = [message.plain() for message in given.messages]
        base = self._base(given, model, most)
        about = {"logprobs": top, "echo": False, "prompt": "", "messages": turns}
        message = base | about | {"seed": _seed(given)}
        form = ChatForm(secrets.token_hex(12), model, int(time.time()), given.n, top)
        return self._response(request, given, [message], form)

    def _base(self, given: Sampled, model: str, most: int) -> Message:
        """What all prompts of a request have in common."""
        if most > self.settings.max_tokens:
            told = f"max_tokens: {most:,} are asked for, and {self.settings.max_tokens:,} are the most"
            raise Error(400, told, param="max_tokens")
        sampling = {
            "temperature": given.temperature,
            "top_k": given.top_k if (given.top_k or 0) > 0 else None,
            "top_p": given.top_p,
            "min_p": given.min_p,
        }
        return {
            "do": "submit",
            "run": model,
            "n": given.n,
            "max_tokens": most,
            "sampling": sampling,
            "stop": given.stops,
            "bias": given.logit_bias or {},
            "presence": given.presence_penalty,
            "frequency": given.frequency_penalty,
            "pattern": pattern_of(given.response_format),
        }

    def _response(
        self, request: Request, given: Sampled, messages: list[Message], form: Form, waits: bool = False
    ) -> Response:
        rows, nbytes = len(messages) * given.n, sum(_size(message) for message in messages)
        self._admit(rows, nbytes)
        facts = request.state.facts
        facts |= {"model": messages[0]["run"], "n": rows, "max_tokens": messages[0]["max_tokens"]}
        if self.settings.logs_prompts:
            facts["prompts"] = [message.get("messages") or message["prompt"] for message in messages]
        box, numbers = self.engine.submit([message | {"client": request.state.client} for message in messages])
        choices = Choices(numbers, given.n, waits)
        under = Underway(self.engine, box, numbers, choices, form, self.settings.timeout, facts)
        with_usage = given.stream_options is not None and given.stream_options.include_usage
        answer = Stream(under, with_usage) if given.stream else Whole(under)
        return Counted(answer, self, rows, nbytes)

    def _admit(self, rows: int, nbytes: int) -> None:
        """Refuse what would wait too long, before anything of it is done."""
        if self.draining:
            raise ending()
        slots = sum(told["slots"] for told in self.engine.models.values()) or 1
        if self.rows and self.rows + rows > slots + self.settings.queue:
            raise Error(503, "too many requests are waiting: try again later", code="overloaded", retry=2)
        if self.nbytes and self.nbytes + nbytes > LARGEST_QUEUE:
            raise Error(503, "too many prompts are waiting: try again later", code="overloaded", retry=2)


class Counted(Response):
    """An answer that counts against the queue while it is underway."""

    def __init__(self, answer: Response, texts: Texts, rows: int, nbytes: int) -> None:
        super().__init__()
        self.answer, self.texts, self.own = answer, texts, (rows, nbytes)
        texts.rows, texts.nbytes = texts.rows + rows, texts.nbytes + nbytes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await self.answer(scope, receive, send)
        finally:
            rows, nbytes = self.own
            self.texts.rows, self.texts.nbytes = self.texts.rows - rows, self.texts.nbytes - nbytes


def _check_told(given: CompletionRequest) -> None:
    """Refuse to tell more of prompts than an answer should hold; a text has at most as many tokens as bytes."""
    if not given.echo or given.logprobs is None:
        return
    tokens = sum(len(one.encode() if isinstance(one, str) else one) for one in given.prompts)
    numbers = given.n * (1 + given.logprobs) * tokens
    if numbers > MOST_TOLD:
        told = f"{numbers:,} probabilities of prompts would be told, and {MOST_TOLD:,} are the most: ask for fewer"
        raise Error(400, f"logprobs: {told}, or for one continuation", param="logprobs")


def _seed(given: Sampled) -> int:
    """Of one prompt. Where none is given each has its own: texts of one seed share their random numbers."""
    return secrets.randbits(62) if given.seed is None else given.seed


def _size(message: Message) -> int:
    turns = message.get("messages")
    return sum(len(turn["content"]) for turn in turns) if turns else len(message["prompt"])
