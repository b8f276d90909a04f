"""Where tokens begin in the text that is told: by the characters that each adds to it."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

FAR = 400  # characters within which a token is looked for that does not stand where the last one ends


class Offsets:
    """Of tokens that are written one after the other. at: how many characters there are."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def next(self, name: str, spelt: bytes) -> int:
        """Where a token begins, its name as it is told: a blank that it brings along is not part of some."""
        text = self.decoder.decode(spelt)
        begins, self.at = self.at + _before(name, text), self.at + len(text)
        return begins


def offsets_in(prompt: str, tokens: Iterable[tuple[str, bytes]]) -> list[int]:
    """Where the tokens of a prompt begin in it, by their names and bytes.

    Words that are not known and blanks in a row are not what the tokens spell: there the next token that is found tells
    how far it is.

    >>> offsets_in("the  zebra sat", [("the", b"the"), ("<unk>", b" <unk>"), ("sat", b" sat")])
    [0, 5, 11]
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    found, at, is_lost = list[int](), 0, False
    for name, spelt in tokens:
        text = decoder.decode(spelt)
        place = _place(prompt, text, at, is_lost)
        is_lost = place is None
        if place is None:
            found.append(_after_blanks(prompt, at))
        else:
            found.append(place + _before(name, text))
            at = place + len(text) if prompt.startswith(text, place) else place + len(text.lstrip(" "))
    return found


def _place(prompt: str, text: str, at: int, is_lost: bool) -> int | None:
    """Where a text stands in a prompt from some place on; after more than blanks only where a token was not found."""
    for form in (text, text.lstrip(" ")):
        place = prompt.find(form, at, at + FAR + len(form))
        if place >= 0 and (is_lost or not prompt[at:place].strip(" ")):
            return place
    return None


def _before(name: str, text: str) -> int:
    """Characters of a text before the name that it ends with."""
    return len(text) - len(name) if text.endswith(name) else 0


def _after_blanks(prompt: str, at: int) -> int:
    while prompt.startswith(" ", at):
        at += 1
    return at
