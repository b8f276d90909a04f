"""Sets of characters as sets of byte sequences: what an automaton over bytes reads of UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Range = tuple[int, int]  # both ends belong to it
LAST = 0x10FFFF
LENGTHS = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, LAST))  # surrogates are left out


def sequences(ranges: Iterable[Range]) -> Iterator[tuple[Range, ...]]:
    """Ranges of code points as sequences of ranges of bytes, each of which stands for all its combinations.

    >>> list(sequences([(0x61, 0x7A), (0xE9, 0xE9)]))
    [((97, 122),), ((195, 195), (169, 169))]
    """
    for low, high in ranges:
        for first, last in LENGTHS:
            if max(low, first) <= min(high, last):
                yield from _split(max(low, first), min(high, last))


def _split(low: int, high: int) -> Iterator[tuple[Range, ...]]:
    """Of code points with equally many bytes: cut until every byte but the first varies freely or not at all."""
    a, b = chr(low).encode(), chr(high).encode()
    for place in range(1, len(a)):
        span = 1 << (6 * place)  # code points that share all but their last bytes
        if low // span != high // span:
            if low % span:
                yield from _split(low, low | (span - 1))
                yield from _split((low | (span - 1)) + 1, high)
                return
            if high % span != span - 1:
                yield from _split(low, high // span * span - 1)
                yield from _split(high // span * span, high)
                return
    yield tuple(zip(a, b, strict=True))


def complement(ranges: Iterable[Range]) -> list[Range]:
    """All other code points.

    >>> complement([(0, 9), (11, 1114111)])
    [(10, 10)]
    """
    found, at = [], 0
    for low, high in sorted(ranges):
        if low > at:
            found.append((at, low - 1))
        at = max(at, high + 1)
    return [*found, (at, LAST)] if at <= LAST else found
