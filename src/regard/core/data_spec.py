"""DataSpec: what a model must know of the data before it can be built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataSpec:
    """What the data says of itself; each task fills in what it has.

    vocab_size         tokens of the text that is read, or written where there are two sides.
    source_vocab_size  tokens of the side that is read, None where both sides share one vocabulary.
    n_classes          labels or tags.
    spelled            words come with their spelling, see layers/embedding.py.
    picture            channels, height and width.
    n_channels         numbers at each past time of a series.
    n_known            numbers known ahead for each time to be forecast.
    horizon            times to be forecast.
    history            times that are read before them.
    """

    vocab_size: int = 0
    source_vocab_size: int | None = None
    n_classes: int = 0
    spelled: bool = False
    picture: tuple[int, int, int] | None = None
    n_channels: int = 0
    n_known: int = 0
    horizon: int = 0
    history: int = 0


# Small data of every kind, on which sizes are counted and laws are checked.
EXAMPLE = DataSpec(vocab_size=257, n_classes=2, picture=(3, 32, 32), n_channels=11, n_known=10, horizon=24, history=168)
