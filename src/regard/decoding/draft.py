"""Drafts: several tokens for one read of the model (Leviathan, Kalman and Matias 2023; Chen et al. 2023).

A draft proposes tokens x_1 .. x_k. The model reads all of them in one chunk, and so knows its own distribution after
each: they stand, one after the other, by the rule of acceptance.py. So every token has the distribution that it has
without a draft, whatever the draft is: a bad one costs time and changes nothing. A greedy text is the text without a
draft, token for token, but where rounding decides: a chunk is a product of another shape than a single token, and two
logits that differ by less than its rounding may change places.

Texts are written one by one. The random numbers of token n are draws 3n to 3n + 2 of its stream (philox.py), so that a
text is a function of its seed and row for one draft and one k: a proposal that was dropped unseen has told nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from regard.core.model import TokenModel
from regard.decoding.acceptance import Proposal, TextChances, drawn, judged
from regard.decoding.ending import window_of
from regard.decoding.logits import eval_mode, model_device
from regard.decoding.logits_processing import Sampling, warped_log_probs
from regard.decoding.prefill import beginning
from regard.decoding.prompt_lookup import PromptLookup
from regard.decoding.reader import Reader
from regard.decoding.row import Drawn, Row
from regard.errors import UsageError

LOOKUP = "ngram"  # the name of the draft that is the text itself
TOKENS = 4  # proposals for one read, unless somebody says how many


class Draft(Protocol):
    """What proposes tokens for one text."""

    def propose(self, text: Sequence[int], count: int, settings: Sampling, chances: Sequence[float]) -> Proposal:
        """At most `count` tokens after `text`, which grows from call to call; chances: a random number for each."""
        ...


class LookupDraft:
    """What followed the end of the text when it was seen before in it."""

    def __init__(self) -> None:
        self.lookup = PromptLookup()

    def propose(self, text: Sequence[int], count: int, settings: Sampling, chances: Sequence[float]) -> Proposal:
        del settings, chances
        return Proposal(self.lookup.following(text, count))


class ModelDraft:
    """Tokens drawn one by one from another model, as the text itself is drawn.

    window  tokens of context that its state may hold; when they are full it goes on with half of them.
    """

    def __init__(self, model: TokenModel, window: float) -> None:
        self.reader, self.window = Reader(model), window

    @torch.no_grad()
    def propose(self, text: Sequence[int], count: int, settings: Sampling, chances: Sequence[float]) -> Proposal:
        if len(text) - self.reader.begin + count - 1 > self.window:
            self.reader.restart(max(0, len(text) - max(1, int(self.window) // 2)))
        unread = self.reader.follow(text)
        count = int(min(count, self.window - len(self.reader.seen) - len(unread) + 1))
        self.reader.skip(unread[:-1])
        last, tokens, log_q = unread[-1], [], []
        for chance in chances[:count]:
            logits = self.reader.model.head(self.reader.read([last])[-1])
            best, first = logits.max(-1)
            if not best.isfinite():
                break  # what has no finite maximum is no distribution
            last = int(first)
            if not settings.greedy:
                log_q.append(warped_log_probs(logits, settings))
                last = drawn(log_q[-1], chance)
            tokens.append(last)
        return Proposal(tokens, torch.stack(log_q) if log_q else None)


@dataclass
class Tally:
    """What a draft was good for.

    tokens   written, in `reads` of the model after the prompts; of the tokens `proposed`, so many were `accepted`.
    seconds  that these reads, the draft and the drawing took.
    single   seconds of a read of one token, measured once, in the first text that goes on after its first tokens.
    """

    tokens: int = 0
    reads: int = 0
    proposed: int = 0
    accepted: int = 0
    seconds: float = 0.0
    single: float | None = None

    @property
    def alone(self) -> float | None:
        """An estimate of the seconds that the texts would have taken without a draft; None where none went on."""
        return None if self.single is None else self.single * self.tokens

    @property
    def acceptance(self) -> float | None:
        return self.accepted / self.proposed if self.proposed else None

    @property
    def tokens_per_read(self) -> float | None:
        return self.tokens / self.reads if self.reads else None

    @property
    def speed_up(self) -> float | None:
        return self.alone / self.seconds if self.alone and self.seconds > 0 else None

    @property
    def told(self) -> str:
        """One line for people."""
        if not self.proposed:
            return "draft: nothing was proposed"
        line = f"draft: {self.accepted} of {self.proposed} proposed tokens accepted ({self.acceptance:.0%})"
        line += f", {self.tokens_per_read:.2f} tokens per read of the model"
        return line if self.speed_up is None else f"{line}, about {self.speed_up:.2f}x as fast as without (estimated)"

    def to_dict(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens,
            "reads": self.reads,
            "proposed": self.proposed,
            "accepted": self.accepted,
            "acceptance": self.acceptance,
            "tokens_per_read": self.tokens_per_read,
            "seconds": self.seconds,
            "estimated_seconds_without": self.alone,
            "estimated_speed_up": self.speed_up,
        }


@dataclass(eq=False)
class Drafter:
    """A draft for every text, and what came of all of them.

    begin   the draft of a text before its first token.
    tokens  proposed for each read of the model, at most: as long as few stand, fewer are proposed.
    model   that drafts; None where none does.
    """

    begin: Callable[[], Draft]
    tokens: int = TOKENS
    model: TokenModel | None = None
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise UsageError(f"a draft must propose at least 1 token, found {self.tokens}")

    @classmethod
    def of_model(cls, model: TokenModel, tokens: int = TOKENS, window: int | None = None) -> Drafter:
        """Tokens from another model. window: of context, where that model has no last position or a later one."""
        return cls(lambda: ModelDraft(model, window_of(model, window)), tokens, model)

    @classmethod
    def of_text(cls, tokens: int = TOKENS) -> Drafter:
        """Tokens from the prompt and the text so far."""
        return cls(LookupDraft, tokens)

    def resting(self) -> AbstractContextManager[None]:
        """Evaluation mode of the model that drafts."""
        return nullcontext() if self.model is None else eval_mode(self.model)

    def check(self, model: TokenModel) -> None:
        """Refuse a draft for a model whose tokens are others."""
        if self.model is not None and self.model.vocab_size != model.vocab_size:
            raise UsageError(
                f"a draft of {self.model.vocab_size} tokens cannot propose for a model of {model.vocab_size}: "
                f"train both with the same tokenizer"
            )


def speculate(model: TokenModel, row: Row, drafter: Drafter) -> Iterator[Drawn]:
    """The tokens of one text as they come."""
    drafter.check(model)
    text, tally = _Speculation(model, row, drafter.begin(), drafter.tokens), drafter.tally
    while row.finish is None:
        text.make_ready()
        if tally.single is None and row.drawn:
            tally.single = text.reader.seconds(row.tokens[-1])
        begin, calls = time.perf_counter(), text.reader.calls
        tokens, log_probs, proposed = text.round()
        tally.seconds += time.perf_counter() - begin
        tally.reads += text.reader.calls - calls
        tally.proposed += proposed
        for number, (token, log_prob) in enumerate(zip(tokens, log_probs, strict=True)):
            row.context = len(row.tokens) - text.reader.begin
            tally.tokens += 1
            tally.accepted += number < len(tokens) - 1
            yield row.push(token, log_prob)
            if row.finish is not None:
                return


class _Speculation:
    """One text on its way."""

    def __init__(self, model: TokenModel, row: Row, draft: Draft, count: int) -> None:
        self.row, self.draft, self.count, self.ahead = row, draft, count, count
        start = None if row.start is None else beginning(model, [row], model_device(model))
        self.reader, self.chances = Reader(model, start), TextChances(*row.origin)
        self.unread: list[int] = []

    def make_ready(self) -> None:
        """Take back what does not stand; a text that begins, or whose window is full, is read up to its last token."""
        row, reader = self.row, self.reader
        if row.drawn == 0 or row.full:
            context = row.begin()
            reader.restart(len(row.tokens) - len(context))
            reader.skip(context[:-1])
        self.unread = reader.follow(row.tokens)

    @torch.no_grad()
    def round(self) -> tuple[list[int], list[float], int]:
        """The next tokens with their raw log-probabilities, and how many were proposed."""
        row, unread = self.row, self.unread
        if len(unread) > self.count + 1:
            # A recurrence reads again what stands. Before that is more than what is proposed, it is read for good.
            self.reader.read(unread[:-1])
            unread = unread[-1:]
        room = row.window - len(self.reader.seen) - len(unread)
        most = int(min(self.ahead, row.left - 1, room))
        chances = [self.chances.of(row.drawn + i) for i in range(most + 1)]
        proposal = Proposal([])
        if most > 0:
            proposal = self.draft.propose(row.tokens, most, row.settings, [chance.draft for chance in chances[:most]])
        vectors = self.reader.read([*unread, *proposal.tokens])
        logits = self.reader.model.head(vectors[len(unread) - 1 :])
        tokens, log_probs = judged(logits, proposal, row.settings, chances)
        self._adapt(len(proposal.tokens), len(tokens) - 1)
        return tokens, log_probs, len(proposal.tokens)

    def _adapt(self, proposed: int, standing: int) -> None:
        """Propose more after a round in which all stood, less after another: a draft that is no good costs little."""
        if proposed:
            self.ahead = min(self.count, self.ahead + 2) if standing == proposed else max(1, self.ahead - 1)
