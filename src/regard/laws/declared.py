"""What a part declares of itself holds: its taps mean what it says, and the maps that it names are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from regard.core.tap import Tap, taps
from regard.laws.result import Broken

# Rows of weights sum to 1, up to rounding.
NEAR = 1e-6
DIMENSIONS = {"attention": 4, "alignment": 4, "values": 4, "gate": 3, "keep": 3, "pooling": 2}


def declared(module: nn.Module, heard: Mapping[str, Sequence[Tensor]], length: int | None) -> None:
    """Every part below `module` against what its taps have seen; length: of the time that passed, where it is known."""
    places = taps(module)
    for name, part in module.named_modules():
        kind = type(part).__name__
        for own in getattr(part, "writes_to_stream", ()):
            if not isinstance(getattr(part, own, None), nn.Module):
                raise Broken(f"{kind} says that {own} writes to the residual stream, and has no such map")
        for own, meaning in getattr(part, "shows", {}).items():
            if not isinstance(getattr(part, own, None), Tap):
                raise Broken(f"{kind} says that it shows {own}, and has no such tap")
            full = f"{name}.{own}" if name else own
            told = f"the tap {own} of {kind} means {meaning}, and"
            for entry in heard[full]:
                _means(entry if places[full].axis is not None else entry[:, None], meaning, told)
            if meaning in ("gate", "keep", "state") and length is not None:
                seen = sum(1 if places[full].axis is None else entry.shape[1] for entry in heard[full])
                if seen != length:
                    raise Broken(f"{told} sees {seen} positions of {length}")


def _means(seen: Tensor, meaning: str, told: str) -> None:
    wanted = DIMENSIONS.get(meaning)
    if seen.dim() != wanted if wanted else seen.dim() < 3:
        raise Broken(f"{told} sees {seen.dim()} dimensions")
    if meaning in ("gate", "keep") and not ((seen >= 0) & (seen <= 1)).all():
        raise Broken(f"{told} leaves the range from 0 to 1")
    if meaning in ("attention", "alignment", "pooling"):
        total = seen.sum(-1)
        # Where there is nothing to look at all weights are zero.
        if not (((total - 1).abs() < NEAR) | (total == 0)).all():
            raise Broken(f"{told} has rows that sum to {float(total.flatten()[0]):.4g}")
