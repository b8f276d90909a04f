"""Soft lookup: what was written for the most similar sources of training, each as much as it is similar.

    w_k  = exp(s_k / h) / sum_k exp(s_k / h)                  over the K most similar; s: how similar, h: the bandwidth
    c_n(v)  sum_k w_k (how often v comes, in text k, after the last n tokens that were written)
    c(v)    sum_k w_k [text k begins with all that was written, and goes on with v]

    p_n(v)  = (c_n(v) + m p_(n-1)(v)) / (c_n(all) + m),  n = 0 .. N,  p_(-1) the words of all texts of training
    p(v)    = (c(v) + m p_N(v)) / (c(all) + m)

That is the estimate of Nadaraya 1964 and Watson 1964 of what comes next, and attention with the training set as its
memory: sources are keys, texts are values, and a softmax of similarities says how much each counts. Texts that do not
begin like the one that is written count by the few tokens before, as in an n-gram model of the texts that were found.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from regard.core.config import check
from regard.core.context import Context, real_tokens
from regard.core.fitted import FitSettings, Tell
from regard.core.state import RecentTokens, State
from regard.fitting.choice import Open, choose
from regard.fitting.lookup import Found
from regard.fitting.model import FittedConfig, require
from regard.models.fitted_writer import FittedWriter

AT_ONCE = 1 << 20  # places of texts that are compared together
SOURCES_AT_ONCE = 1 << 22  # similarities that are worked out together
FIRST = 1e-9  # of equally similar sources the earlier is taken, by so much for each
BACK_OFFS = (0.01, 0.03, 0.1, 0.3, 1.0)
BACK_OFF = 0.1


@dataclass(frozen=True)
class SoftLookupConfig(FittedConfig):
    """neighbours: K, at most. order: N + 1, tokens of an n-gram of the texts that were found.

    bandwidth, back_off  h and m; None for the one with the lowest held-out loss.
    """

    vocab_size: int
    neighbours: int = 32
    order: int = 4
    bandwidth: float | None = None
    back_off: float | None = None

    def __post_init__(self) -> None:
        check(self.vocab_size > 0, f"vocab_size must be positive, found {self.vocab_size}")
        check(self.neighbours >= 1, f"neighbours must be 1 or more, found {self.neighbours}")
        check(1 <= self.order <= 32, f"order must lie in 1 .. 32, found {self.order}")
        for name in ("bandwidth", "back_off"):
            value = getattr(self, name)
            check(value is None or 0 < value < float("inf"), f"{name} must be positive and finite, found {value}")


@dataclass(frozen=True)
class LookedUp(State):
    """rows (B, K): texts that were found, -1 for none. weights (B, K). agrees (B, K): begins with all that was written.

    recent  the last N tokens.
    """

    rows: Tensor
    weights: Tensor
    agrees: Tensor
    recent: RecentTokens

    @property
    def position(self) -> Tensor:
        return self.recent.position

    def free(self, rows: Tensor) -> LookedUp:
        weights, agrees = self.weights.index_fill(0, rows, 0), self.agrees.index_fill(0, rows, 0)
        return LookedUp(self.rows.index_fill(0, rows, -1), weights, agrees, self.recent.free(rows))


class SoftLookup(FittedWriter):
    """texts (P,), starts (n + 1,): what was written in training, end to end. chosen (2,): h and m."""

    config: Any
    bandwidths: ClassVar[tuple[float, ...]]  # that are tried
    texts: Tensor
    starts: Tensor
    chosen: Tensor

    def __init__(self, config: SoftLookupConfig) -> None:
        super().__init__()
        self.config, self.vocab_size = config, config.vocab_size
        for name in ("texts", "starts"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64))
        self.register_buffer("chosen", torch.zeros(0, dtype=torch.float64))
        self.register_buffer("usual", torch.zeros(0, dtype=torch.float64), persistent=False)

    @abstractmethod
    def similarity(self, memory: Tensor, lengths: Tensor | None) -> Tensor:
        """How similar every source of training is, (B, n) float64."""

    def shown(self, row: int) -> tuple[int, ...]:
        """The ids of a source of training; of one that is no text none."""
        return ()

    def remember(self, target: Any, own: Mapping[str, Tensor], settings: FitSettings, tell: Tell) -> dict[str, Any]:
        """Take texts, and `own` numbers of the sources beside them, and choose what is left open."""
        parts = {"texts": target.values, "starts": target.starts}
        made = {name: torch.from_numpy(np.asarray(value, np.int64)) for name, value in parts.items()}
        self.take({**made, **own} | {"chosen": torch.tensor([self.bandwidths[0], BACK_OFF], dtype=torch.float64)})
        asked = (
            Open("bandwidth", 0, self.config.bandwidth, self.bandwidths),
            Open("back_off", 1, self.config.back_off, BACK_OFFS),
        )
        losses = choose(self.chosen, asked, settings.judge, tell)
        h, m = self.chosen.tolist()
        told = f"{len(self.starts) - 1:,} texts to look up, bandwidth {h:g}, back-off {m:g}"
        return {"told": told, "bandwidth": h, "back_off": m, "losses": losses}

    def begin(self, memory: Tensor, lengths: Tensor | None) -> LookedUp:
        recent = RecentTokens.none(len(memory), self.config.order - 1, memory.device)
        k, n = self.config.neighbours, max(0, len(self.starts) - 1)
        rows = torch.full((len(memory), k), -1, device=memory.device)
        weights = torch.zeros(len(memory), k, dtype=torch.float64, device=memory.device)
        met = len(memory) if memory.shape[1] and n else 0
        size = max(1, SOURCES_AT_ONCE // max(1, n))
        for first in range(0, met, size):
            part = slice(first, first + size)
            similar = self.similarity(memory[part], None if lengths is None else lengths[part])
            similar = similar - FIRST * torch.arange(n, device=memory.device) / n
            best, index = similar.topk(min(k, n), -1)
            rows[part, : min(k, n)] = index
            weights[part, : min(k, n)] = (best / self.chosen[0]).softmax(-1)
        return LookedUp(rows, weights, rows >= 0, recent)

    def looked_up(self, source: Tensor) -> list[Found]:
        """The sources of training that are most similar to one, (1, ...), and what was written for them."""
        state = self.begin(*self.encode(source))
        found = zip(state.rows[0].tolist(), state.weights[0].tolist(), strict=True)
        return [Found(row, weight, self.shown(row), tuple(self._text(row))) for row, weight in found if row >= 0]

    def write(self, tokens: Tensor, state: State, context: Context) -> tuple[Tensor, LookedUp]:
        assert isinstance(state, LookedUp)
        texts = self._framed(state.rows)  # (B, K, L)
        agrees = self._agreeing(tokens, state, texts)  # (B, T, K)
        history = torch.cat([state.recent.tokens, tokens], 1)
        read = tokens.shape[1] * texts.shape[1] * texts.shape[2]
        size = max(1, AT_ONCE // max(1, read))
        whole = (history, texts, state.weights, agrees, state.position)
        parts = zip(*(part.split(size) for part in whole), strict=True)
        p = [self._log_p(tokens.shape[1], *part) for part in parts]
        # A text goes on agreeing from its last real token, before which padding has changed nothing.
        kept = real_tokens(context.lengths, tokens)
        last = agrees | ~kept[..., None]
        after = torch.cat([state.agrees[:, None], last], 1).all(1)
        recent = state.recent.after(history, context.lengths)
        return torch.cat(p).to(self.like.dtype), LookedUp(state.rows, state.weights, after, recent)

    def _agreeing(self, tokens: Tensor, state: LookedUp, texts: Tensor) -> Tensor:
        """(B, T, K): whether a text begins with all that was written up to each token."""
        place = state.position[:, None] + torch.arange(tokens.shape[1], device=tokens.device)  # (B, T)
        asked = place[:, None].expand(-1, texts.shape[1], -1)
        there = texts.gather(2, asked.clamp(max=texts.shape[2] - 1)).masked_fill(asked >= texts.shape[2], -1)
        same = (there == tokens[:, None]).transpose(1, 2)
        return torch.cat([state.agrees[:, None], same], 1).cummin(1).values[:, 1:]

    def _log_p(
        self, length: int, history: Tensor, texts: Tensor, weights: Tensor, agrees: Tensor, position: Tensor
    ) -> Tensor:
        """log p (B, T, V)."""
        n_rows, _, room = texts.shape
        place = position[:, None] + torch.arange(1, length + 1, device=texts.device)  # of the next token, (B, T)
        whole = torch.zeros(n_rows, length, *texts.shape[1:], dtype=torch.bool, device=texts.device)
        # What follows place l stands at l + 1; beyond its end a text has no more to say.
        at = (place - 1).clamp(max=room - 1)[:, :, None, None].expand(-1, -1, texts.shape[1], 1)
        whole = whole.scatter(3, at, (agrees & (place < room)[..., None])[..., None])
        levels = [*self._matches(history, texts, length), whole]
        after = torch.nn.functional.pad(texts[:, :, 1:], (0, 1), value=-1)
        m, scale = float(self.chosen[1]), torch.ones(n_rows, length, dtype=torch.float64, device=texts.device)
        found = torch.zeros(n_rows * length * self.vocab_size, dtype=torch.float64, device=texts.device)
        base = self._words(after, weights, m)
        for match in reversed(levels):
            row, t, k, at = (match & (after >= 0)[:, None]).nonzero(as_tuple=True)
            weight = weights[row, k]
            total = torch.zeros_like(scale).index_put_((row, t), weight, accumulate=True)
            cells = (row * length + t) * self.vocab_size + after[row, k, at]
            found.index_add_(0, cells, weight * (scale / (total + m))[row, t])
            scale = scale * m / (total + m)
        return found.view(n_rows, length, self.vocab_size).addcmul_(scale[..., None], base[:, None]).log_()

    def _words(self, after: Tensor, weights: Tensor, m: float) -> Tensor:
        """p_0, (B, V): the words of the texts that were found, whatever came before."""
        row, k, at = (after >= 0).nonzero(as_tuple=True)
        found = (m * self.usual).repeat(len(after), 1)
        found.view(-1).index_add_(0, row * self.vocab_size + after[row, k, at], weights[row, k])
        return found / found.sum(-1, keepdim=True)

    def _matches(self, history: Tensor, texts: Tensor, length: int) -> list[Tensor]:
        """For n = 1 .. N where in each text, (B, T, K, L), the last n tokens stand up to and with a place."""
        order, found = self.config.order, list[Tensor]()
        for n in range(1, order):
            back = torch.nn.functional.pad(texts, (n - 1, 0), value=-2)[:, :, : texts.shape[2]]
            same = back[:, None] == history[:, order - n : order - n + length, None, None]
            found.append(found[-1] & same if found else same)
        return found

    def _framed(self, rows: Tensor) -> Tensor:
        """Texts (B, K, L) with an end on each side, and -1 after."""
        if not len(self.starts):
            return torch.full((*rows.shape, 1), -1, device=rows.device)
        begin = self.starts[rows.clamp(min=0)]
        size = torch.where(rows >= 0, self.starts[rows.clamp(min=0) + 1] - begin, -2)
        place = torch.arange(max(1, int(size.max()) + 2 if size.numel() else 1), device=rows.device)
        inner = (place >= 1) & (place <= size[..., None])
        index = (begin[..., None] + place - 1).clamp(0, max(0, len(self.texts) - 1))
        words = self.texts[index] if len(self.texts) else torch.zeros_like(index)
        end = torch.where((rows >= 0)[..., None] & (place <= size[..., None] + 1), self.vocab_size - 1, -1)
        return torch.where(inner, words, end)

    def _text(self, row: int) -> list[int]:
        return self.texts[int(self.starts[row]) : int(self.starts[row + 1])].tolist()

    def settle(self) -> None:
        if self.starts.is_meta or not len(self.starts):
            return
        rises = int(self.starts[0]) == 0 and bool((self.starts.diff() >= 0).all())
        require(rises and int(self.starts[-1]) == len(self.texts), "starts")
        require(not len(self.texts) or 0 <= int(self.texts.min()) <= int(self.texts.max()) < self.vocab_size, "texts")
        require(len(self.chosen) == 2 and bool((self.chosen > 0).all()), "chosen")
        counts = torch.bincount(self.texts, minlength=self.vocab_size).double() + 1
        counts[-1] += len(self.starts) - 1
        self.usual = (counts / counts.sum()).to(self.starts.device)
