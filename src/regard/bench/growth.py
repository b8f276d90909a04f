"""Growth: what a training step of one layer costs as texts grow longer, vectors wider and batches larger.

    seconds ~ size^p        p by least squares on the logarithms of the larger half of the sizes

Bytes are those that the step keeps for its backward pass. A size is left out, and all above it, where it is foreseen to
take longer than `LONGEST` or more than `LARGEST`, from what the two before it took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor

from regard.charts.chart import Series, line_drawing
from regard.charts.plot import Axis
from regard.charts.svg import svg
from regard.core import registry
from regard.core.data_spec import EXAMPLE
from regard.core.model import Model
from regard.errors import UsageError
from regard.studies.claims.timing import exponent, kept_bytes, seconds

SIZES = {
    "length": tuple(2**n for n in range(8, 17)),
    "width": (64, 128, 256, 512, 1024),
    "batch": (1, 2, 4, 8, 16, 32, 64),
}
USUAL = {"length": 512, "width": 128, "batch": 4}
ALONE = {"length": {"batch": 1}}  # long rows one at a time
LONGEST = 1.5  # seconds
LARGEST = 4 << 30  # bytes
VOCABULARY = 64


@dataclass(frozen=True)
class Growth:
    """How one model grows along one axis: its sizes, seconds and bytes at each, and the powers of both."""

    model: str
    axis: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    bytes: tuple[int, ...]
    time_power: float = field(init=False)
    memory_power: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "time_power", _power(self.sizes, self.seconds))
        object.__setattr__(self, "memory_power", _power(self.sizes, self.bytes))


def growth(models: Sequence[str], repeats: int, device: torch.device) -> Iterator[Growth]:
    """Every named model along every axis, as they come."""
    for model in models:
        for axis in SIZES:
            yield grown(model, axis, repeats, device)


def layered(name: str) -> bool:
    """Whether a model reads text by layers of a width that can be chosen."""
    entry = registry.entry(name)
    known = entry.parameters_of_preset()
    return entry.task == registry.entry("gpt").task and not entry.fitted and {"d_model", "n_layers"} <= set(known)


def grown(model: str, axis: str, repeats: int, device: torch.device) -> Growth:
    """One model along one axis, up to the largest size that is foreseen to be cheap enough."""
    sizes: list[int] = []
    times: list[float] = []
    kept: list[int] = []
    for size in SIZES[axis]:
        if len(sizes) > 1 and (_next(times) > LONGEST or _next(kept) > LARGEST):
            break
        work = _step(model, device, **(USUAL | ALONE.get(axis, {}) | {axis: size}))
        kept.append(kept_bytes(work.forward))
        times.append(seconds(work, repeats))
        sizes.append(size)
    return Growth(model, axis, tuple(sizes), tuple(times), tuple(kept))


def picture(found: Sequence[Growth], axis: str = "length") -> str:
    """Seconds of every model along one axis, as SVG."""
    lines = [Series(one.model, list(zip(one.sizes, one.seconds, strict=True))) for one in found if one.axis == axis]
    if not lines:
        raise UsageError("nothing was measured that can be drawn")
    return svg(
        line_drawing(f"A training step of one layer by {axis}", lines, Axis(axis, log=True), Axis("s", log=True))
    )


class _Step:
    """A forward and a backward pass over one batch."""

    def __init__(self, model: torch.nn.Module, tokens: Tensor) -> None:
        self.model, self.tokens = model, tokens

    def forward(self) -> Tensor:
        model = cast(Model, self.model)
        return model.head(model(self.tokens[:, :-1])[0], self.tokens[:, 1:])

    def __call__(self) -> None:
        self.model.zero_grad()
        self.forward().backward()


def _step(name: str, device: torch.device, length: int, width: int, batch: int) -> _Step:
    entry = registry.entry(name)
    settings = {"d_model": width, "n_layers": 1, "max_length": length}
    known = entry.parameters_of_preset()
    spec = replace(EXAMPLE, vocab_size=VOCABULARY)
    torch.manual_seed(0)
    model = entry.config(spec, "small", **{key: value for key, value in settings.items() if key in known}).build()
    tokens = torch.randint(VOCABULARY, (batch, length + 1), generator=torch.Generator().manual_seed(0))
    return _Step(model.to(device), tokens.to(device))


def _next(values: Sequence[float]) -> float:
    """What the next size will take, as the last one grew."""
    return values[-1] * max(1.0, values[-1] / max(values[-2], 1e-9))


def _power(sizes: Sequence[float], values: Sequence[float]) -> float:
    half = max(3, (len(sizes) + 1) // 2)
    return exponent(sizes[-half:], values[-half:])
