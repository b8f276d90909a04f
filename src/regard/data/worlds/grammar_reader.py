"""Reading a text of a grammar: the exact next-word distribution for every beginning.

Several accounts of the same words may be possible. Each is a reading; a word drops those that would have said another
one and weighs the others by Bayes' rule, so the chances of all words are exact whatever is still undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from regard.data.worlds.grammar import END, Node, Option
from regard.errors import DataError


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
