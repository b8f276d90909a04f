"""Texts written from sources: greedy, drawn or searched for, in batches of similar length, answered in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.core.device import device_of
from regard.decoding.beam import BeamResult, beam_search, rescored
from regard.decoding.completion import Opened
from regard.decoding.forbidding import Forbidding
from regard.decoding.generate import Generation, Limits, generate
from regard.decoding.logits import eval_mode
from regard.decoding.penalty import CoveragePenalty
from regard.decoding.prompt import padded
from regard.decoding.stop import Streamer
from regard.errors import TooLong, UsageError

if TYPE_CHECKING:
    from regard.data.tokenizer import Tokenizer
    from regard.decoding.text import TextOptions
    from regard.models.encoder_decoder import Given, SourceModel

ROOM, SPARE = 2, 20  # a text has at most so many times the tokens of its source, and some more


@dataclass(frozen=True)
class Written:
    """A text written from a source.

    tokens     without the ending one.
    log_prob   of all tokens, the ending one among them.
    score      by which it was ranked: log_prob itself without a beam.
    attention  (T, S) of each token, the ending one among them, to each source position, where the decoder has
               attention and it was asked for.
    others     the other texts of the beam, best first.
    """

    text: str
    tokens: tuple[int, ...]
    log_prob: float
    score: float
    finish: str
    attention: Tensor | None = None
    others: tuple[Written, ...] = ()


@dataclass(frozen=True)
class SourceBatch:
    """Sources side by side: (B, S) ids, (B, 3, H, W) pictures, or what else an encoder reads.

    first  the number of the first of them among all, or of each: chance depends on it and not on the batch.
    """

    source: Tensor
    lengths: Tensor | None
    first: int | Sequence[int] = 0

    def __len__(self) -> int:
        return len(self.source)


@torch.no_grad()
def write(
    model: SourceModel,
    tokenizer: Tokenizer,
    sources: SourceBatch,
    options: TextOptions,
    *,
    attention: bool = False,
) -> list[Written]:
    """The best text for each source."""
    if options.coverage and not model.looks_at_source:
        raise UsageError("coverage ranks texts by their attention to the source, and this model has none; leave it out")
    given = model.given(sources.source, sources.lengths)
    limits = _limits(sources, options.max_tokens)
    starts = [torch.tensor(tokenizer.opening)] * len(sources)
    said = given if tokenizer.pad_id in (None, tokenizer.eos_id) else Forbidding(given, [tokenizer.pad_id])
    if options.beam is not None:
        found = _searched(given, said, starts, tokenizer, options, limits)
    else:
        most = Limits(max(limits, default=1), tokenizer.eos_id, slide=False)
        drawn = generate(said, starts, limits=most, settings=options.sampling, seed=options.seed, first=sources.first)
        found = [[_drawn(tokenizer, one, limit)] for one, limit in zip(drawn, limits, strict=True)]
    best = [_ranked(texts) for texts in found]
    return _with_attention(given, tokenizer, best) if attention else best


def _limits(sources: SourceBatch, max_tokens: int) -> list[int]:
    """Tokens that each text may have; by its own source and not by the longest beside it."""
    if sources.lengths is None:
        return [max_tokens] * len(sources)
    return [min(max_tokens, ROOM * length + SPARE) for length in sources.lengths.tolist()]


def _searched(
    given: Given,
    said: Given | Forbidding,
    starts: list[Tensor],
    tokenizer: Tokenizer,
    options: TextOptions,
    limits: list[int],
) -> list[list[Written]]:
    assert options.beam is not None
    results = beam_search(
        said,
        starts,
        width=options.beam,
        max_tokens=limits,
        eos_id=tokenizer.eos_id,
        penalty=options.penalty,
        n_best=options.beam if options.coverage else options.n_best,
    )
    if options.coverage:
        results = [_covered(given, row, result, tokenizer, options) for row, result in enumerate(results)]
    return [
        [_written(tokenizer, one.tokens, one.log_prob, one.score, str(one.finish)) for one in found[: options.n_best]]
        for found in (result.best for result in results)
    ]


def _covered(given: Given, row: int, result: BeamResult, tokenizer: Tokenizer, options: TextOptions) -> BeamResult:
    """The beam of one source ranked by how much of it each text has looked at."""
    attention = attention_of(given, [one.tokens for one in result.best], [row] * len(result.best), tokenizer.opening)
    assert attention is not None
    return rescored(result, attention, options.penalty, CoveragePenalty(options.coverage))


def attention_of(
    given: Given, texts: Sequence[Sequence[int]], rows: Sequence[int], opening: Sequence[int]
) -> list[Tensor] | None:
    """(T, S) for each text: how its tokens look at the source `rows` names. None without attention.

    opening  what is read before the first of them: the start symbol, and what stands before every text.
    """
    index = torch.tensor(rows, device=given.source.device)
    lengths = None if given.lengths is None else given.lengths[index]
    # What is read when token t is written are those before it, the start symbol first.
    before = len(opening) - 1
    read, _ = padded([[*opening, *text[:-1]] for text in texts], given.source.device)
    written, sizes = padded([[*opening[1:], *text] for text in texts], given.source.device)
    with eval_mode(given):
        weights = given.model.alignment(read, given.model.start(given.source[index], lengths), written=written)
    if weights is None:
        return None
    ends = [weights.shape[2]] * len(texts) if lengths is None else lengths.tolist()
    counts = [len(text) for text in texts] if sizes is None else (sizes - before).tolist()
    weights = weights.to(torch.promote_types(weights.dtype, torch.float32))  # of bfloat16 numpy knows nothing
    weights = weights[:, before:]
    return [weights[i, :count, :end].cpu() for i, (count, end) in enumerate(zip(counts, ends, strict=True))]


def _with_attention(given: Given, tokenizer: Tokenizer, best: list[Written]) -> list[Written]:
    texts = [(*one.tokens, tokenizer.eos_id) if one.finish == "eos" else one.tokens for one in best]
    found = attention_of(given, texts, range(len(best)), tokenizer.opening)
    if found is None:
        return best
    return [replace(one, attention=weights) for one, weights in zip(best, found, strict=True)]


def _ranked(texts: list[Written]) -> Written:
    return replace(texts[0], others=tuple(texts[1:]))


def _drawn(tokenizer: Tokenizer, one: Generation, limit: int) -> Written:
    """What was drawn for a source, which may have gone on for longer beside a longer one."""
    finish = one.finish if len(one.tokens) <= limit else "length"
    return _written(tokenizer, one.tokens[:limit], sum(one.log_probs[:limit]), None, finish)


def _written(tokenizer: Tokenizer, tokens: Sequence[int], log_prob: float, score: float | None, finish: str) -> Written:
    kept = tuple(token for token in tokens if token != tokenizer.eos_id)
    text = _line(tokenizer.decode(kept))
    return Written(text, kept, log_prob, log_prob if score is None else score, finish)


@dataclass(frozen=True)
class SourceCompletion:
    """What a model writes from sources, each a row of an engine that begins with its source met.

    read  the ids of a source, of a text or of its tokens, as the model reads them.
    """

    source_model: SourceModel
    tokenizer: Tokenizer
    source_tokenizer: Tokenizer
    read: Callable[[Sequence[int]], Sequence[int]]
    window: None = None
    continues: bool = False
    of_turns: None = None

    @cached_property
    def model(self) -> Any:
        pad = self.tokenizer.pad_id
        whole = self.source_model
        return whole if pad in (None, self.tokenizer.eos_id) else Forbidding(whole, [pad])

    @property
    def end_id(self) -> int:
        return self.tokenizer.eos_id

    @torch.no_grad()
    def opened(self, given: str | Sequence[int]) -> Opened:
        from regard.data.tokenizer import streamer

        ids = self.source_tokenizer.encode(given).tolist() if isinstance(given, str) else list(given)
        for token in ids:
            self.source_tokenizer.checked(token)
        source, most = list(self.read(ids)), self.source_model.max_source_length
        if most is not None and len(source) > most:
            raise TooLong(f"the source has {len(source):,} tokens, and the model reads {most:,} at most", most)
        whole: Any = self.source_model
        row = torch.tensor([source], device=device_of(whole))
        start = self.source_model.start(row, torch.tensor([len(source)], device=row.device))
        most = ROOM * len(source) + SPARE
        return Opened(ids, list(self.tokenizer.opening), lambda: OneLine(streamer(self.tokenizer)), (start, 0), most)


@dataclass(frozen=True)
class OneLine:
    """A streamer whose text is a line, also where bytes of a tokenizer spell the end of one."""

    streamer: Streamer

    def push(self, token: int) -> str:
        return _line(self.streamer.push(token))

    def finish(self) -> str:
        return _line(self.streamer.finish())


def _line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")
