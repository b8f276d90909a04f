r"""Reading ARPA files, the text form of n-gram models that KenLM, SRILM and others write.

    \data\
    ngram 1=4
    ngram 2=2

    \1-grams:
    -0.6    <unk>
    0       <s>    -0.3          log10 p, the words, log10 of the back-off weight (none means 0)
    -0.5    </s>
    -0.4    a      -0.2

    \2-grams:
    -0.1    <s> a
    -0.2    a </s>

    \end\

The model's one token <eos> is both `<s>`, first in a context, and `</s>`, last in an n-gram. An n-gram with `<s>`
further on or `</s>` further in front is no part of any sentence and is left out. A file without `<unk>` gives unknown
words 10 ** -100, as KenLM does. Text before \data\ and after \end\ is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from regard.data.decoding import refuse_foreign
from regard.data.source import named, opened
from regard.data.tokenizer.word import WordTokenizer
from regard.interop.arpa_lines import AGAIN, Lines, Part, header, parts, short
from regard.models.ngram import NgramConfig, NgramModel
from regard.ngram.coding import coded
from regard.ngram.estimate import Estimate
from regard.ngram.level import Level, Values, empty_values
from regard.ngram.smoothing import Discounts

BEGIN, END, UNKNOWN = b"<s>", b"</s>", (b"<unk>", b"<UNK>")
MISSING_UNKNOWN = -100.0


@dataclass(frozen=True)
class _Vocabulary:
    """id_of  ids in n-grams of the file: as in the tokenizer, except that `<s>` is apart from `</s>`, one above it."""

    tokenizer: WordTokenizer
    id_of: dict[bytes, int]

    @property
    def size(self) -> int:
        return self.tokenizer.vocab_size

    def text(self, ids: Sequence[int]) -> str:
        names = [*self.tokenizer.words, END.decode(), BEGIN.decode()]
        return repr(" ".join(names[i] for i in ids))


def read_arpa(path: Path) -> tuple[NgramModel, WordTokenizer]:
    """The model of an ARPA file, plain, .gz or .xz, and the tokenizer of its words."""
    name = str(path)
    with named(name), opened(name) as stream:
        refuse_foreign(stream, name)
        lines = Lines(stream, name)
        counts = header(lines)
        level, vocabulary = _unigrams(lines, counts[0], len(counts) > 1)
        levels = [level]
        for order, declared in enumerate(counts[1:], 2):
            levels.append(_level(lines, levels, vocabulary, declared, order < len(counts)))
        if lines.title != "\\end\\":
            raise lines.error(lines.number, f"expected '\\end\\', found {short(lines.title)}; {AGAIN}")
        lines.drain()
    model = NgramConfig(vocabulary.size, len(counts), smoothing="given", interpolate=False).build()
    model.table.take(Estimate(levels, [Discounts()] * len(counts), (0.0, vocabulary.size), counts))
    return model, vocabulary.tokenizer


def _unigrams(lines: Lines, declared: int, has_longer: bool) -> tuple[Level, _Vocabulary]:
    found = list(parts(lines, 1, declared))
    words = [word for part in found for word in part.words[0]]
    numbers, log_p, log_back_off = (
        np.concatenate([np.zeros(0), *(getattr(part, name) for part in found)])
        for name in ("lines", "log_p", "log_back_off")
    )
    special = {BEGIN, END, *UNKNOWN}
    tokenizer_words = dict.fromkeys(word.decode() for word in words if word not in special)
    tokenizer = WordTokenizer(list(tokenizer_words), spaced_lines=False, has_lines=False)
    size = tokenizer.vocab_size
    id_of = {word.encode(): i for i, word in enumerate(tokenizer.words)}
    id_of |= dict.fromkeys(UNKNOWN, 0) | {END: size - 1, BEGIN: size}
    ids = np.array([id_of[word] for word in words], np.int64)
    again = np.ones(len(ids), bool)
    again[np.unique(ids, return_index=True)[1]] = False
    if again.any():
        i = int(np.argmax(again))
        raise lines.error(int(numbers[i]), f"the word {short(words[i].decode())} stands there twice; remove one")
    for word in (BEGIN, END):
        if word not in words:
            raise lines.error(lines.number, f"there is no {word.decode()} among the 1-grams: add it, or {AGAIN}")
    table = np.zeros((2, size + 1))
    table[0, 0] = MISSING_UNKNOWN
    table[:, ids] = log_p, log_back_off
    table[1, size - 1] = table[1, size]
    alpha, gamma = (_values(logs[:size]) for logs in table)
    nothing = torch.zeros(0, dtype=torch.int64)
    level = Level(nothing, alpha, gamma if has_longer else empty_values(), size)
    # Only words that were listed may be used: without <unk> among them an n-gram of it is an error.
    return level, _Vocabulary(tokenizer, dict(zip(words, ids.tolist(), strict=True)))


def _level(lines: Lines, shorter: list[Level], vocabulary: _Vocabulary, declared: int, has_longer: bool) -> Level:
    """The n-grams one longer than those of the last level of `shorter`."""
    order = len(shorter) + 1
    found = [np.zeros((order, 0), np.int32)]
    others = [np.zeros((3, 0))]
    for part in parts(lines, order, declared):
        found.append(_ids(lines, part, vocabulary))
        others.append(np.stack([part.lines, part.log_p, part.log_back_off]))
    ids, (numbers, log_p, log_back_off) = np.concatenate(found, 1), np.concatenate(others, 1)
    del found, others
    rows = _sorted_rows(ids, vocabulary.size)
    ids, numbers, log_p, log_back_off = ids[:, rows], numbers[rows], log_p[rows], log_back_off[rows]
    place = torch.from_numpy(np.minimum(ids[0], vocabulary.size - 1).astype(np.int64))
    for level, words in zip(shorter[1:], ids[1:-1], strict=True):
        place = level.find(place, torch.from_numpy(words))
    missing = np.flatnonzero(place.numpy() < 0)
    if len(missing):
        i = missing[np.argmin(numbers[missing])]
        text, context = vocabulary.text(ids[:, i].tolist()), vocabulary.text(ids[:-1, i].tolist())
        raise lines.error(int(numbers[i]), f"{text} has no {context} among the {order - 1}-grams: add it, or {AGAIN}")
    keys = place.numpy() * vocabulary.size + ids[-1]
    twice = np.flatnonzero(keys[1:] == keys[:-1]) + 1
    if len(twice):
        i = twice[np.argmin(numbers[twice])]
        text = vocabulary.text(ids[:, i].tolist())
        raise lines.error(int(numbers[i]), f"the n-gram {text} stands there twice; remove one")
    gamma = _values(log_back_off) if has_longer else empty_values()
    return Level(torch.from_numpy(keys), _values(log_p), gamma, vocabulary.size)


def _ids(lines: Lines, part: Part, vocabulary: _Vocabulary) -> np.ndarray:
    """(order, n) int32."""
    id_of = vocabulary.id_of
    try:
        return np.stack([np.fromiter(map(id_of.__getitem__, words), np.int32, len(words)) for words in part.words])
    except KeyError:
        pass
    number, word = min(
        (int(part.lines[i]), word) for words in part.words for i, word in enumerate(words) if word not in id_of
    )
    raise lines.error(
        number, f"{short(word.decode())} is not among the 1-grams, or a word is missing before it; mend that line"
    )


def _sorted_rows(ids: np.ndarray, size: int) -> np.ndarray:
    """The rows that can be part of a sentence, sorted by their words. 16-bit digits sort in linear time."""
    end, begin = size - 1, size
    possible = ((ids[1:] != begin) & (ids[:-1] != end)).all(0)
    rows = np.flatnonzero(possible)
    digits: list[np.ndarray] = []
    for column in ids:
        column = column[rows]
        digits += [(column >> 16).astype(np.uint16)] * (begin >> 16 > 0) + [column.astype(np.uint16)]
    return rows[np.lexsort(digits[::-1])]


def _values(logs: np.ndarray) -> Values:
    codes, table = coded(logs)
    return Values(torch.from_numpy(codes), torch.from_numpy(10.0**table))
