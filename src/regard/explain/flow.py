"""Flow: the numbers of one input on their way through a model, as a graph of matrices.

A page gets every matrix that is small, and of a larger one a map of at most ROWS x COLUMNS cells, each the largest of
its block; the numbers themselves stay with the view, for who can ask for rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from regard.explain.packed import packed
from regard.explain.view import Panel

ROWS, COLUMNS = 48, 64  # cells of the smaller map of a large matrix
WHOLE = 2**17  # numbers of all matrices together that go to a page in full, the smallest first


@dataclass(frozen=True, eq=False)
class FlowNode:
    """A matrix on the way.

    name     its own, as of a part of the model. label: the same in words.
    kind     input, embedding, norm, mixer, weights, net, stream, head or part: how it is drawn.
    group    the innermost group that it is in, or nothing.
    side     whose positions its rows are, or nothing.
    shape    as the model has it, without the batch.
    values   (n, R, C): one matrix for each head or other slice; none where there was no room for them.
    slices   what these are called, where there are several.
    rows, columns  names, where rows are no positions; columns: of a side ("side:source") or their own, or none.
    sizes    what stands at each row for how much there is. measure: what that is.
    note     what there is to know of it.
    band     the side on whose way it lies, whatever its rows are.
    is_main  whether it lies on the way that all others lead back to, such as the residual stream.
    """

    name: str
    label: str
    kind: str = "part"
    group: str = ""
    side: str = ""
    shape: Sequence[int] = ()
    values: np.ndarray | None = None
    slices: Sequence[str] = ()
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    sizes: Sequence[float] = ()
    measure: str = "length"
    note: str = ""
    band: str = ""
    is_main: bool = True

    @property
    def numbers(self) -> int:
        return 0 if self.values is None else self.values.size

    def told(self) -> dict[str, Any]:
        """All but its numbers, what is empty left out."""
        every = {"name": self.name, "label": self.label, "kind": self.kind, "group": self.group, "side": self.side}
        every |= {"shape": list(self.shape), "slices": list(self.slices), "rows": list(self.rows)}
        every |= {"columns": list(self.columns), "sizes": [float(f"{size:.6g}") for size in self.sizes]}
        every |= {"measure": self.measure, "note": self.note, "band": self.band, "main": self.is_main}
        return {name: value for name, value in every.items() if value not in ("", [], None)}


@dataclass(frozen=True)
class FlowGroup:
    """Nodes that belong together, such as those of a layer. kind: layer, mixer, stack or part. parent: or nothing."""

    name: str
    label: str
    kind: str = "part"
    parent: str = ""


@dataclass(frozen=True)
class FlowEdge:
    """One node is made from another. is_back: from what that was a step before."""

    source: str
    target: str
    is_back: bool = False


@dataclass(frozen=True)
class FlowAnswers:
    """What is answered at each place.

    kind    "chance": of classes or tokens, from scores that a softmax turns into chances; "number": as they stand.
    places  what the answers are called that follow, such as positions; empty where one stands for the whole.
    names, scores  at each place the likeliest answers, most likely first, and their scores.
    rest    at each place what is left: groups of answers (how many, mean and variance of their scores).
    count   of all answers.
    """

    kind: str
    places: Sequence[str]
    names: Sequence[Sequence[str]]
    scores: Sequence[Sequence[float]]
    rest: Sequence[Sequence[tuple[int, float, float]]]
    count: int

    def chances(self, place: int, temperature: float = 1.0) -> np.ndarray:
        """Of the answers that are named at a place."""
        scores = np.asarray(self.scores[place], dtype=np.float64) / temperature
        rest = [
            math.log(count) + mean / temperature + math.log1p(variance / (2 * temperature**2))
            for count, mean, variance in self.rest[place]
        ]
        return np.exp(scores - np.logaddexp.reduce([*scores, *rest]))


@dataclass(frozen=True, kw_only=True)
class Flow(Panel):
    """Nodes in the order in which they were made, groups around them, edges between them, and the answers at the end.

    sides     the labels of the positions of each side.
    place     the place that is looked at, from 0 on, of the main side.
    main      the side that the answers stand at. first: what its first position is called.
    opened    of a part of a diagram, as on one slide of several, the groups that are open.
    """

    kind: ClassVar[str] = "flow"
    nodes: Sequence[FlowNode]
    groups: Sequence[FlowGroup]
    edges: Sequence[FlowEdge]
    answers: FlowAnswers | None = None
    sides: dict[str, Sequence[str]] = field(default_factory=dict)
    main: str = ""
    place: int = 0
    first: int = 1
    opened: frozenset[str] | None = None

    def node(self, name: str) -> FlowNode:
        return next(node for node in self.nodes if node.name == name)

    def matrix(self, name: str, part: int) -> np.ndarray | None:
        """One matrix (R, C) of a node, where there is such a one."""
        values = next((node.values for node in self.nodes if node.name == name), None)
        return values[part] if values is not None and 0 <= part < len(values) else None

    def to_dict(self) -> dict[str, Any]:
        """Every number in full."""
        told = self._told()
        for node, one in zip(self.nodes, told["nodes"], strict=True):
            one["values"] = None if node.values is None else node.values.astype(float).tolist()
        return told

    def to_page(self, most: int | None = None) -> dict[str, Any]:
        """Small matrices in full, the others as smaller maps. most: of a matrix whose numbers may be asked for."""
        told, room = self._told(), WHOLE
        for place in sorted(range(len(self.nodes)), key=lambda place: self.nodes[place].numbers):
            node = self.nodes[place]
            if node.values is not None and node.numbers:
                is_whole = node.numbers <= room
                room -= node.numbers if is_whole else 0
                told["nodes"][place] |= whole(node.values) if is_whole else small(node)
        return told | {"asks": most is not None}

    def _told(self) -> dict[str, Any]:
        numbers = {node.name: place for place, node in enumerate(self.nodes)}
        told: dict[str, Any] = {"kind": self.kind, "title": self.title, "note": self.note, "key": self.key}
        told |= {"nodes": [node.told() for node in self.nodes], "groups": [vars(group) for group in self.groups]}
        told["edges"] = [[numbers[edge.source], numbers[edge.target], int(edge.is_back)] for edge in self.edges]
        told |= {"sides": {name: list(labels) for name, labels in self.sides.items()}}
        told |= {"main": self.main, "place": self.place, "first": self.first}
        return told | {"answers": None if self.answers is None else dict(vars(self.answers))}


def whole(values: np.ndarray) -> dict[str, Any]:
    """Matrices one below the other, every number in full."""
    return {"map": packed(values.reshape(-1, values.shape[2]), exact=values.size), "parts": values.shape[0]}


def small(node: FlowNode) -> dict[str, Any]:
    """A map of a few cells in eight bits: of weights of several heads the largest of all, else heads side by side."""
    assert node.values is not None
    matrix = np.fmax.reduce(node.values, 0) if node.kind == "weights" else across(node.values)
    rows, columns = (math.ceil(size / most) for size, most in zip(matrix.shape, (ROWS, COLUMNS), strict=True))
    return {"map": packed(blocks(matrix, rows, columns), exact=0), "block": [rows, columns]}


def across(values: np.ndarray) -> np.ndarray:
    """Slices (n, R, C) side by side, (R, n C)."""
    return values[0] if len(values) == 1 else values.transpose(1, 0, 2).reshape(values.shape[1], -1)


def blocks(matrix: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The number of each block of rows x columns that is farthest from zero.

    >>> blocks(np.array([[1.0, 2.0, 0.0], [0.0, -3.0, 1.0]]), 2, 2)
    array([[-3.,  1.]])
    """
    high, low = (_reduced(ufunc, matrix, rows, columns) for ufunc in (np.fmax, np.fmin))
    return np.where(high >= -low, high, low)


def _reduced(ufunc: np.ufunc, matrix: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Blocks one after the other along each axis, the rest of the last one empty: much faster than `reduceat`."""
    for step in (rows, columns):
        short = -len(matrix) % step
        filled = np.concatenate([matrix, np.full((short, matrix.shape[1]), np.nan, matrix.dtype)]) if short else matrix
        matrix = np.ascontiguousarray(ufunc.reduce(filled.reshape(-1, step, matrix.shape[1]), axis=1).T)
    return matrix
