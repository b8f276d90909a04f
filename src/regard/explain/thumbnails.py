"""Thumbnails: the maps of all heads of all layers at once, each small, with what is known of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from regard.charts.png import in_text
from regard.explain.heads import SHORT
from regard.explain.packed import by_block
from regard.explain.view import Panel

SIDE = 64  # cells of a small map on a page, at most, either way
LAYER = "layer"


@dataclass(frozen=True, kw_only=True)
class Thumbnails(Panel):
    """Maps (N, t, s) of weights from 0 to 1, in the order in which they are shown.

    places         the layer and the head of each, both from 1 on. labels: what each is called, such as "1.12".
    names          what each does, in a word or two; empty where it does nothing that has a name.
    figures        a value of each by what was measured, such as entropy.
    highs          where the shades of each end.
    sort           what they are in the order of: layer, name, or one of the figures.
    rows, columns  labels of the positions; row_name, column_name say what the sides are.
    block          how many positions either way a cell of `maps` stands for, by its largest weight; 1 for the whole.
    alone          the view that shows one of them by itself, and the side to ask it for.
    """

    kind: ClassVar[str] = "thumbnails"
    maps: np.ndarray
    places: Sequence[tuple[int, int]]
    labels: Sequence[str]
    names: Sequence[str]
    figures: Mapping[str, Sequence[float]]
    highs: Sequence[float]
    sort: str = LAYER
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    row_name: str = ""
    column_name: str = ""
    block: int = 1
    alone: tuple[str, str] = ("", "")

    @property
    def lines(self) -> list[list[int]]:
        """The numbers of the maps, line by line: a line for each layer, or as many in each as a layer has heads."""
        if self.sort == LAYER:
            found: dict[str, list[int]] = {}
            for number, label in enumerate(self.labels):
                found.setdefault(label.rpartition(".")[0], []).append(number)
            return list(found.values())
        across = max((head for _, head in self.places), default=1)
        return [list(range(first, min(first + across, len(self.maps)))) for first in range(0, len(self.maps), across)]

    def to_dict(self) -> dict[str, Any]:
        """All but the maps, which are millions of numbers: those of one head are in the view that shows it alone."""
        told = Panel.to_dict(replace(self, maps=np.zeros(0)))
        return {name: value for name, value in told.items() if name != "maps"}

    def to_page(self, most: int | None = None) -> dict[str, Any]:
        """The maps as one picture in grey, a byte a cell: 255 times the root of the weight, so that small ones stay."""
        size = max(self.maps.shape[1:], default=0)
        step = max(1, math.ceil(size / SIDE))
        small = [by_block(one, step) if step > 1 else one for one in self.maps]
        shape = list(small[0].shape) if small else [0, 0]
        across = max(1, math.ceil(math.sqrt(len(small))))
        sheet = np.zeros((math.ceil(len(small) / across) * shape[0], across * shape[1]), np.uint8)
        for number, one in enumerate(small):
            top, left = number // across * shape[0], number % across * shape[1]
            grey = np.round(255 * np.sqrt(np.clip(np.nan_to_num(one), 0, 1)))
            sheet[top : top + shape[0], left : left + shape[1]] = grey
        packed = {"shape": shape, "across": across, "sheet": in_text(sheet) if sheet.size else ""}
        # Rows in full can be asked for where somebody answers, and where the maps are whole.
        short = [SHORT.get(name, name) for name in self.names]
        told = {
            "count": len(small),
            "short": short,
            "step": step * self.block,
            "has_rows": most is not None and self.block == 1,
        }
        return self.to_dict() | packed | told
