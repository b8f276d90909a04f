"""Prompt lookup: the text so far as its own draft (Saxena 2023; Yang et al. 2023, inference with reference).

The longest end of the text that was seen before in it proposes what followed then; of equally long ones the latest. A
draft without a model: nothing is computed but the search.
"""

from __future__ import annotations

from collections.abc import Sequence

# An end of one token has been seen before almost always, and what followed it is seldom right.
SHORTEST, LONGEST = 2, 32
# Places at which the last two tokens were seen that are looked at, the latest first.
MOST_PLACES = 64


class PromptLookup:
    """Where every pair of tokens of one text has been seen; the text only ever grows."""

    def __init__(self) -> None:
        self.places: dict[tuple[int, int], list[int]] = {}
        self.known = 1

    def following(self, text: Sequence[int], count: int) -> list[int]:
        """What followed the longest end of `text` that was seen before, at most `count` tokens; it may be none.

        What followed may reach the end of the text: then it goes on with itself, so that a rhythm is kept up.
        """
        found = self._after_longest(text)
        if found is None:
            return []
        period = len(text) - found
        return [text[found + i % period] for i in range(count)]

    def _after_longest(self, text: Sequence[int]) -> int | None:
        """The place after the earlier occurrence."""
        for end in range(self.known, len(text) - 1):
            self.places.setdefault((text[end - 1], text[end]), []).append(end)
        self.known = max(self.known, len(text) - 1)
        best, length = None, SHORTEST - 1
        for end in reversed(self.places.get((text[-2], text[-1]), [])[-MOST_PLACES:] if len(text) > 1 else []):
            same = _same_before(text, end)
            if same > length:
                best, length = end + 1, same
        return best


def _same_before(text: Sequence[int], end: int) -> int:
    """How many tokens up to place `end` are those with which the text ends, at most LONGEST."""
    last, most = len(text) - 1, min(end + 1, LONGEST)
    return next((i for i in range(most) if text[end - i] != text[last - i]), most)
