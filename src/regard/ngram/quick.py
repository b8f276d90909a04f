"""Fast paths: the same sums as in `NgramTable`, for the two ways in which a model is used most.

Generation asks for whole distributions after a few texts: row by row, by slices of numpy arrays. A step is some fifty
small operations, and numpy's cost a fifth of torch's.

Scoring asks for the probability of every token of long texts: order by order, over those tokens only whose context was
found at the order below, which soon are few; with numpy, which sorts keys faster, and half of the text on each core.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.core.waiting import threads
from regard.ngram.level import Level, Values
from regard.ngram.spill import searched, taken
from regard.ngram.table import UNSEEN, NgramTable

# Up to so many rows the loop is faster than operations over all of them.
MOST_ROWS = 32
# From so many tokens on a second thread pays.
MANY = 16384


@dataclass(frozen=True)
class _Arrays:
    """A level's tensors as arrays, without copies."""

    keys: np.ndarray
    alpha: tuple[np.ndarray, np.ndarray]
    gamma: tuple[np.ndarray, np.ndarray]

    def alpha_at(self, place: np.ndarray) -> np.ndarray:
        """At places that ascend."""
        return self.alpha[1].take(taken(self.alpha[0], place))

    def gamma_at(self, place: np.ndarray) -> np.ndarray:
        """At places that ascend."""
        return self.gamma[1].take(taken(self.gamma[0], place))

    @classmethod
    def of(cls, level: Level) -> _Arrays:
        return cls(level.keys.numpy(), _codes(level.alpha), _codes(level.gamma))

    def find(self, key: int) -> int:
        """The place of an n-gram, UNSEEN when it is not there."""
        place = int(self.keys.searchsorted(key))
        return place if place < len(self.keys) and self.keys[place] == key else UNSEEN


def probabilities(table: NgramTable, tokens: Int[Tensor, "B W"]) -> Float[Tensor, "B W"]:
    """p of every token after those before it in its row, float64; of the first one without any."""
    levels = [_Arrays.of(table.level(order)) for order in range(1, table.order + 1)]
    rows, overlap = tokens.numpy(), table.order - 1
    middle = rows.shape[1] // 2
    if rows.size < MANY or middle <= overlap:
        return torch.from_numpy(_probabilities(table, levels, rows))
    with threads(1) as second:
        right = second.submit(_probabilities, table, levels, rows[:, middle - overlap :])
        left = _probabilities(table, levels, rows[:, :middle])
        return torch.from_numpy(np.concatenate([left, right.result()[:, overlap:]], 1))


def _probabilities(table: NgramTable, levels: Sequence[_Arrays], tokens: np.ndarray) -> np.ndarray:
    word = tokens.ravel()
    p = table.base.numpy().take(word, mode="clip")
    goes_on = np.ones(tokens.shape, bool)
    goes_on[:, -1] = False  # nothing follows in the row
    goes_on = goes_on.ravel()
    not_end = goes_on & (word != table.eos_id)
    at = np.flatnonzero(goes_on & (word >= 0)) + 1
    context = word.take(at - 1)
    for shorter, longer in itertools.pairwise(levels):
        key = context * table.vocab_size + word.take(at)
        # By ascending key, so that neighbours in memory are looked up one after the other.
        order = key.argsort()
        key, at, context = key.take(order), at.take(order), context.take(order)
        place = searched(longer.keys, key)
        last = len(longer.keys) - 1
        found = np.flatnonzero(taken(longer.keys, np.minimum(place, last)) == key) if last >= 0 else place[:0]
        there, place = at.take(found), place.take(found)
        lower = shorter.gamma_at(context) * p.take(at)
        added = longer.alpha_at(place)
        lower[found] = lower.take(found) + added if table.rules.interpolate else added
        p[at] = lower
        on = not_end.take(there)
        at, context = there[on] + 1, place[on]
    return p.reshape(tokens.shape)


def log_distributions(table: NgramTable, history: Int[Tensor, "B W"]) -> Float[Tensor, "B V"]:
    """log p(w | h) for every w after the last token of each row."""
    levels = [_Arrays.of(table.level(order)) for order in range(1, table.order + 1)]
    start_log = table.base_log if table.base_log.dtype is torch.float64 else table.base_log.float()
    rows = [_row(table, levels, start_log.numpy(), row) for row in history.tolist()]
    return torch.from_numpy(np.stack(rows)).to(table.like.dtype)


def _row(table: NgramTable, levels: Sequence[_Arrays], start_log: np.ndarray, tokens: list[int]) -> np.ndarray:
    start = table.base.numpy()
    contexts = _contexts(table, levels, tokens)
    if table.rules.smoothing == "add_k" and contexts:
        start = table.uniform.numpy()
        start_log = _log(start).astype(start_log.dtype)
        contexts[:-1] = [UNSEEN] * (len(contexts) - 1)
    weight, parts = 1.0, []
    for length in range(len(contexts), 0, -1):
        context = contexts[length - 1]
        if context == UNSEEN:
            continue
        longer, (codes, values) = levels[length], levels[length - 1].gamma
        first = context * table.vocab_size
        low, high = longer.keys.searchsorted((first, first + table.vocab_size))
        words = longer.keys[low:high] - first
        parts.append((words, longer.alpha[1][longer.alpha[0][low:high]] * weight))
        weight *= float(values[codes[context]])
    p = start * weight
    logs = start_log + start_log.dtype.type(_log(np.float64(weight)))
    for words, added in reversed(parts):
        p[words] = p[words] + added if table.rules.interpolate else added
    for words, _ in parts:
        logs[words] = _log(p[words])
    return logs


def _contexts(table: NgramTable, levels: Sequence[_Arrays], tokens: list[int]) -> list[int]:
    """Places of the last 1, 2 .. n - 1 tokens of the sentence, as many as it has."""
    sentence = [token for token in tokens if token >= 0]
    if table.eos_id in sentence:
        sentence = sentence[len(sentence) - 1 - sentence[::-1].index(table.eos_id) :]
    places = []
    for length in range(1, min(table.order - 1, len(sentence)) + 1):
        place, *rest = sentence[-length:]
        for order, token in enumerate(rest, 2):
            place = levels[order - 1].find(place * table.vocab_size + token)
            if place == UNSEEN:
                break
        places.append(place)
    return places


def _codes(values: Values) -> tuple[np.ndarray, np.ndarray]:
    """Codes as they can index, and the table."""
    codes = values.codes.numpy()
    return codes.view(np.uint16) if codes.dtype == np.int16 else codes, values.table.numpy()


def _log(values: np.ndarray | np.float64) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)
