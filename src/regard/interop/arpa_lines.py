r"""ARPA files as text: the lines, what \data\ declares, and the fields of n-grams, with every failure at its line.

Words stay bytes and are worked on a block of lines at a time: splitting a block in one call costs a fraction of
splitting its lines one by one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from regard.data.decoding import decoded
from regard.errors import DataError
from regard.ngram.counts import LARGEST_ORDER

# Lines are worked on while they are in the cache: at four times as much reading takes a third longer.
BLOCK = 1 << 18
MOST_LINES_BEFORE_DATA = 1000
LARGEST_LOG_BACK_OFF = 300.0
COUNT = re.compile(r"ngram\s+([0-9]{1,18})\s*=\s*([0-9]{1,18})")
# Blanks of the format. bytes.split also cuts at vertical tabs and form feeds, which words may hold.
FIELD = re.compile(rb"[^ \t\r\n]+")
AGAIN = "write the file again with the program that made it"


class Lines:
    """A stream as lines, one by one or many at once.

    number  of the line given out last.
    title   the line that begins with a backslash at which reading stands.
    """

    def __init__(self, stream: io.BufferedReader, name: str) -> None:
        self.stream, self.name = stream, name
        self.number = 0
        self.title = ""
        self._data, self._at, self._offset = b"", 0, 0

    def line(self) -> str | None:
        """The next line that is not blank, without blanks around it; None at the end of the file."""
        while not self._is_over():
            stop = self._data.find(b"\n", self._at) + 1 or len(self._data)
            text = self._data[self._at : stop].decode().strip(" \t\r\n\ufeff")
            self._at = stop
            self.number += 1
            if text:
                return text
        return None

    def block(self) -> bytes:
        """Lines up to one that begins with a backslash, as many as are at hand; none where that is the next one."""
        if self._is_over():
            raise self.cut_short()
        if self._data.startswith(b"\\", self._at):
            return b""
        stop = self._data.find(b"\n\\", self._at) + 1 or len(self._data)
        block = self._data[self._at : stop]
        self._at = stop
        self.number += block.count(b"\n")
        if not block.endswith(b"\n"):
            self.number += 1
            raise self.cut_short()
        return block

    def drain(self) -> None:
        """Read to the end: compressed data is checked only there."""
        while self.stream.read(BLOCK):
            pass

    def error(self, number: int, what: str) -> DataError:
        return DataError(f"{self.name}, line {number}: {what}")

    def cut_short(self) -> DataError:
        return self.error(self.number, r"the file ends here without \end\: it was cut short; copy or download it again")

    def _is_over(self) -> bool:
        if self._at < len(self._data):
            return False
        self._offset += len(self._data)
        self._data, self._at = self.stream.read(BLOCK) + self.stream.readline(BLOCK), 0
        if len(self._data) == 2 * BLOCK and not self._data.endswith(b"\n"):
            number = self.number + self._data.count(b"\n") + 1
            raise self.error(number, f"the line has more than {BLOCK:,} bytes, so this is no ARPA file; give another")
        decoded(self._data, self.name, self._offset, self.number + 1)
        return not self._data


@dataclass(frozen=True)
class Part:
    """Some n-grams of one order as they stand in the file.

    lines         their line numbers.
    words         for each place in an n-gram the words there.
    log_p         log10 of the probability.
    log_back_off  log10 of the back-off weight.
    """

    lines: np.ndarray
    words: list[list[bytes]]
    log_p: np.ndarray
    log_back_off: np.ndarray


def header(lines: Lines) -> list[int]:
    r"""What \data\ declares: how many n-grams of each order from 1 on."""
    line = first = lines.line()
    while line != "\\data\\":
        if line is None or lines.number > MOST_LINES_BEFORE_DATA:
            found = "the file is empty" if first is None else f"it begins with {short(first)}"
            raise lines.error(
                1, rf"no ARPA file, as it has no \data\: {found}; give the text form of a model, not a binary one"
            )
        line = lines.line()
    counts: list[int] = []
    while (line := lines.line()) is not None and not line.startswith("\\"):
        match = COUNT.fullmatch(line)
        if match is None or int(match[1]) != len(counts) + 1:
            raise lines.error(lines.number, f"expected 'ngram {len(counts) + 1}=COUNT', found {short(line)}; {AGAIN}")
        counts.append(int(match[2]))
        if len(counts) > LARGEST_ORDER:
            raise lines.error(lines.number, f"n-grams of more than {LARGEST_ORDER} words; give a model of lower order")
    if line is None:
        raise lines.cut_short()
    if not counts:
        raise lines.error(lines.number, rf"\data\ declares nothing: expected 'ngram 1=COUNT' before this; {AGAIN}")
    lines.title = line
    return counts


def parts(lines: Lines, order: int, declared: int) -> Iterator[Part]:
    """The n-grams of one order, block by block, and at the end the check that all are there."""
    if lines.title != f"\\{order}-grams:":
        raise lines.error(lines.number, rf"expected '\{order}-grams:', found {short(lines.title)}; {AGAIN}")
    start, total = lines.number, 0
    while block := lines.block():
        part = _part(lines, block, order)
        total += len(part.lines)
        yield part
    if total != declared:
        raise lines.error(
            start, rf"{total} {order}-grams follow and \data\ declares {declared}: the file is damaged; {AGAIN}"
        )
    lines.title = lines.line() or ""


def _part(lines: Lines, block: bytes, order: int) -> Part:
    fields, numbers, width = _fields(lines, block, order)
    step = width + 1
    words = [fields[1 + j :: step] for j in range(order)]
    log_p = _floats(lines, fields[::step], numbers, "log10 probability", 0.0)
    if width == order + 1:
        return Part(numbers, words, log_p, np.zeros(len(log_p)))
    weights = fields[order + 1 :: step]
    return Part(numbers, words, log_p, _floats(lines, weights, numbers, "log10 back-off weight", LARGEST_LOG_BACK_OFF))


def _fields(lines: Lines, block: bytes, order: int) -> tuple[list[bytes], np.ndarray, int]:
    """All fields of a block with a NUL after those of each line, the lines' numbers, and how many fields each has."""
    split: Callable[[bytes], list[bytes]] = FIELD.findall if b"\v" in block or b"\f" in block else bytes.split
    n_lines = block.count(b"\n")
    first = lines.number - n_lines + 1
    fields = split(block.replace(b"\n", b" \0 "))
    for width in (order + 1, order + 2):
        if len(fields) == n_lines * (width + 1) and fields[width :: width + 1].count(b"\0") == n_lines:
            return fields, np.arange(first, first + n_lines), width
    fields, numbers = [], []
    for number, line in enumerate(block.split(b"\n"), first):
        found = split(line)
        if not found:
            continue
        if len(found) == order + 1:
            found.append(b"0")
        if len(found) != order + 2:
            raise lines.error(
                number,
                f"expected log10 p, {order} word{'s' * (order > 1)} and perhaps a back-off weight, found {len(found)} "
                f"fields; mend that line",
            )
        fields += found
        fields.append(b"\0")
        numbers.append(number)
    return fields, np.array(numbers, np.int64), order + 2


def _floats(lines: Lines, fields: list[bytes], numbers: np.ndarray, what: str, largest: float) -> np.ndarray:
    # Python reads 0_4 as 4.
    read = _float if b"_" in b"".join(fields) else float
    try:
        values = np.fromiter(map(read, fields), np.float64, len(fields))
    except ValueError:
        values = np.array([_float(field) for field in fields])
    wrong = np.flatnonzero(~(np.isfinite(values) & (values <= largest)))
    if len(wrong):
        i = int(wrong[0])
        reason = f"above {largest:g}" if largest < values[i] < np.inf else "no finite number"
        raise lines.error(int(numbers[i]), f"the {what} {short(fields[i].decode())} is {reason}; mend that line")
    return values


def _float(field: bytes) -> float:
    try:
        return np.nan if b"_" in field else float(field)
    except ValueError:
        return np.nan


def short(text: str) -> str:
    """The beginning of a text in quotes, on one line."""
    text = text if len(text) <= 60 else text[:57] + "..."
    return f"'{text}'" if text.isprintable() else repr(text)
