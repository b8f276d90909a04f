"""Encodings: text that is not UTF-8 is told by its mark, by `data.encoding`, or refused with a guess of its name.

UTF-16 and UTF-32 begin with a mark and are read as they are. A text in a legacy encoding has none: any bytes are
Latin-1, so that to guess and go on would spell every word wrong without a sign. It is refused, and the guess is told.
"""

from __future__ import annotations

import codecs
import io
import unicodedata
from typing import Any

from regard.errors import DataError, UsageError

# Longest first: the mark of UTF-32 begins with that of UTF-16.
MARKS = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
# East Asian encodings and the script by which a right guess is known.
EAST_ASIAN = {
    "shift_jis": ("HIRAGANA", "KATAKANA"),
    "euc_jp": ("HIRAGANA", "KATAKANA"),
    "euc_kr": ("HANGUL",),
    "big5": ("CJK",),
    "gb18030": ("CJK",),
}
PIECE = 1 << 16
SAMPLE, FEW = 4000, 8  # bytes beyond ASCII by which an encoding is guessed; fewer are accents in a Latin text
SPARSE = 0.5  # ideographs to a Latin letter: where there are fewer, bytes that make one are two accents by chance
DENSE = 0.4  # of the letters: so many are beyond ASCII where the script is not Latin


def known_encoding(name: str) -> str:
    """The encoding of that name as Python calls it; an unknown one is refused."""
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        raise UsageError(f"data.encoding: there is no encoding {name!r}; such are utf-8, latin-1, cp1252") from None
    if not found._is_text_encoding:
        raise UsageError(f"data.encoding: {name!r} is no encoding of text; such are utf-8, latin-1, cp1252")
    return found.name


def marked(head: bytes) -> str | None:
    """The encoding that the first bytes of a file name by a mark, where it is not UTF-8."""
    found = next((name for mark, name in MARKS.items() if head.startswith(mark)), None)
    # A mark of UTF-16 before half a character, or before nothing, is chance.
    width = 2 if found == "utf-16" else 4
    return None if found is None or len(head) % width else found


def guessed(data: bytes) -> str | None:
    """The encoding that bytes which are no UTF-8 look most like; None where nothing is likely."""
    high = [place for place, byte in enumerate(data) if byte >= 0x80][:SAMPLE]
    if not high:
        return None
    sample = data[max(0, high[0] - 100) : high[-1] + 2]
    for name, scripts in EAST_ASIAN.items():
        if _is_of(sample, name, scripts):
            return name
    letters = sum(chr(byte).isalpha() for byte in sample if byte < 0x80)
    if len(high) >= FEW and len(high) > DENSE * (letters + len(high)):
        return _cyrillic([data[place] for place in high])
    return "cp1252" if any(0x80 <= data[place] < 0xA0 for place in high) else "latin-1"


def _is_of(sample: bytes, name: str, scripts: tuple[str, ...]) -> bool:
    """Whether bytes can be decoded so, and most of what is not ASCII is then of the scripts of that encoding."""
    text = codecs.getincrementaldecoder(name)()
    try:
        decoded = text.decode(sample)
    except UnicodeDecodeError:
        return False
    beyond = [character for character in decoded if ord(character) >= 0x80]
    names = [unicodedata.name(character, "") for character in beyond]
    # Kana tell Japanese apart; ideographs alone may be anything, and single ones are chance.
    own = sum(one.startswith(scripts) for one in names)
    ideographs = sum(one.startswith("CJK") for one in names)
    latin = sum(character.isalpha() for character in decoded) - len(beyond)
    is_dense = len(beyond) >= max(FEW, SPARSE * latin)
    return is_dense and own > 0.1 * len(beyond) and own + ideographs > 0.8 * len(beyond)


def _cyrillic(high: list[int]) -> str | None:
    """Small letters are more common than capitals, and the two encodings of Russian have them the other way round."""
    upper, lower = sum(0xC0 <= byte < 0xE0 for byte in high), sum(byte >= 0xE0 for byte in high)
    if upper + lower < 0.8 * len(high):
        return None
    return "cp1251" if lower > upper else "koi8-r"


class Transcoded(io.RawIOBase):
    """The bytes of a stream in another encoding as UTF-8, without its mark; what is not in it is refused."""

    def __init__(self, stream: Any, encoding: str, name: str) -> None:
        super().__init__()
        self.stream, self.encoding, self.name = stream, encoding, name
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.offset, self.given, self.rest, self.is_over = 0, 0, b"", False

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        """How many bytes of UTF-8 were read."""
        return self.given

    def readinto(self, buffer: Any) -> int:
        while not self.rest and not self.is_over:
            data = self.stream.read(PIECE)
            self.is_over = not data
            self.rest = self._text(data).encode("utf-8", "surrogatepass")
            self.offset += len(data)
        taken, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(taken)] = taken
        self.given += len(taken)
        return len(taken)

    def _text(self, data: bytes) -> str:
        try:
            text = self.decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{self.name} is not {self.encoding}: {error.reason} near byte {self.offset + error.start}; say "
                f"another data.encoding, or mend the file"
            ) from None
        return text.removeprefix("\ufeff") if self.offset == 0 else text
