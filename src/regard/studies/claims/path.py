"""How far it is from an output back to an input: one look for attention, one step after another for a recurrence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.charts.chart import Series, line_chart
from regard.charts.plot import Axis
from regard.core.mixer import Mixer
from regard.mixers.attention import AttentionConfig
from regard.mixers.rnn import RnnConfig
from regard.studies.claims.study import Found, Lab, Study, Verdict, judged, mean
from regard.studies.registry import register_study

WIDTH = 32
FAIR, FADED = 0.5, 0.01


@register_study
class PathLength(Study):
    id: ClassVar[str] = "path"
    claim: ClassVar[str] = (
        "Attention hands on what other inputs say without recurrent units: any input is one step away, and its "
        "gradient does not fade with the distance as a recurrence's does."
    )
    source: ClassVar[str] = "lectures on self-attention, set against recurrence: access to far inputs"
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
            shares, ways = [], []
            for length in lengths:
                sources = [torch.randn(1, WIDTH).to(lab.device).requires_grad_() for _ in range(length)]
                # Each goes its own way into the graph, so that the first can be told from the others.
                inputs = [source.clone() for source in sources]
                # A fused loop hides its steps: the recurrence is read step by step, as its equation is.
                output = last_output(mixer, inputs, by_steps=name == "rnn")
                ways.append(operations_between(output, inputs[0]))
                shares.append(_share(output, sources))
            found[name] = {"operations": ways, "share": shares}
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


def last_output(mixer: Mixer, inputs: Sequence[Tensor], by_steps: bool) -> Tensor:
    """The last output over inputs (1, D)."""
    if not by_steps:
        return mixer(torch.stack(list(inputs), 1))[0][:, -1]
    state = mixer.init_state(1)
    output = inputs[0]
    for x in inputs:
        output, state = mixer.step(x, state)
    return output


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


def _share(output: Tensor, sources: Sequence[Tensor]) -> float:
    """The gradient's size at the first source, in parts of the mean over all."""
    gradients = torch.autograd.grad(output.square().sum(), list(sources))
    sizes = torch.stack([gradient.double().norm() for gradient in gradients])
    return float(sizes[0] / sizes.mean())


def _met(one: Found) -> bool:
    attention, rnn = one["attention"], one["rnn"]
    lengths, ways = one["lengths"], rnn["operations"]
    grows = (ways[-1] - ways[0]) / (lengths[-1] - lengths[0]) >= 1
    return len(set(attention["operations"])) == 1 and grows and attention["far"] >= FAIR and rnn["far"] <= FADED
