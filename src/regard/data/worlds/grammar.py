"""Grammars with weights and a memory.

A grammar is a tree of nodes. A node offers options; each has a probability, the words it says, a fact it remembers and
the nodes that follow. `sample` takes one option after another at random. A reader follows every
option that agrees with the words read so far. Both see the same options, so that what is drawn is what is known.

Reading a text of a grammar: the exact next-word distribution for every beginning.

Several accounts of the same words may be possible. Each is a reading; a word drops those that would have said another
one and weighs the others by Bayes' rule, so the chances of all words are exact whatever is still undecided.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Any, NamedTuple

from regard.errors import DataError

END = "<eos>"


class Option(NamedTuple):
    """One way to go on.

    fact    variable and value to remember.
    tells   the variable whose value the words say.
    recall  whether that value is determined by what was said before.
    """

    probability: float
    words: tuple[str, ...] = ()
    then: tuple[Node, ...] = ()
    fact: tuple[str, str] | None = None
    tells: str | None = None
    recall: bool = False


class Options(NamedTuple):
    """All ways to go on, and the running sums of their probabilities, the last one left out."""

    items: tuple[Option, ...]
    sums: list[float]


def _options(items: Iterable[Option]) -> Options:
    items = tuple(items)
    return Options(items, list(accumulate(option.probability for option in items))[:-1])


class Node(ABC):
    """A part of a grammar."""

    parts: tuple[Node, ...] = ()
    lexicon: tuple[str, ...] = ()

    @abstractmethod
    def options(self, facts: Mapping[str, str]) -> Options:
        """What may come here, given what is remembered."""


class Text(Node):
    """Fixed words."""

    def __init__(self, words: str) -> None:
        self.lexicon = tuple(words.split(" ")) if words else ()
        self._all = _options([Option(1.0, self.lexicon)])

    def options(self, facts: Mapping[str, str]) -> Options:
        return self._all


class InOrder(Node):
    """Parts one after the other."""

    def __init__(self, *parts: Node) -> None:
        self.parts = parts
        self._all = _options([Option(1.0, then=parts)])

    def options(self, facts: Mapping[str, str]) -> Options:
        return self._all


class Choose(Node):
    """One of several parts, with chances in proportion to their weights."""

    def __init__(self, weighted: Sequence[tuple[float, Node]]) -> None:
        total = sum(weight for weight, _ in weighted)
        self.parts = tuple(part for _, part in weighted)
        self._all = _options(_entering(part, weight / total) for weight, part in weighted)

    def options(self, facts: Mapping[str, str]) -> Options:
        return self._all


class Pick(Node):
    """Says one of the words `values` and remembers it as `variable`; never one that `apart_from` variables hold."""

    def __init__(self, variable: str, values: str, apart_from: Sequence[str] = ()) -> None:
        self.variable, self.lexicon, self.apart_from = variable, tuple(values.split(" ")), tuple(apart_from)
        self._known: dict[tuple[str | None, ...], Options] = {}

    def options(self, facts: Mapping[str, str]) -> Options:
        taken = tuple([facts.get(name) for name in self.apart_from])
        known = self._known.get(taken)
        if known is None:
            free = [value for value in self.lexicon if value not in taken]
            each = 1 / len(free)
            known = _options(Option(each, (v,), (), (self.variable, v), self.variable) for v in free)
            self._known[taken] = known
        return known


class Say(Node):
    """Says the value of a variable, or the word that `table` has for it. `recall` marks a word to be remembered."""

    def __init__(self, variable: str, table: Mapping[str, str] | None = None, recall: bool = False) -> None:
        self.variable, self.table, self.recall = variable, table, recall
        self.lexicon = tuple(sorted(set(table.values()))) if table else ()
        self._known: dict[str, Options] = {}

    def options(self, facts: Mapping[str, str]) -> Options:
        value = facts[self.variable]
        known = self._known.get(value)
        if known is None:
            word = self.table[value] if self.table else value
            tells = None if self.table else self.variable
            known = self._known[value] = _options([Option(1.0, (word,), tells=tells, recall=self.recall)])
        return known


class Repeat(Node):
    """A part some number of times, every number from 0 to `most` equally likely."""

    def __init__(self, part: Node, most: int) -> None:
        self.parts = (part,)
        stop = Option(1 / (most + 1))
        again = [Option(most / (most + 1), then=(part, Repeat(part, most - 1)))] if most else []
        self._all = _options([*again, stop])

    def options(self, facts: Mapping[str, str]) -> Options:
        return self._all


class InAnyOrder(Node):
    """All parts in an order drawn at random, with `between` them. known: options of the sets of parts that were met.

    What may follow depends on which parts are left, not on their order so far: 2^n sets at most, where orders are n!.
    """

    def __init__(self, parts: Sequence[Node], between: Node, known: dict[Any, Options] | None = None) -> None:
        self.parts = (*parts, between)
        self._known = {} if known is None else known

    def options(self, facts: Mapping[str, str]) -> Options:
        if self.parts not in self._known:
            *parts, between = self.parts
            rests = [InAnyOrder([*parts[:i], *parts[i + 1 :]], between, self._known) for i in range(len(parts))]
            ways = [
                (part, between, rest) if len(parts) > 1 else (part,) for part, rest in zip(parts, rests, strict=True)
            ]
            self._known[self.parts] = _options(Option(1 / len(parts), then=way) for way in ways)
        return self._known[self.parts]


def one_of(words: str) -> Choose:
    """One of the words, all equally likely."""
    return Choose([(1, Text(word)) for word in words.split(" ")])


def lexicon(root: Node) -> list[str]:
    """Every word that a grammar can say, sorted."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found.update(node.lexicon)
            waiting.extend(node.parts)
    return sorted(found)


