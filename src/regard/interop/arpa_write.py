r"""Writing ARPA files, the text form of n-gram models (see `arpa_read`), for KenLM, SRILM and others to load.

An n-gram is written with its whole probability, what shorter contexts add to it included, and the weight of the
shorter context after it. That says the same for interpolated models and for those that back off.

A token is a word:
    words           themselves
    other tokens    their text, with `▁` for a space:  ▁the
    blanks, characters that do not print and bytes that are no character, by their bytes:  <0x0A>
    a name that another token has already, or that means something else in the file, by its bytes:  <0x3C><0x73><0x3E>
`<eos>` is written as `<s>`, of which nobody asks the probability, and as `</s>`. A tokenizer that knows every text has
no unknown token: its `<unk>` has the probability 0, which is written as 10 ** -99, as every 0 is.

Orders of which there are no n-grams at all are left out. KenLM loads models from order 2 on.
"""

from __future__ import annotations

import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.data.tokenizer import Tokenizer
from regard.data.tokenizer.word import UNKNOWN, WordTokenizer
from regard.errors import UsageError
from regard.models.ngram import NgramModel
from regard.ngram.level import Values
from regard.ngram.table import NgramTable
from regard.storage import disk

BEGIN, END = "<s>", "</s>"
ZERO = -99.0
CHUNK = 1 << 15
# What ends a word in some reader or other.
BLANK = re.compile(r"[\x00-\x20\x7f]")


def write_arpa(model: NgramModel, tokenizer: Tokenizer, path: Path) -> None:
    """Write a model as an ARPA file, compressed where the name ends in .gz or .xz. It appears whole or not at all."""
    if model.config.smoothing == "add_k":
        raise UsageError(
            f"{path}: a model with smoothing = add_k never leaves its order, and an ARPA file holds models that go on "
            f"to shorter contexts; train it with another smoothing"
        )
    if (model.vocab_size, model.config.end) != (tokenizer.vocab_size, tokenizer.eos_id):
        raise UsageError(
            f"{path}: the model knows {model.vocab_size} tokens and the tokenizer {tokenizer.vocab_size}; give the "
            f"tokenizer that the model was trained with"
        )
    disk.write_for_person(path, _compressed(_text(model.table, token_names(tokenizer)), path.suffix.lower()))


def token_names(tokenizer: Tokenizer) -> list[str]:
    """A word for every token but `<eos>`, all distinct and none with a blank."""
    of_words = isinstance(tokenizer, WordTokenizer)
    names: list[str] = []
    taken = {"", BEGIN, END, UNKNOWN, UNKNOWN.upper()}
    for token in range(tokenizer.eos_id):
        if token == tokenizer.unknown_id:
            names.append(UNKNOWN)
            continue
        piece = tokenizer.words[token].encode() if of_words else tokenizer.piece(token, None)
        spelled = "".join(f"<0x{byte:02X}>" for byte in piece)
        name = _readable(piece, of_words)
        if name in taken:
            name = spelled
        while name in taken:
            name = f"{name}#{token}"
        taken.add(name)
        names.append(name)
    return names


def _readable(piece: bytes, is_word: bool) -> str:
    if is_word:
        return BLANK.sub(lambda found: f"<0x{ord(found[0]):02X}>", piece.decode())
    parts = []
    for character in piece.decode("utf-8", "surrogateescape"):
        if character == " ":
            parts.append("▁")
        elif character.isprintable() and character != "▁" and not character.isspace():
            parts.append(character)
        else:
            parts += [f"<0x{byte:02X}>" for byte in character.encode("utf-8", "surrogateescape")]
    return "".join(parts)


