"""How far it is from an output back to an input: one look for attention, one step after another for a recurrence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.core.mixer import Mixer
from regard.mixers.attention import AttentionConfig
from regard.mixers.rnn import RnnConfig
from regard.studies.chart import Axis, Series, line_chart
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean

WIDTH = 32
FAIR, FADED = 0.5, 0.01


class PathLength(Study):
    id: ClassVar[str] = "path"
    claim: ClassVar[str] = (
        "Attention hands on what other inputs say without recurrent units: any input is one step away, and its "
        "gradient does not fade with the distance as a recurrence's does."
    )
    source: ClassVar[str] = "lecture, S1-35 and S3-10"
    rule: ClassVar[str] = (
        "the shortest way from the last output to the first input has the same number of operations at every length "
        "for attention and grows with the length for the RNN; at the longest the gradient to the first input is, of "
        "the mean over all inputs, at least a half for attention and at most a hundredth for the RNN"
    )

    def measure(self, lab: Lab) -> dict[str, Any]:
        lengths = lab.pick([4, 16, 64], [4, 16, 64, 256], [4, 16, 64, 256, 1024])
        found: dict[str, Any] = {"lengths": lengths}
        for name, config in (("attention", AttentionConfig(WIDTH, 2)), ("rnn", RnnConfig(WIDTH))):
            torch.manual_seed(lab.seed)
            mixer = config.build().to(lab.device)
            draws = [torch.randn(length, 1, WIDTH).to(lab.device) for length in lengths]
            # A fused loop hides its steps: the recurrence is read step by step, as its equation is.
            read = [last_output(mixer, list(x.requires_grad_().unbind()), by_steps=name == "rnn") for x in draws]
            found[name] = {
                "operations": [operations_between(output, first) for output, first in read],
                "share": [_share(output, x) for (output, _), x in zip(read, draws, strict=True)],
            }
            found[name] |= {"far": found[name]["share"][-1]}
        return found

    def judge(self, found: Sequence[Found]) -> Verdict:
        ways = "; ".join(f"{name} {found[0][name]['operations']}" for name in ("attention", "rnn"))
        return judged(
            found,
            _met,
            f"operations on the way back at lengths {found[0]['lengths']}: {ways}; gradient to the first of the "
            f"longest, in parts of the mean: attention {mean(found, 'attention', 'far'):.2f}, "
            f"RNN {mean(found, 'rnn', 'far'):.1e}",
        )

    def figure(self, found: Sequence[Found]) -> str:
        lengths = found[0]["lengths"]
        lines = [
            Series(name, [(n, max(found[0][name]["share"][i], 1e-12)) for i, n in enumerate(lengths)])
            for name in ("attention", "rnn")
        ]
        axes = Axis("tokens between", log=True), Axis("gradient to the first input / mean", log=True)
        return line_chart("What the last output feels of the first input", lines, *axes)


def last_output(mixer: Mixer, inputs: Sequence[Tensor], by_steps: bool) -> tuple[Tensor, Tensor]:
    """The last output over inputs (1, D), and the first input."""
    if not by_steps:
        return mixer(torch.stack(list(inputs), 1))[:, -1], inputs[0]
    state = mixer.init_state(1)
    output = inputs[0]
    for x in inputs:
        output, state = mixer.step(x, state)
    return output, inputs[0]


def operations_between(output: Tensor, source: Tensor) -> int:
    """The fewest operations from `source` to `output` in the graph that the backward pass follows."""
    goal, level, seen, count = source.grad_fn, {output.grad_fn}, set(), 0
    while level:
        if goal in level:
            return count
        seen |= level
        level = {node for part in level if part for node, _ in part.next_functions if node and node not in seen}
        count += 1
    raise ValueError("there is no way from the source to the output")


def _share(output: Tensor, inputs: Tensor) -> float:
    """The gradient's size at the first of inputs (T, 1, D), in parts of the mean over all."""
    (gradient,) = torch.autograd.grad(output.square().sum(), inputs)
    sizes = gradient.double().flatten(1).norm(dim=1)
    return float(sizes[0] / sizes.mean())


def _met(one: Found) -> bool:
    attention, rnn = one["attention"], one["rnn"]
    lengths, ways = one["lengths"], rnn["operations"]
    grows = (ways[-1] - ways[0]) / (lengths[-1] - lengths[0]) >= 1
    return len(set(attention["operations"])) == 1 and grows and attention["far"] >= FAIR and rnn["far"] <= FADED
