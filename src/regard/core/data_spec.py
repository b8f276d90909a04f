"""DataSpec: what a model must know of the data before it can be built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataSpec:
    """What the data says of itself; each task fills in what it has.

    vocab_size         tokens of the text that is read, or written where there are two sides.
    source_vocab_size  tokens of the side that is read, None where both sides share one vocabulary.
    n_classes          labels or tags.
    spelled            words come with their spelling, see layers/spelled.py.
    n_forms            numbers that the forms of words have beside it, 0 where they come without.
    spans              tags mark spans, within the rule of BIO.
    picture            channels, height and width.
    n_channels         numbers at each past time of a series.
    n_known            numbers known ahead for each time to be forecast, the calendar's last, static ones before.
    n_past             numbers of past times that are not known ahead, beside the value.
    n_static           numbers among those known that never change along a series.
    horizon            times to be forecast.
    history            times that are read before them.
    season             times after which things repeat. week: of a week, where a season is a day; else 0.
    """

    vocab_size: int = 0
    source_vocab_size: int | None = None
    n_classes: int = 0
    spelled: bool = False
    n_forms: int = 0
    spans: bool = False
    picture: tuple[int, int, int] | None = None
    n_channels: int = 0
    n_known: int = 0
    horizon: int = 0
    history: int = 0
    n_past: int = 0
    n_static: int = 0
    season: int = 0
    week: int = 0


# Small data of every kind, on which sizes are counted and laws are checked.
EXAMPLE = DataSpec(
    vocab_size=257, n_classes=2, n_forms=32, picture=(3, 32, 32), n_channels=11, n_known=10, horizon=24, history=168,
    season=24, week=168,
)  # fmt: skip
