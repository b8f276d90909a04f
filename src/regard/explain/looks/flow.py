"""Flow: the numbers of one input on their way through a model, from what it reads to what it answers.

Every matrix on the way is at hand: embeddings, norms, what each tap sees, what each layer leaves, scores of answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.device import wide
from regard.core.tap import apart
from regard.explain.diagram import Diagram
from regard.explain.flow import Flow, FlowAnswers, FlowEdge, FlowNode
from regard.explain.following import MOST_PARTS, Followed, follow
from regard.explain.look import Look, Options, numbered, numbers, place_of, register_look
from regard.explain.outcome import own_choice
from regard.explain.view import View
from regard.explain.weights import told_of
from regard.tasks.reading import Capabilities, Reading

TOP, BINS = 16, 24
LONGEST = 256
ANSWER = "answer"
CAVEAT = (
    "A large vector is not an important one, and a wide ribbon carries much, not what decides: what a part does for "
    "the answer is told by changing it (drop, shuffle, contributions)."
)


def flow(reading: Reading, options: Options) -> View:
    """Nodes and edges of one reading, and what is answered."""
    deep = bool(getattr(reading.owner.model, "looks_inside", True))
    followed = follow(reading.model, reading.forward, reading.inputs, deep)
    diagram = Diagram(reading, followed)
    place = _place(reading, followed.outputs, options)
    answers = answers_of(reading, followed.outputs)
    nodes = [*diagram.nodes, *_answer_node(reading, answers)]
    edges = diagram.edges + ([FlowEdge(one, ANSWER) for one in _last(followed)] if answers else [])
    panel = Flow(
        title="From what is read to what is answered",
        key="flow",
        nodes=nodes,
        groups=list(diagram.groups.values()),
        edges=edges,
        answers=answers,
        sides={side.name: side.labels for side in reading.sides},
        main=reading.main.name,
        place=place,
        first=next(iter(numbers(reading.main)), 1),
        note=_note(reading, followed.outputs, nodes),
    )
    about: dict[str, Any] = {"parts": len(nodes), "numbers": sum(node.numbers for node in nodes)}
    title = "How the numbers flow to the answer"
    if len(reading.main):  # of an empty text there is an answer, and no position
        about["position"] = number = numbers(reading.main)[place]
        title += f" at {numbered(reading.main.labels[place], number)}"
    return View(title, [panel], about, CAVEAT)


def _place(reading: Reading, outputs: Tensor, options: Options) -> int:
    stands_for_all = outputs.dim() == 2
    if options.position is None and not stands_for_all:
        return own_choice(reading.main)
    return max(0, place_of(reading.main, options.position))


def answers_of(reading: Reading, outputs: Tensor) -> FlowAnswers | None:
    """The likeliest answers at every place; of a model that only gives vectors there are none."""
    can = reading.can
    rows = outputs[0] if outputs.dim() == 3 else outputs
    places = list(reading.main.labels) if outputs.dim() == 3 else []
    if not can.answers:
        return None
    if can.number or can.quantiles:
        values = wide(rows).cpu().double().numpy()
        values = np.sort(reading.about["invert"](values), -1) if can.quantiles else values
        names = [reading.named(number) for number in range(values.shape[1])]
        return FlowAnswers("number", places, [names] * len(values), values.tolist(), [[]] * len(values), len(names))
    return _chances(reading, rows, places)


def _chances(reading: Reading, logits: Tensor, places: list[str]) -> FlowAnswers:
    """One place after the other: all together, of a large vocabulary, are gigabytes."""
    names, scores, rest = [], [], []
    for row in logits:
        log_probs = wide(row).cpu().log_softmax(-1)
        top = log_probs.topk(min(TOP, len(log_probs)))
        names.append([reading.named(number) for number in top.indices.tolist()])
        scores.append(top.values.tolist())
        rest.append(binned(log_probs.scatter(0, top.indices, -torch.inf)))
    return FlowAnswers("chance", places, names, scores, rest, logits.shape[-1])


def binned(scores: Tensor) -> list[tuple[int, float, float]]:
    """Scores in groups of like ones: how many, their mean and their variance. What cannot be has none."""
    held = scores[scores.isfinite()]
    if not len(held):
        return []
    low, high = held.min(), held.max()
    of = ((held - low) / (high - low).clamp_min(1e-9) * BINS).long().clamp_max(BINS - 1)
    count, total, squares = (
        torch.zeros(BINS, dtype=torch.float64).index_add(0, of, part.double())
        for part in (torch.ones_like(held), held - low, (held - low) ** 2)
    )
    kept = count > 0
    mean = total[kept] / count[kept]
    variance = (squares[kept] / count[kept] - mean**2).clamp_min(0)
    rows = torch.stack([count[kept], mean + low.double(), variance], 1).tolist()
    return [(int(n), float(f"{m:.7g}"), float(f"{v:.5g}")) for n, m, v in rows]


def _last(followed: Followed) -> list[str]:
    """What the answers are made of: parts of the model, or an input where it has none on the way."""
    parts = [one for one in followed.sources if one not in followed.inputs]
    return parts or list(followed.sources)


def _answer_node(reading: Reading, answers: FlowAnswers | None) -> list[FlowNode]:
    """What stands at the end: chances of the likeliest answers, or numbers."""
    if answers is None:
        return []
    side = reading.main.name if len(answers.places) == len(reading.main) else ""
    shape = (len(answers.scores), answers.count)
    note = "chances by a softmax over all scores" if answers.kind == "chance" else "numbers that stand for themselves"
    return [FlowNode(ANSWER, "answer", "answer", side=side, shape=shape, note=note, band=reading.main.name)]


def _note(reading: Reading, outputs: Tensor, nodes: list[FlowNode]) -> str:
    told = [f"Numbers are {told_of(apart(outputs, reading.run()))}."]
    without = [node for node in nodes if node.values is None and node.kind not in ("input", "answer")]
    if without:
        told.append(f"Of {len(without)} parts only lengths are at hand: all numbers together would be too many.")
    if len(nodes) >= MOST_PARTS:
        told.append(f"The first {MOST_PARTS:,} parts are shown.")
    return " ".join(told)


def _fits(can: Capabilities) -> bool:
    """Every run."""
    return can is not None


register_look(
    Look(
        "flow",
        "the numbers of an input on their way from what is read to what is answered, every matrix at hand",
        flow,
        fits=_fits,
        max_tokens=LONGEST,
    )
)
