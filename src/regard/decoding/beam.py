"""Beam search over a batch of prompts, on State alone.

A beam of width w has w slots. At every step the most probable continuations of the live hypotheses fill the slots that
are free; one that ends keeps its slot, stops and is set aside (Sutskever et al. 2014, 3.2). So a beam of width 1 is
greedy decoding, and a beam with a slot for every possible text is exhaustive search.

    score(Y) = log p(Y) / lp(|Y|)      |Y| counts the generated tokens, the ending one among them

Every live text has a row of a state that is held as the engine holds its own (held.py): a first child goes on in its
parent's row, others are copies (seats.py).

lp is the length penalty of penalty.py. The coverage penalty there needs the attention of whole texts: `rescored` adds
it to the scores of what a beam has found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.model import TokenModel
from regard.decoding.candidates import Offer, best_offers
from regard.decoding.held import Held
from regard.decoding.logits import CHUNK, eval_mode, model_device
from regard.decoding.logits_processing import fine
from regard.decoding.penalty import NO_PENALTY, CoveragePenalty, LengthPenalty
from regard.decoding.prefill import Prefill
from regard.decoding.prompt import checked_prompts
from regard.decoding.seats import Seats, seated
from regard.errors import NumericError, UsageError
from regard.kernels.packed import packed_weights

# Steps for which a state is given room at once, at least; a longer text gets as much room again as it has used.
STEPS_RESERVED = 32


@dataclass(frozen=True)
class Hypothesis:
    """A text of the beam with its numbers: score = log_prob / penalty + coverage.

    log_probs  of each token under the model's raw distribution; log_prob is their sum.
    finish     "eos", "length" (max_tokens) or "context" (the model's window is full); None while it is live.
    coverage   the coverage penalty, 0 unless `rescored` has added it.
    """

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    log_prob: float
    penalty: float
    score: float
    finish: Literal["eos", "length", "context"] | None
    coverage: float = 0.0


@dataclass(frozen=True)
class BeamResult:
    """The best texts for one prompt, best score first, and on request what the beam held after every step."""

    best: tuple[Hypothesis, ...]
    steps: tuple[tuple[Hypothesis, ...], ...] = ()


def beam_search(
    model: TokenModel,
    prompts: Sequence[Int[Tensor, "_"]],
    *,
    width: int,
    max_tokens: int | Sequence[int],
    eos_id: int | None,
    penalty: LengthPenalty = NO_PENALTY,
    n_best: int = 1,
    record: bool = False,
) -> list[BeamResult]:
    """The `n_best` texts of the highest score found for each prompt, fewer where fewer exist.

    max_tokens  the same for every prompt, or a number for each.
    record      keeps the numbers of every step.
    """
    longest = [max_tokens] * len(prompts) if isinstance(max_tokens, int) else max_tokens
    if width < 1 or min(longest, default=1) < 1:
        raise UsageError(f"beam width and max_tokens must be at least 1, found {width} and {max_tokens}")
    if not 1 <= n_best <= width:
        raise UsageError(f"n_best must lie between 1 and the beam width {width}, found {n_best}")
    tokens = checked_prompts(model, prompts, fit=True)
    window = float("inf") if model.max_length is None else float(model.max_length)
    beams = []
    for row, (prompt, most) in enumerate(zip(tokens, longest, strict=True)):
        limit = int(min(most, window - len(prompt) + 1))
        finish = "length" if limit == most else "context"
        beams.append(_Beam(width, n_best, penalty, eos_id, limit, finish, record, [row]))
    with eval_mode(model), packed_weights(model, width * len(tokens)):
        _search(model, tokens, beams)
    return [BeamResult(tuple(beam.ranked()[:n_best]), tuple(beam.steps)) for beam in beams]


def rescored(
    result: BeamResult,
    attention: Sequence[Float[Tensor, "T S"]],
    penalty: LengthPenalty,
    coverage: CoveragePenalty,
) -> BeamResult:
    """The texts of a beam ranked anew by log p / lp + cp; of equal ones the earlier stays first.

    attention  of each text in `result.best`, a row for each of its tokens and a column for each source token, without
    padding. Only what the beam has kept can win: ask `beam_search` for as many texts as it has slots.
    """
    if len(attention) != len(result.best):
        raise UsageError(f"attention of {len(attention)} texts for a beam of {len(result.best)}; each needs its own")
    ranked = []
    for number, (text, weights) in enumerate(zip(result.best, attention, strict=True)):
        if weights.ndim != 2 or len(weights) != len(text.tokens):
            shape = tuple(weights.shape)
            raise UsageError(f"text {number} has {len(text.tokens)} tokens and attention of shape {shape}; give (T, S)")
        lp, cp = penalty(len(text.tokens)), coverage(weights)
        if math.isnan(cp):
            raise NumericError(f"the attention of text {number} is not all numbers, so the beam cannot be ranked")
        ranked.append(replace(text, penalty=lp, coverage=cp, score=text.log_prob / lp + cp))
    return replace(result, best=tuple(sorted(ranked, key=lambda text: -text.score)))


@torch.no_grad()
def _search(model: TokenModel, prompts: list[list[int]], beams: list[_Beam]) -> None:
    """Steps of all beams together; each live text has a row of the state."""
    if not prompts:
        return
    device = model_device(model)
    held, logits = _begun(model, prompts, device)
    used = room = max(map(len, prompts))
    longest = used + max(beam.max_tokens for beam in beams)
    log_probs = logits.new_empty(0)
    while True:
        live = [beam for beam in beams if beam.live]
        log_probs = _normed(logits, log_probs)
        totals = [[text.total for text in beam.live] for beam in live]
        offers = best_offers(log_probs, [beam.rows for beam in live], totals, max(beam.free for beam in live))
        seats = _stepped(live, offers)
        if not seats.index:
            return
        index, moved, last = _on_device(live, seats, device)
        if seats.moved or len(index) < held.state.batch_size:
            held.reorder(index, moved)
        if used == room:
            room = min(longest, used + max(STEPS_RESERVED, used))
            held.reserve(room)
        used += 1
        logits = held.feed(last)


def _begun(model: TokenModel, prompts: list[list[int]], device: torch.device) -> tuple[Held, Float[Tensor, "B V"]]:
    """The prompts read as the engine reads them, and the logits after each."""
    prefill = Prefill(model, prompts, model.init_state(len(prompts)), device, CHUNK)
    while not prefill.done:
        prefill.advance()
    held = Held(model)
    held.hold(prefill.state)
    return held, prefill.logits()


def _stepped(live: list[_Beam], offers: list[list[Offer]]) -> Seats:
    """A step of each beam, and rows for the texts that live on."""
    before = [beam.rows for beam in live]
    seats = seated(before, [beam.step(offered) for beam, offered in zip(live, offers, strict=True)])
    for beam, rows in zip(live, seats.rows, strict=True):
        beam.rows = rows
    return seats


def _on_device(live: list[_Beam], seats: Seats, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Where rows come from, those that are copies, and the last token (R, 1) of each; sent in one piece."""
    n_rows = len(seats.index)
    last = [0] * n_rows
    for beam in live:
        for row, text in zip(beam.rows, beam.live, strict=True):
            last[row] = text.token
    numbers = torch.tensor([*seats.index, *last, *seats.moved]).to(device)
    index, tokens, moved = numbers.split([n_rows, n_rows, len(seats.moved)])
    return index, moved, tokens[:, None]


def _normed(logits: Float[Tensor, "R V"], before: Tensor) -> Float[Tensor, "R V"]:
    """Log-probabilities, written over those of the step before: as much new memory at each step costs as much again."""
    logits = fine(logits)
    room = before if before.dtype == logits.dtype and before.numel() >= logits.numel() else torch.empty_like(logits)
    room = room.view(-1)[: logits.numel()].view(logits.shape)
    log_probs = torch.log_softmax(logits, -1, out=room)
    # A softmax is all numbers or none.
    if log_probs[:, 0].isnan().any():
        raise NumericError("the model's logits are not numbers, so no beam can be ranked")
    return log_probs


class _Text(NamedTuple):
    """A text by its last token and the text before it; `total` is its log-probability."""

    before: _Text | None
    token: int
    log_prob: float
    total: float
    length: int


@dataclass
class _Beam:
    """The texts of one prompt. It begins with one live text, the empty one.

    rows  of the state, one for each live text.
    """

    width: int
    n_best: int
    penalty: LengthPenalty
    eos_id: int | None
    max_tokens: int
    at_limit: Literal["length", "context"]
    record: bool
    rows: list[int]
    live: list[_Text] = field(default_factory=lambda: [_Text(None, -1, 0.0, 0.0, 0)])
    ended: list[Hypothesis] = field(default_factory=list)
    steps: list[tuple[Hypothesis, ...]] = field(default_factory=list)

    @property
    def free(self) -> int:
        """Slots that no ended text holds."""
        return self.width - len(self.ended)

    def step(self, offers: list[Offer]) -> list[int]:
        """Fill the free slots with the first of `offers`; for each text that lives on, its parent's row."""
        before, self.live = self.live, []
        parents = []
        for offer in offers[: self.free]:
            parent = before[offer.parent]
            text = _Text(parent, offer.token, offer.log_prob, offer.total, parent.length + 1)
            finish = self._finish(text)
            if finish is None:
                self.live.append(text)
                parents.append(self.rows[offer.parent])
            else:
                self.ended.append(self._hypothesis(text, finish))
        if self.record:
            self.steps.append(tuple(self.ranked()))
        if self._decided():
            self.live, parents = [], []
        return parents

    def ranked(self) -> list[Hypothesis]:
        """All texts, best score first; of equal ones the earlier."""
        live = [self._hypothesis(text, None) for text in self.live]
        return sorted(self.ended + live, key=lambda hypothesis: -hypothesis.score)

    def _finish(self, text: _Text) -> Literal["eos", "length", "context"] | None:
        if text.token == self.eos_id:
            return "eos"
        return self.at_limit if text.length == self.max_tokens else None

    def _hypothesis(self, text: _Text, finish: Literal["eos", "length", "context"] | None) -> Hypothesis:
        """The text spelled out, with its numbers."""
        penalty, total = self.penalty(text.length), text.total
        tokens, log_probs = [], []
        while text.before is not None:
            tokens.append(text.token)
            log_probs.append(text.log_prob)
            text = text.before
        return Hypothesis(tuple(tokens[::-1]), tuple(log_probs[::-1]), total, penalty, total / penalty, finish)

    def _decided(self) -> bool:
        """Whether no live text can still be among the n best.

        A live text can only lose probability, and lp never falls with the length: the best it can come to is its
        log-probability now over the penalty of the longest text.
        """
        if len(self.ended) < self.n_best or not self.live:
            return False
        bound = max(text.total for text in self.live) / self.penalty(self.max_tokens)
        return sorted(ended.score for ended in self.ended)[-self.n_best] >= bound
