"""The learning rate of a width: that of a preset belongs to the width at which it was chosen.

    rate = own * (chosen / width) ^ p      p = 1 of a narrower model, of a wider one what its preset says

At most eight times its own, at least an eighth of it. A wider model takes smaller steps: each output is a sum over more
inputs, which all move together (Yang et al. 2022), p = 1. A matrix that Muon moves is stretched by the rate and the
root of the width in all directions alike (training/optimiser.py), and that root is taken back, p = 1/2. Recurrences
were best at one rate from a width of 256 to one of 1,024, p = 0 (benchmarks/results/rates-gpu.md).
What somebody has set is left as it is. Training and comparing take this rule from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.training.settings import DEFAULT_LR

if TYPE_CHECKING:
    from regard.core.registry import Entry

WIDTH, RATE = "d_model", "lr"
CHOSEN_AT = "small"  # the size whose width the rates of presets belong to
SCALED = "scaled to"
# At an eighth and a sixteenth of the width, eight times the rate was within 2% of the best of a grid for every model
# tried, four times up to 16% off (benchmarks/results/rates-cpu.md).
MOST = 8.0


def scaled(rate: float, chosen: int, width: int, power: float = 1.0) -> float:
    """A rate that was chosen at one width, for another one. power: of the ratio, where the other is wider.

    >>> scaled(3e-3, 128, 384), scaled(3e-3, 256, 16), scaled(3e-3, 128, 512, 0.5)
    (0.001, 0.024, 0.0015)
    """
    ratio = (chosen / width) ** (power if width > chosen else 1.0)
    return float(f"{rate * min(MOST, max(1 / MOST, ratio)):.3g}")


def chosen_width(known: Entry) -> int | None:
    """The width that the preset's rate belongs to; None of a model that has no width to set."""
    width = (known.parameters_of_preset() | known.sizes.get(CHOSEN_AT, {})).get(WIDTH)
    return width if isinstance(width, int) and width > 0 else None


def own_rate(known: Entry, width: Any) -> tuple[float | None, str]:
    """The rate of a model at a width, and where it comes from, in words."""
    own, place = known.training.get(RATE), f"model {known.name}"
    chosen = chosen_width(known)
    if chosen is None or not isinstance(width, int) or width < 1 or width == chosen:
        return own, place if own is not None else "default"
    rate = DEFAULT_LR if own is None else own
    return scaled(rate, chosen, width, known.rate_power), f"{place}: {rate:g} at {WIDTH} {chosen}, {SCALED} {width}"


def is_scaled(place: str) -> bool:
    """Whether an origin says that the rate of another width was scaled."""
    return SCALED in place


def moved(rate: float, known: Entry, old: int, new: int) -> float:
    """A rate that was found at one width, for another: as far from the model's own there as it was before."""
    before, after = own_rate(known, old)[0] or DEFAULT_LR, own_rate(known, new)[0] or DEFAULT_LR
    return float(f"{rate * after / before:.3g}")


def rates_by_size(known: Entry) -> dict[str, float | None]:
    """The rate of every size."""
    of = known.parameters_of_preset()
    return {size: own_rate(known, (of | changes).get(WIDTH))[0] for size, changes in known.sizes.items()}
