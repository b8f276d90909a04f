"""What a law found, and the comparison that all of them share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Float64 throughout: what differs by more than this differs in its mathematics, not in its rounding.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class LawResult:
    """held is None where the law does not apply, which `detail` then gives as the declared fact it follows from.

    error, rms  largest and root-mean-square difference, both relative to the size of what was expected.
    detail      the smallest failing case found, when the law did not hold.
    """

    law: str
    subject: str
    held: bool | None
    error: float = 0.0
    rms: float = 0.0
    tolerance: float = TOLERANCE
    detail: str = ""
    seconds: float = 0.0


class Broken(Exception):
    """Raised by a law at its first, smallest failing case."""


@dataclass
class Ledger:
    """The largest differences a law has met so far."""

    error: float = 0.0
    rms: float = 0.0
    tolerance: float = TOLERANCE

    def equal(self, got: Tensor, expected: Tensor, case: str) -> None:
        """Both must agree; `case` says which numbers were compared, for the reader of a failure."""
        got, expected = _comparable(got, expected, case)
        if got.numel() == 0:
            return
        difference = got - expected
        scale = 1 + float(expected.abs().max())
        error = float(difference.abs().max()) / scale
        rms = float(difference.square().mean().sqrt()) / (1 + float(expected.square().mean().sqrt()))
        self.error, self.rms = max(self.error, error), max(self.rms, rms)
        if error > TOLERANCE or rms > TOLERANCE:
            far = difference.abs() > TOLERANCE * scale
            place = tuple(int(i) for i in far.nonzero()[0]) if far.any() else ()
            raise Broken(
                f"{case}: at {list(place)} got {float(got[place]):.6g}, expected {float(expected[place]):.6g} "
                f"(largest relative difference {error:.2g}, rms {rms:.2g})"
            )

    def close(self, got: Tensor, expected: Tensor, case: str, rounding: float) -> None:
        """The same up to `tolerance` roundings of a number type, of the root mean square and relative to its size."""
        got, expected = _comparable(got, expected, case)
        if got.numel() == 0:
            return
        difference = got - expected
        error = float(difference.abs().max()) / (float(expected.abs().max()) or 1.0) / rounding
        rms = float(difference.square().mean().sqrt()) / (float(expected.square().mean().sqrt()) or 1.0) / rounding
        self.error, self.rms = max(self.error, error), max(self.rms, rms)
        if rms > self.tolerance:
            raise Broken(f"{case}: {rms:.3g} roundings of its number type from float64, at most {self.tolerance:g}")


def _comparable(got: Tensor, expected: Tensor, case: str) -> tuple[Tensor, Tensor]:
    """Both in float64, of one shape, and what was got finite."""
    if got.shape != expected.shape:
        raise Broken(f"{case}: shape {tuple(got.shape)} where {tuple(expected.shape)} was expected")
    got, expected = got.detach().double(), expected.detach().double()
    if not torch.isfinite(got).all():
        raise Broken(f"{case}: not finite at {_place(~torch.isfinite(got))}")
    return got, expected


def _place(mask: Tensor) -> list[int]:
    return [int(i) for i in mask.nonzero()[0]]