def sample(root: Node, random: Random) -> tuple[list[str], float]:
    """A text drawn from the grammar, and the log of the probability of the choices that made it."""
    words: list[str] = []
    facts: dict[str, str] = {}
    log_probability = 0.0
    stack = [root]
    while stack:
        items, sums = stack.pop().options(facts)
        option = items[0]
        if sums:
            option = items[bisect_right(sums, random.random())]
            log_probability += math.log(option.probability)
        words += option.words
        if option.fact:
            facts[option.fact[0]] = option.fact[1]
        stack += option.then[::-1]
    return words, log_probability


def _entering(part: Node, probability: float) -> Option:
    """The option of going into `part`, without a detour over a node that has no choice of its own."""
    if isinstance(part, Text):
        return Option(probability, part.lexicon)
    return Option(probability, then=part.parts if isinstance(part, InOrder) else (part,))


class Reading(NamedTuple):
    """One account of the words read so far: what it would say next, what follows, what it remembers.

    stack and trace are linked lists, so that readings share what they have in common. The trace holds
    (index, variable, recall) for every word that told a variable.
    """

    probability: float
    words: tuple[str, ...]
    tells: tuple[str, bool] | None
    stack: Any
    facts: dict[str, str]
    trace: Any


class GrammarReader:
    """Reads a text word by word and knows how likely each next word is."""

    def __init__(self, root: Node) -> None:
        self.readings = [Reading(1.0, (), None, (root, None), {}, None)]
        self.n_read = 0

    def distribution(self) -> dict[str, float]:
        """The exact distribution of the next word, `<eos>` included."""
        result: dict[str, float] = {}
        for reading in self._opened(None):
            word = reading.words[0] if reading.words else END
            result[word] = result.get(word, 0.0) + reading.probability
        return result

    def read(self, word: str) -> float:
        """Take one more word and return how likely it was. A word that cannot follow is refused."""
        agreeing = list(self._opened(word))
        probability = sum(reading.probability for reading in agreeing)
        if not agreeing:
            raise DataError(f"{word!r} cannot follow as word {self.n_read} of this world: the text was not made by it")
        self.readings = [self._after(reading, probability) for reading in agreeing]
        self.n_read += 1
        return probability

    def recalls(self) -> list[tuple[int, int]]:
        """(index, distance) of the words read that had to be recalled from `distance` words back."""
        entries = []
        trace = self.readings[0].trace
        while trace:
            entry, trace = trace
            entries.append(entry)
        last: dict[str, int] = {}
        found = []
        for index, variable, recall in reversed(entries):
            if recall:
                found.append((index, index - last[variable]))
            last[variable] = index
        return found

    def _after(self, reading: Reading, total: float) -> Reading:
        trace = ((self.n_read, *reading.tells), reading.trace) if reading.tells else reading.trace
        return reading._replace(
            probability=reading.probability / total, words=reading.words[1:], tells=None, trace=trace
        )

    def _opened(self, word: str | None) -> Iterator[Reading]:
        """Readings carried on to their next word, or to the end of the text; only those that agree with `word`."""
        waiting = self.readings[::-1]
        while waiting:
            reading = waiting.pop()
            if reading.words or reading.stack is None:
                if word is None or word == (reading.words[0] if reading.words else END):
                    yield reading
                continue
            node, rest = reading.stack
            for option in reversed(node.options(reading.facts).items):
                if option.words and word is not None and option.words[0] != word:
                    continue
                waiting.append(_taken(reading, option, rest))


def _taken(reading: Reading, option: Option, rest: Any) -> Reading:
    facts = reading.facts if option.fact is None else {**reading.facts, option.fact[0]: option.fact[1]}
    for node in reversed(option.then):
        rest = (node, rest)
    tells = (option.tells, option.recall) if option.tells else None
    return Reading(reading.probability * option.probability, option.words, tells, rest, facts, reading.trace)
