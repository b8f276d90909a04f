"""Room: a run in memory, and the engine in which its requests step together."""

from __future__ import annotations

import math
import time
import traceback
from collections import deque
from contextlib import suppress
from typing import Any

from regard.decoding.completion import Completion, TextCompletion
from regard.decoding.constraint import Form, Forms
from regard.decoding.ending import Limits, window_of
from regard.decoding.engine import Engine
from regard.decoding.prefix_cache import PrefixCache
from regard.decoding.prompt_reading import PromptReading
from regard.decoding.row_rules import LogitBias, RepetitionPenalty, RowRules, Rule
from regard.errors import NumericError, TooLong, UsageError
from regard.run.run import Run
from regard.serving import wanted
from regard.serving.engine.ask import LONGEST_PROMPT, Ask, refusal
from regard.serving.engine.job import Job
from regard.serving.engine.sizing import (
    PREFIXES,
    Sizes,
    bytes_of_model,
    bytes_of_row,
    device_of_model,
    engine_of,
    spare_rows,
)
from regard.serving.wire import Message
from regard.tasks.verbs import Completes, Generates


class Room:
    """A run whose requests come and go between steps."""

    def __init__(self, name: str, run: Run, sizes: Sizes) -> None:
        self.name, self.run, self.sizes = name, run, sizes
        self.device = device_of_model(run.model)
        writing = sizes.in_precision(run)
        self.completion = _completion(writing)
        self.slots = 0 if self.completion is None else sizes.slots_of(self.completion, self.device)
        self.engine: Engine | None = None
        self.jobs: dict[int, Job] = {}
        self.rows: dict[int, tuple[Job, int]] = {}  # requests of the engine: whose, and which continuation
        self.echoes: deque[Job] = deque()
        self.forms: dict[int, Forms] = {}  # by the token that ends a text
        self.used = time.monotonic()
        self.nbytes = bytes_of_model(run.model) + (bytes_of_model(writing.model) if writing is not run else 0)
        if self.completion is not None:
            rows = self.slots + spare_rows(self.slots, self.device)
            self.nbytes += rows * bytes_of_row(self.completion)

    @property
    def busy(self) -> bool:
        return bool(self.jobs)

    def submit(self, ask: Ask) -> list[Message]:
        """Take a request; what is to be told at once."""
        completion = self._completion(ask)
        opened = completion.opened(ask.prompt)
        self._check_size(completion, len(opened.tokens))
        job = Job(ask, completion, opened)
        if ask.echo and not completion.continues:
            raise UsageError(f"echo: {self.name} writes from a source, no part of what it writes; leave it out")
        self.used = time.monotonic()
        if ask.echo and ask.logprobs is not None:
            job.reading = PromptReading(completion.model, opened.tokens, ask.logprobs, self.sizes.chunk)
        if ask.max_tokens:
            self._enter(job)
        if job.reading is not None:  # nothing is read for what was refused
            self.echoes.append(job)
        self.jobs[ask.number] = job
        told: list[Message] = [job.begun()]
        if not ask.max_tokens:
            told += [{"events": job.ended("length")}]
            if job.reading is None:
                del self.jobs[ask.number]
        return told

    def form(self, pattern: str, in_turns: bool) -> Form:
        """A pattern in the tokens of the run; from any thread."""
        completion = self.completion
        if completion is None:
            raise UsageError(f"{self.name} completes no text")
        end_id = (completion.of_turns if in_turns and completion.of_turns else completion).end_id
        return self.forms.setdefault(end_id, Forms(completion.tokenizer, end_id)).form(pattern, wanted.check)

    def cancel(self, number: int) -> None:
        """Draw nothing more for a request."""
        job = self.jobs.pop(number, None)
        if job is None:
            return
        for request in [request for request, (own, _) in self.rows.items() if own is job]:
            del self.rows[request]
            if self.engine is not None:
                self.engine.cancel(request)
        with suppress(ValueError):
            self.echoes.remove(job)

    def step(self) -> list[Message]:
        """A chunk of a prompt that is told about, and a step of the engine: all that came of it, in few messages."""
        self.used = time.monotonic()
        told: list[Message] = []
        try:
            told += self._echo()
            if self.engine is not None and self.engine.busy:
                told += self._drawn(self.engine)
        except Exception as error:
            traceback.print_exc()
            told += [refusal(number, error, self.name, self.run.path) for number in self.jobs]
            self.close()
        return told

    def close(self) -> None:
        """Give up all requests and what the engine holds."""
        self.jobs.clear()
        self.rows.clear()
        self.echoes.clear()
        if self.engine is not None:
            engine, self.engine = self.engine, None
            engine.__exit__(None, None, None)

    def about(self) -> dict[str, Any]:
        """What is told of it to anybody who asks for models."""
        window = math.inf if self.completion is None else window_of(self.completion.model, self.completion.window)
        return {
            "task": self.run.task.name,
            "architecture": self.run.config["model"]["name"],
            "completes": self.completion is not None,
            "chats": self.completion is not None and self.completion.of_turns is not None,
            "window": None if math.isinf(window) else int(window),
            "slots": self.slots,
            "device": str(self.device),
            "bytes": self.nbytes,
        }

    def state(self) -> dict[str, int]:
        """How much there is to do."""
        engine = self.engine
        rows = [] if engine is None else [row for row in engine.slots.rows if row is not None]
        taken = sum(row.finish is None for row in rows)
        waiting = 0 if engine is None else sum(row.finish is None for row in (*engine.waiting, *engine.arrivals.rows))
        cache = None if engine is None else engine.arrivals.prefixes
        found = {"slots": self.slots, "taken": taken, "waiting": waiting, "requests": len(self.jobs)}
        return found | {"prefix_tokens": 0 if cache is None else cache.read}

    def _completion(self, ask: Ask) -> Completion:
        completion = self.completion
        if completion is None:
            raise UsageError(f"{self.name} is of the task {self.run.task.name} and completes no text: use /v1/predict")
        if ask.messages is None:
            return completion
        if completion.of_turns is None:
            raise UsageError(f"{self.name} has no chat template: it goes on with texts; use /v1/completions")
        return completion.of_turns

    def _check_size(self, completion: Completion, tokens: int) -> None:
        window = window_of(completion.model, completion.window)
        most = LONGEST_PROMPT if math.isinf(window) else int(window)
        if tokens > most:
            raise TooLong(
                f"the prompt has {tokens:,} tokens, the start symbol among them, and the context of {self.name} holds "
                f"{most:,}: shorten it",
                most,
            )

    def _enter(self, job: Job) -> None:
        """The continuations of a request into the queue of the engine."""
        if self.engine is None:
            assert self.completion is not None
            engine = engine_of(self.completion.model, self.slots, self.sizes.chunk)
            engine.arrivals.prefixes = PrefixCache(self.sizes.for_states(self.device) // PREFIXES)
            self.engine = engine.__enter__()
        ask, opened = job.ask, job.opened
        most = ask.max_tokens if opened.most is None else min(ask.max_tokens, opened.most)
        limits = Limits(most, job.completion.end_id, ask.stop, slide=False, window=job.completion.window)
        for number in range(ask.n):
            origin = {"seed": ask.seed, "row": number, "start": opened.start}
            rules = RowRules(self._rules(job), ask.logprobs or 0)
            request = self.engine.submit(opened.tokens, limits, ask.sampling, rules=rules, **origin)
            self.rows[request] = job, number

    def _rules(self, job: Job) -> tuple[Rule, ...]:
        """Of one continuation: some remember where it has come to."""
        ask, rules = job.ask, list[Rule]()
        if ask.bias:
            assert self.completion is not None
            size = self.completion.model.vocab_size
            unknown = [token for token in ask.bias if not 0 <= token < size]
            if unknown:
                raise UsageError(f"logit_bias: token {unknown[0]} is none of 0 to {size - 1}")
            rules.append(LogitBias(ask.bias))
        if ask.presence or ask.frequency:
            rules.append(RepetitionPenalty(ask.presence, ask.frequency))
        if ask.form is not None:
            is_special = job.completion.tokenizer.is_special
            read = [token for token in job.opened.given if not is_special(token)] if job.completion.continues else []
            job.forms.append(ask.form.rule(read[-1] if read else None))
            rules.append(job.forms[-1])
        return tuple(rules)

    def _echo(self) -> list[Message]:
        if not self.echoes:
            return []
        job = self.echoes[0]
        assert job.reading is not None
        if not job.reading.done:  # of a start alone there is nothing to read
            job.reading.advance()
        if not job.reading.done:
            return []
        self.echoes.popleft()
        told = job.echoed()
        job.reading = None
        self._forget(job)
        return [told]

    def _drawn(self, engine: Engine) -> list[Message]:
        grown: dict[Job, list[Any]] = {}
        for drawn in engine.step():
            if drawn.request in self.rows:
                job, number = self.rows[drawn.request]
                grown.setdefault(job, []).append((number, drawn))
        events: list[Any] = []
        told: list[Message] = []
        for job, drawn in grown.items():
            try:
                for number, event in job.events(drawn):
                    events.append(event)
                    if job.choices[number].finish is not None:
                        self._leave(job, number)
            except (NumericError, UsageError) as error:
                told.append(refusal(job.ask.number, error, self.name, self.run.path))
                self.cancel(job.ask.number)
            self._forget(job)
        return [*told, {"events": events}] if events else told

    def _leave(self, job: Job, number: int) -> None:
        """A continuation has ended: its slot is free with the next step."""
        for request in [request for request, own in self.rows.items() if own == (job, number)]:
            del self.rows[request]
            if self.engine is not None:
                self.engine.cancel(request)

    def _forget(self, job: Job) -> None:
        if job.left == 0 and job.reading is None:
            self.jobs.pop(job.ask.number, None)


def _completion(run: Run) -> Completion | None:
    """What the run completes texts with, if its task does such a thing."""
    if isinstance(run.task, Completes):
        return run.task.completion(run.model, run.processor)
    return TextCompletion(run.writer) if isinstance(run.task, Generates) else None
