"""Mamba-2's layer: three equal forms, of which the chunked one is fast, and recall that grows with the state."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.data.worlds.recall import MultiRecall
from regard.kernels.ssd_readable import ssd_chunked, ssd_quadratic, ssd_recurrent
from regard.studies.claims.fitting import Rows, right, trained
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.claims.timing import Work, seconds_of_each
from regard.studies.registry import register_study

HEADS, WIDTH, STATES, CHUNK = 4, 32, 32, 64


@register_study
class StateSpaceDuality(Study):
    id: ClassVar[str] = "duality"
    claim: ClassVar[str] = (
        "SSD is a scan, a masked attention and a chunked mixture of both; the chunked form is faster than the scan, "
        "and multi-query recall gets better with the size of the state."
    )
    source: ClassVar[str] = "Dao, Gu 2024, Mamba-2: sections 5 to 7, 9.1; on world:multi_recall"
    rule: ClassVar[str] = (
        "the three forms agree to 1e-5 of the largest output in float32; the chunked form takes less time than the "
        "plain scan; recall rises from each state size to the next, where both are not above 99 per cent already"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        lengths = lab.pick([256, 1024], [256, 1024, 4096], [1024, 4096, 16384])
        found: dict[str, Any] = {"lengths": lengths, "seconds": {"scan": [], "chunked": [], "quadratic": []}}
        found["error"] = largest_error(_inputs(lengths[0], lab))
        for length in lengths:
            inputs = _inputs(length, lab)
            forms: dict[str, Work] = {
                "scan": partial(ssd_recurrent, *inputs),
                "chunked": partial(ssd_chunked, *inputs, CHUNK),
            }
            # The square of longer ones is left out: its decays alone would take gigabytes.
            if length <= 1024:
                forms["quadratic"] = partial(ssd_quadratic, *inputs[:-1])
            with torch.no_grad():
                for name, taken in zip(forms, seconds_of_each(list(forms.values()), 3), strict=True):
                    found["seconds"][name].append(taken)
        found["speedup"] = found["seconds"]["scan"][-1] / found["seconds"]["chunked"][-1]
        states = lab.pick([2, 32], [4, 16, 64], [16, 32, 64])
        pairs = lab.pick(4, 4, 16)
        rows = Rows(MultiRecall(train=lab.pick(4000, 8000, 20_000), valid=256, pairs=pairs, keys=2 * pairs), lab)
        steps = lab.pick(500, 1200, 1200)
        sizes = {"d_model": lab.pick(32, 32, 64), "n_layers": 2, "d_head": 32, "chunk": 16}
        found["recall"] = {}
        for n in states:
            model = trained(rows, "mamba2", lab, steps, {"d_state": n} | sizes, lr=1e-2)
            found["recall"][str(n)] = right(model, rows.valid)
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        recall = ", ".join(f"{mean(found, 'recall', n):.2f} at N = {n}" for n in found[0]["recall"])
        return judged(
            found,
            lambda one: one["error"] < 1e-5 and one["speedup"] > 1 and rises(list(one["recall"].values())),
            f"largest difference of the forms {max(one['error'] for one in found):.1e}; chunked "
            f"{mean(found, 'speedup'):.1f} times as fast as the scan at {found[0]['lengths'][-1]} tokens; recall "
            f"{recall}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        sizes = list(found[0]["recall"])
        lines = [Series(f"seed {i}", [(int(n), one["recall"][n]) for n in sizes]) for i, one in enumerate(found)]
        axes = Axis("state size N", log=True), Axis("share recalled", low=0.0, high=1.0)
        return line_chart("Multi-query recall by state size", lines, *axes)


def rises(values: Sequence[float]) -> bool:
    """Whether each value is above the one before, or as good as perfect beside it."""
    return all(b > a or min(a, b) > 0.99 for a, b in itertools.pairwise(values))


def largest_error(inputs: tuple[Tensor, ...]) -> float:
    """The largest difference between any two forms, as a part of the largest output."""
    x, decay, b, c, h = inputs
    with torch.no_grad():
        outputs = [ssd_recurrent(x, decay, b, c, h)[0], ssd_chunked(x, decay, b, c, h, CHUNK)[0]]
        outputs.append(ssd_quadratic(x, decay, b, c))
    scale = float(outputs[0].abs().max())
    return max(float((one - other).abs().max()) for one in outputs for other in outputs) / scale


def _inputs(length: int, lab: Lab) -> tuple[Tensor, ...]:
    """Random x, decay, B, C and a zero state."""
    generator = torch.Generator().manual_seed(lab.seed)
    x = torch.randn(1, length, HEADS, WIDTH, generator=generator)
    decay = -torch.rand(1, length, HEADS, generator=generator)
    b, c = (torch.randn(1, length, 1, STATES, generator=generator) for _ in range(2))
    return tuple(part.to(lab.device) for part in (x, decay, b, c, torch.zeros(1, HEADS, WIDTH, STATES)))
