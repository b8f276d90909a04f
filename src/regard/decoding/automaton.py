"""A deterministic automaton over bytes, made of a regular expression: the texts that it accepts are those that match.

Thompson's construction gives an automaton that is in many states at once (Thompson 1968); the sets of states that
it can be in are those of the deterministic one (Rabin and Scott 1959). States from which nothing is accepted are gone:
what has not been refused can still become a match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from regard.decoding.pattern import Characters, Either, Repeat, Sequence, Tree, parsed
from regard.decoding.utf8_range import Range, sequences
from regard.errors import UsageError

DEAD = 0  # the state from which nothing is accepted
MOST_PARTS, MOST_STATES = 30_000, 10_000

Check = Callable[[], None]


@dataclass(frozen=True, eq=False)
class Automaton:
    """table (S, 256): the state after each byte. accepts (S,): whether a text may end there. The start is state 1."""

    table: np.ndarray
    accepts: np.ndarray

    start = 1

    def after(self, state: int, content: bytes) -> int:
        for byte in content:
            state = int(self.table[state, byte])
        return state

    def matches(self, text: str) -> bool:
        return bool(self.accepts[self.after(self.start, text.encode())])


def nothing() -> None:
    """Checks nothing."""


def automaton(pattern: str, check: Check = nothing) -> Automaton:
    """The automaton of an expression. check: called again and again while it is made; it may raise to break off."""
    parts = _Parts()
    begin, end = parts.built(parsed(pattern))
    return _determined(parts, begin, end, check)


@dataclass
class _Parts:
    """free: states that are reached without reading. reads: bytes from .. to, and the state after one of them."""

    free: list[list[int]] = field(default_factory=list)
    reads: list[list[tuple[int, int, int]]] = field(default_factory=list)

    def new(self) -> int:
        if len(self.free) >= MOST_PARTS:
            raise UsageError("the pattern is too large: use fewer or smaller repetitions")
        self.free.append([])
        self.reads.append([])
        return len(self.free) - 1

    def built(self, tree: Tree) -> tuple[int, int]:
        """The first and the last state of what reads a tree."""
        begin = self.new()
        if isinstance(tree, Characters):
            after: dict[tuple[Range, ...], int] = {(): self.new()}
            for first, *rest in sequences(tree.ranges):
                self.reads[begin].append((*first, self._before(tuple(rest), after)))
            return begin, after[()]
        if isinstance(tree, Sequence):
            return begin, self._in_order(begin, tree.parts)
        if isinstance(tree, Either):
            end = self.new()
            for part in tree.parts:
                first, last = self.built(part)
                self.free[begin].append(first)
                self.free[last].append(end)
            return begin, end
        return begin, self._repeated(begin, tree)

    def _before(self, bytes_of: tuple[Range, ...], known: dict[tuple[Range, ...], int]) -> int:
        """The state in which these bytes are still to be read, one for all characters of a set that end with them."""
        if bytes_of not in known:
            known[bytes_of] = self.new()
            self.reads[known[bytes_of]].append((*bytes_of[0], self._before(bytes_of[1:], known)))
        return known[bytes_of]

    def _in_order(self, at: int, parts: tuple[Tree, ...]) -> int:
        """The state after all parts. An item and any number of commas with another are a loop over one item."""
        place = 0
        while place < len(parts):
            first, last = self.built(parts[place])
            self.free[at].append(first)
            at, place = last, place + 1
            comma = _comma(parts[place - 1 : place + 1])
            if comma is not None:
                begin, end = self.built(comma)
                self.free[last].append(begin)
                self.free[end].append(first)
                at, place = self.new(), place + 1
                self.free[last].append(at)
        return at

    def _repeated(self, at: int, tree: Repeat) -> int:
        for _ in range(tree.least):
            first, last = self.built(tree.part)
            self.free[at].append(first)
            at = last
        end = self.new()
        if tree.most is None:
            first, last = self.built(tree.part)
            self.free[at] += [first, end]
            self.free[last] += [first, end]
            return end
        for _ in range(tree.most - tree.least):
            self.free[at].append(end)
            first, last = self.built(tree.part)
            self.free[at].append(first)
            at = last
        self.free[at].append(end)
        return end


def _comma(parts: tuple[Tree, ...]) -> Tree | None:
    """What stands between the items where two parts are x(,x)*, as they are in lists."""
    if len(parts) < 2 or not isinstance(parts[1], Repeat) or (parts[1].least, parts[1].most) != (0, None):
        return None
    more = parts[1].part
    if not isinstance(more, Sequence) or len(more.parts) < 2 or more.parts[-1] != parts[0]:
        return None
    return Sequence(more.parts[:-1])


def _determined(parts: _Parts, begin: int, end: int, check: Check) -> Automaton:
    numbers: dict[frozenset[int], int] = {frozenset(): DEAD}
    start = _closed(parts, {begin})
    numbers[start] = 1
    rows, left = [np.zeros(256, np.int16), np.zeros(256, np.int16)], [start]
    before: list[list[int]] = [[], []]
    while left:
        states = left.pop()
        number = numbers[states]
        row = rows[number]
        for low, high, after in _moves(parts, states):
            check()
            if after not in numbers:
                if len(numbers) > MOST_STATES:
                    raise UsageError("the pattern is too large: use fewer or smaller repetitions")
                numbers[after] = len(rows)
                rows.append(np.zeros(256, np.int16))
                before.append([])
                left.append(after)
            row[low : high + 1] = numbers[after]
            before[numbers[after]].append(number)
    table = np.stack(rows)
    accepts = np.zeros(len(rows), bool)
    for states, number in numbers.items():
        accepts[number] = end in states
    return Automaton(np.where(_alive(accepts, before)[table], table, np.int16(DEAD)), accepts)


def _moves(parts: _Parts, states: frozenset[int]) -> Iterator[tuple[int, int, frozenset[int]]]:
    """Ranges of bytes that lead to one set of states, and that set."""
    reads = [move for state in states for move in parts.reads[state]]
    cuts = sorted({low for low, _, _ in reads} | {high + 1 for _, high, _ in reads})
    for low, after in pairwise(cuts):
        reached = {to for first, last, to in reads if first <= low <= last}
        if reached:
            yield low, after - 1, _closed(parts, reached)


def _closed(parts: _Parts, states: set[int]) -> frozenset[int]:
    """Of the states, and all that are reached from them without reading, those that read or end."""
    seen, left = set(states), list(states)
    while left:
        for after in parts.free[left.pop()]:
            if after not in seen:
                seen.add(after)
                left.append(after)
    return frozenset(state for state in seen if parts.reads[state] or not parts.free[state])


def _alive(accepts: np.ndarray, before: list[list[int]]) -> np.ndarray:
    """The states from which a match can be reached. before: of each state, those that lead to it."""
    alive = accepts.copy()
    left = np.flatnonzero(accepts).tolist()
    while left:
        for state in before[left.pop()]:
            if not alive[state]:
                alive[state] = True
                left.append(state)
    return alive
