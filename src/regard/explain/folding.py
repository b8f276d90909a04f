"""Folding: which parts of a diagram are drawn where nobody can open one: all but the layers after the first of a stack.

Layers and nets that are not opened are one box each, closed layers beside each other one together; `Fold` says which
boxes there are, what they are made of, and how far each is from what is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from regard.explain.flow import Flow, FlowGroup, FlowNode


@dataclass(eq=False)
class Drawn:
    """A box: a node, or parts that are not drawn, of which the last is what they give.

    depth  how many groups it is in. row: how far it is from what is read. lane: beside which others.
    """

    label: str
    node: FlowNode
    count: int = 1
    depth: int = 0
    row: int = 0
    lane: int = 0
    heads: Sequence[tuple[int, str]] = ()

    @property
    def is_main(self) -> bool:
        return self.node.is_main


@dataclass(eq=False)
class Band:
    """A ribbon. size: how much there is of what it comes from, at the place."""

    source: Drawn
    target: Drawn
    node: FlowNode
    is_back: bool
    size: float


@dataclass(eq=False)
class Fold:
    """The boxes of a panel in their order, and ribbons between them."""

    panel: Flow
    boxes: list[Drawn] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)

    @classmethod
    def of(cls, panel: Flow) -> Fold:
        fold = cls(panel)
        opened, numbers = opened_in(panel), {node.name: number for number, node in enumerate(panel.nodes)}
        groups = {group.name: group for group in panel.groups}
        of: dict[str, Drawn] = {}
        for node in panel.nodes:
            box = fold._put(node, list(_within(node, groups)), opened)
            of[node.name] = box
        fold._connect(of, numbers)
        fold._place()
        return fold

    def _put(self, node: FlowNode, within: list[FlowGroup], opened: set[str]) -> Drawn:
        """The box of a node: its own, or that of the outermost closed group it is in."""
        depth = next((depth for depth, group in enumerate(within) if group.name not in opened), len(within))
        heads = [(number, group.label) for number, group in enumerate(within[:depth])]
        if depth == len(within):
            self.boxes.append(Drawn(node.label, node, 1, depth, heads=heads))
            return self.boxes[-1]
        closed = within[depth]
        before = self.boxes[-1] if self.boxes else None
        if before is not None and before.heads == heads and before.count > 1 and _joins(before.label, closed):
            before.label = _both(before.label, closed.label)
            before.node, before.count = node, before.count + 1
            return before
        self.boxes.append(Drawn(closed.label, node, 2, depth, heads=heads))
        return self.boxes[-1]

    def _connect(self, of: dict[str, Drawn], numbers: dict[str, int]) -> None:
        order = {id(box): numbers[box.node.name] for box in self.boxes}
        found: dict[tuple[int, int], Band] = {}
        for edge in self.panel.edges:
            source, target = of[edge.source], of[edge.target]
            if source is target and (not edge.is_back or source.count > 1):
                continue
            is_back = edge.is_back or order[id(source)] >= order[id(target)]
            node = self.panel.node(edge.source)
            band = found.setdefault(
                (id(source), id(target)), Band(source, target, node, is_back, size_at(self.panel, node))
            )
            band.is_back = band.is_back and is_back
        self.bands = list(found.values())

    def _place(self) -> None:
        """Rows by the longest way, lanes by who came first; the main way has the first lane."""
        names = list(self.panel.sides)
        for box in self.boxes:
            into = [band.source.row for band in self.bands if band.target is box and not band.is_back]
            box.row = max(into, default=-1) + 1
        taken: set[tuple[int, int, int]] = set()
        for box in self.boxes:
            side = names.index(box.node.band) if box.node.band in names else 0
            box.lane = 0 if box.is_main else 1
            while (side, box.row, box.lane) in taken:
                box.lane += 1
            taken.add((side, box.row, box.lane))

    def side(self, box: Drawn) -> int:
        """The number of the side on whose way a box lies."""
        names = list(self.panel.sides)
        return names.index(box.node.band) if box.node.band in names else 0


def size_at(panel: Flow, node: FlowNode) -> float:
    """How much there is of a node at the place of a panel; of rows that are no places of the answers the mean."""
    if not node.sizes:
        return 0.0
    if node.side == panel.main and panel.place < len(node.sizes):
        return float(node.sizes[panel.place])
    return float(np.mean(node.sizes))


def opened_in(panel: Flow) -> set[str]:
    """Groups that are drawn with all that is in them: of each stack the first layer, with its mixer."""
    if panel.opened is not None:
        return set(panel.opened)
    opened: set[str] = set()
    first: set[str] = set()
    for group in panel.groups:
        inside = group.parent in opened or not group.parent
        is_first = group.kind != "layer" or group.parent not in first
        if inside and is_first:
            first |= {group.parent} if group.kind == "layer" else set()
            members = sum(node.group == group.name for node in panel.nodes)
            opened |= {group.name} if group.kind != "mixer" or members > 2 else set()
    return opened


def halved(panel: Flow) -> list[Flow]:
    """The first boxes of a panel and the rest, each with the ribbons between its own; the answers are with the last."""
    boxes = Fold.of(panel).boxes
    if len(boxes) < 2:
        return [panel]
    cut = panel.nodes.index(boxes[(len(boxes) - 1) // 2].node) + 1
    parts = []
    for nodes, answers in ((panel.nodes[:cut], None), (panel.nodes[cut:], panel.answers)):
        names = {node.name for node in nodes}
        edges = [edge for edge in panel.edges if {edge.source, edge.target} <= names]
        parts.append(replace(panel, nodes=nodes, edges=edges, answers=answers, opened=frozenset(opened_in(panel))))
    return parts


def _within(node: FlowNode, groups: dict[str, FlowGroup]) -> Iterator[FlowGroup]:
    """The groups that a node is in, the outermost first."""
    found = []
    group = groups.get(node.group)
    while group is not None:
        found.append(group)
        group = groups.get(group.parent)
    return reversed(found)


def _joins(label: str, group: FlowGroup) -> bool:
    """Whether a closed group is the one that a box stands for, or a layer beside others."""
    return label == group.label or (group.kind == "layer" and label.startswith("layer"))


def _both(label: str, other: str) -> str:
    """One label for layers beside each other.

    >>> _both("layer 2", "layer 3"), _both("layers 2 to 3", "layer 4"), _both("net", "net")
    ('layers 2 to 3', 'layers 2 to 4', 'net')
    """
    if label.split(" to ")[-1].split()[-1] == other.split()[-1]:
        return label
    first = label.replace("layers ", "").replace("layer ", "").split(" to ")[0]
    return f"layers {first} to {other.split()[-1]}"
