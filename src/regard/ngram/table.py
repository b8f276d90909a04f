"""NgramTable: every order together, and the two questions asked of it: one probability, or a whole distribution.

    p(w | h) = alpha(h w) + gamma(h) p(w | h')

Unrolled, a distribution is the words' own distribution times all gammas, and a few entries more for the words that
were seen after h, h' and so on: one pass over the vocabulary, whatever the order.

Glossary
h, h'    the last n - 1 tokens, and the same without the first of them
alpha    what the n-gram h w adds to p(w | h)
gamma    the weight of p(w | h') after h
place    of an n-gram among those of its order

Eight bits a number: each table of values cut down to 256, evenly spaced in their logarithms.

A step is a few per cent, and the value of each is the mean of the numbers it stands for, so that errors cancel in a
sum; 0 and the largest number, the 1 of a context that saw nothing among them, are kept. Probabilities then sum to 1
only about: what it costs is measured when a model is fitted, and printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.modules.module import _IncompatibleKeys as IncompatibleKeys

from regard.ngram.estimate import Estimate, Rules
from regard.ngram.level import Level, Values, empty_level, level_of

# Instead of a place: an n-gram that was never seen, and one that there is not, as its sentence has fewer tokens.
UNSEEN, ABSENT = -1, -2
BINS = 256


@dataclass(frozen=True)
class _Mix:
    """Distributions in parts: start x weight (M, 1), with `added` at `cells` of the flattened (M, V)."""

    start: Tensor
    start_log: Tensor
    weight: Tensor
    cells: list[Tensor]
    added: list[Tensor]


class NgramTable(nn.Module):
    """Levels of order 1 .. n. Before anything was counted every token is as probable as every other."""

    like: Tensor
    discounts: Tensor
    root: Tensor
    uniform: Tensor
    base: Tensor
    base_log: Tensor

    def __init__(self, order: int, vocab_size: int, eos_id: int, rules: Rules) -> None:
        super().__init__()
        self.order, self.vocab_size, self.eos_id, self.rules = order, vocab_size, eos_id, rules
        # Of the number type and on the device of the logarithms that are given out.
        self.register_buffer("like", torch.zeros(0), persistent=False)
        self.register_buffer("discounts", torch.zeros(order, 3, dtype=torch.float64))
        self.register_buffer("root", torch.tensor([1.0, vocab_size], dtype=torch.float64))
        for name in ("uniform", "base", "base_log"):  # worked out from the levels
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64), persistent=False)
        self.levels = nn.ModuleList(empty_level(k, vocab_size) for k in range(1, order + 1))
        self._settle()

    def take(self, found: Estimate) -> None:
        """Take the levels of an estimate; what was known before is forgotten."""
        self.levels = nn.ModuleList(found.levels)
        self.discounts = torch.tensor([[d.one, d.two, d.more] for d in found.discounts], dtype=torch.float64)
        self.root = torch.tensor(found.root, dtype=torch.float64)
        self.to(self.like.device)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take the arrays as they are, of whatever length: a mapped file stays mapped."""
        self.discounts, self.root = state_dict["discounts"], state_dict["root"]
        self.levels = nn.ModuleList(
            level_of({key.removeprefix(f"levels.{i}."): value for key, value in state_dict.items()}, self.vocab_size)
            for i in range(self.order)
        )
        self.to(self.like.device)
        return IncompatibleKeys([], [])

    def _settle(self) -> None:
        """Work out p(w) and the uniform distribution below it, of which `levels` and `root` hold the parts."""
        if self.root.is_meta:
            return
        alpha = self.level(1).alpha
        weight, n_base = self.root
        entries = alpha.entry(torch.arange(self.vocab_size, device=alpha.codes.device))
        inside = torch.ones_like(entries)
        if self.rules.closed and bool(alpha.counts.any()):
            inside = alpha.counts[entries] > 0
        self.uniform = inside.double() / n_base
        self.base = alpha.table[entries] + weight * self.uniform
        self.base_log = self.base.log().to(self.like.dtype)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Another number type is for what is given out; the table itself only moves."""
        like = fn(self.like)
        super()._apply(lambda tensor: tensor.to(like.device), recurse)
        self.like = like
        self._settle()
        return self

    def level(self, order: int) -> Level:
        """The n-grams of one order, from 1 on."""
        level = self.levels[order - 1]
        assert isinstance(level, Level)
        return level

    def places(self, tokens: Int[Tensor, "B W"], highest: int) -> list[Int[Tensor, "B W"]]:
        """Places of the 1, 2 .. `highest` tokens that end at each token."""
        found = [torch.where(tokens >= 0, tokens, ABSENT)]
        for order in range(2, highest + 1):
            before = self.contexts(found[-1], tokens, order - 1)[:, :-1]
            longer = torch.full_like(tokens, ABSENT)
            longer[:, 1:] = before.clamp(max=UNSEEN)
            row, column = torch.nonzero(before >= 0, as_tuple=True)
            longer[row, column + 1] = self.level(order).find(before[row, column], tokens[row, column + 1])
            found.append(longer)
        return found[:highest]

    def contexts(self, places: Int[Tensor, "B W"], tokens: Int[Tensor, "B W"], length: int) -> Int[Tensor, "B W"]:
        """Places of n-grams of `length` tokens as contexts: nothing before the end of a sentence counts after it."""
        return places if length == 1 else torch.where(tokens == self.eos_id, ABSENT, places)

    def probabilities(
        self, contexts: list[Int[Tensor, "M"]], found: list[Int[Tensor, "M"]], words: Int[Tensor, "M"]
    ) -> Float[Tensor, "M"]:
        """p(w | h) for one w after each h, float64. `found` are the places of the n-grams h w of order 2 .. n."""
        p = self.base[words]
        for order, (context, place) in enumerate(zip(self._used(contexts), found, strict=True), 2):
            if order == 2 and self.rules.smoothing == "add_k":
                p = torch.where(contexts[0] >= UNSEEN, self.uniform[words], p)
            rows = torch.nonzero(context >= 0)[:, 0]
            if len(rows) == 0:
                continue
            place = place[rows]
            lower = self.level(order - 1).gamma.at(context[rows]) * p[rows]
            added = self.level(order).added(place)
            p[rows] = added + lower if self.rules.interpolate else torch.where(place >= 0, added, lower)
        return p

    def distributions(self, contexts: list[Int[Tensor, "M"]], n_rows: int) -> Float[Tensor, "M V"]:
        """p(w | h) for every w, float64."""
        mix = self._mix(contexts, n_rows)
        return self._filled(mix)

    def log_distributions(self, contexts: list[Int[Tensor, "M"]], n_rows: int) -> Float[Tensor, "M V"]:
        """log p(w | h) for every w, in the number type of `like`. Logarithms are taken where something was added."""
        mix = self._mix(contexts, n_rows)
        p = self._filled(mix).view(-1)
        kind = self.like.dtype
        logs = mix.start_log.to(kind) + mix.weight.log().to(kind)
        for cells in mix.cells:
            logs.view(-1)[cells] = p[cells].log().to(kind)
        return logs

    def _filled(self, mix: _Mix) -> Tensor:
        p = mix.start * mix.weight
        flat = p.view(-1)
        for cells, added in zip(mix.cells, mix.added, strict=True):
            flat[cells] = flat[cells] + added if self.rules.interpolate else added
        return p

    def _mix(self, contexts: list[Tensor], n_rows: int) -> _Mix:
        start, start_log = self.base[None], self.base_log[None]
        if self.rules.smoothing == "add_k" and contexts:
            start = torch.where((contexts[0] >= UNSEEN)[:, None], self.uniform, self.base)
            start_log = start.log()
        weight = torch.ones(n_rows, dtype=torch.float64, device=start.device)
        cells, added = [], []
        # From the longest context on, so that each order knows the product of the gammas above it.
        for order, context in reversed(list(enumerate(self._used(contexts), 2))):
            rows = torch.nonzero(context >= 0)[:, 0]
            if len(rows) == 0:
                continue
            seen, level, above = context[rows], self.level(order), weight[rows]
            place, sizes = _ranges(*level.following(seen))
            own_row, own_weight = rows, above
            if sizes is not None:
                own_row, own_weight = rows.repeat_interleave(sizes), above.repeat_interleave(sizes)
            cells.insert(0, level.word(place) + own_row * self.vocab_size)
            added.insert(0, level.alpha.at(place) * own_weight)
            weight[rows] = above * self.level(order - 1).gamma.at(seen)
        return _Mix(start, start_log, weight[:, None], cells, added)

    def _used(self, contexts: list[Tensor]) -> list[Tensor]:
        """Contexts that take part: all of them, but for add_k, which never leaves the longest one there is."""
        if self.rules.smoothing != "add_k":
            return contexts
        longer = [*contexts[1:], *([torch.full_like(contexts[0], ABSENT)] if contexts else [])]
        return [torch.where(above == ABSENT, here, UNSEEN) for here, above in zip(contexts, longer, strict=True)]


def _ranges(first: Tensor, last: Tensor) -> tuple[Tensor | slice, Tensor | None]:
    """All places from each first to before its last, and how many each has. One range alone is a slice, unmeasured."""
    if len(first) == 1:
        return slice(int(first), int(last)), None
    sizes = last - first
    ends = sizes.cumsum(0)
    return torch.arange(int(ends[-1]), device=first.device) + (last - ends).repeat_interleave(sizes), sizes


def quantise(table: NgramTable) -> None:
    """Replace the values of every order above 1: words keep theirs, being few."""
    for order in range(2, table.order + 1):
        level = table.level(order)
        table.levels[order - 1] = Level(level.keys, _binned(level.alpha), _binned(level.gamma), table.vocab_size)


def _binned(values: Values) -> Values:
    """The same numbers rounded to at most 256 different ones."""
    if len(values.table) <= BINS:
        return Values(values.codes, values.table)
    logs = values.table.log()
    low, high = logs[values.table > 0].min(), logs.max()
    # The first step is for zeros, the last for the largest number.
    step = 1 + ((logs.clamp(min=low) - low) / (high - low) * (BINS - 2)).long().clamp(max=BINS - 3)
    step[values.table == 0] = 0
    step[values.table == values.table.max()] = BINS - 1
    entries = values.entry(slice(None))
    uses = torch.bincount(entries, minlength=len(values.table)).double()
    mass = torch.zeros(BINS, dtype=torch.float64).index_add_(0, step, uses)
    total = torch.zeros(BINS, dtype=torch.float64).index_add_(0, step, uses * values.table)
    return Values(step[entries].to(torch.uint8), total / mass.clamp(min=1))