def _text(table: NgramTable, names: list[str]) -> Iterator[bytes]:
    order = _written_order(table)
    words = _unigrams(table, names, order > 1)
    counts = [len(words), *(len(table.level(k)) for k in range(2, order + 1))]
    yield "\n".join(["\\data\\", *(f"ngram {k}={count}" for k, count in enumerate(counts, 1)), ""]).encode()
    yield b"\n\\1-grams:\n"
    yield _lines(words, 1)
    # <eos> is the last of the names: as the first word of an n-gram it is <s>, as the last one </s>.
    first, last = np.array([*names, BEGIN], object), np.array([*names, END], object)
    for k in range(2, order + 1):
        yield f"\n\\{k}-grams:\n".encode()
        weights = _Weights(table.level(k).gamma, k < order)
        for start in range(0, counts[k - 1], CHUNK):
            places = torch.arange(start, min(start + CHUNK, counts[k - 1]), device=table.base.device)
            tokens = _tokens(table, k, places)
            columns = [(last if j else first)[column].tolist() for j, column in enumerate(tokens.T.cpu().numpy())]
            logs = _logs(_probabilities(table, tokens, places))
            yield _lines(zip(logs, *columns, weights.at(places), strict=True), k)
    yield b"\n\\end\\\n"


def _written_order(table: NgramTable) -> int:
    """The highest order that changes a probability."""
    order = table.order
    while order > 1 and len(table.level(order)) == 0 and bool((table.level(order - 1).gamma.table == 1).all()):
        order -= 1
    return order


def _unigrams(table: NgramTable, names: list[str], has_longer: bool) -> list[tuple[float, str, str]]:
    end, nothing = len(names), "\t0" if has_longer else ""
    weights = _Weights(table.level(1).gamma, has_longer).at(torch.arange(end + 1, device=table.base.device))
    logs = _logs(table.base)
    rows = [] if UNKNOWN in names else [(ZERO, UNKNOWN, nothing)]
    rows += [(ZERO, BEGIN, weights[end]), (logs[end], END, nothing)]
    return [*rows, *zip(logs[:end], names, weights[:end], strict=True)]


class _Weights:
    """Back-off weights as text. Each different one is written once, as there are few."""

    def __init__(self, gamma: Values, written: bool) -> None:
        self.gamma = gamma
        self.texts = (
            np.array([f"\t{log:.8g}" for log in _logs(gamma.table, ceiling=np.inf)], object) if written else None
        )

    def at(self, places: Tensor) -> list[str]:
        if self.texts is None:
            return [""] * len(places)
        return self.texts[self.gamma.entry(places).cpu().numpy()].tolist()


def _tokens(table: NgramTable, order: int, places: Tensor) -> Tensor:
    """(n, order), the tokens of n-grams."""
    columns = []
    for k in range(order, 1, -1):
        level = table.level(k)
        columns.append(level.word(places))
        places = level.keys[places] // table.vocab_size
    return torch.stack([places, *reversed(columns)], 1)


def _probabilities(table: NgramTable, tokens: Tensor, places: Tensor) -> Tensor:
    """p of the last token of n-grams after the others. Asked of the table: the n-gram one shorter may be pruned."""
    order = tokens.shape[1]
    if not table.rules.interpolate:
        return table.level(order).alpha.at(places)
    found = table.places(tokens, order)
    contexts = [table.contexts(place, tokens, length)[:, -2] for length, place in enumerate(found[:-1], 1)]
    return table.probabilities(contexts, [place[:, -1] for place in found[1:]], tokens[:, -1])


def _logs(p: Tensor, ceiling: float = 0.0) -> list[float]:
    """log10. Sums a rounding above 1 are 1."""
    logs = p.log10().clamp(max=ceiling)
    return torch.where(p > 0, logs, ZERO).tolist()


def _lines(rows: Iterable[tuple[float | str, ...]], order: int) -> bytes:
    template = "%.8g\t" + " ".join(["%s"] * order) + "%s\n"
    return "".join(map(template.__mod__, rows)).encode()


def _compressed(chunks: Iterator[bytes], suffix: str) -> Iterator[bytes]:
    if suffix not in (".gz", ".xz"):
        yield from chunks
        return
    packer = zlib.compressobj(wbits=31) if suffix == ".gz" else lzma.LZMACompressor()
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()
