"""Pictures of one or two shapes and the one right caption of each.

A scene is one shape with its place ("a large green square at the top left") or two with their relation ("a small red
circle above a large blue square"). The upper or left shape is named first, so that a scene has one caption.
Four pairs of colour and shape are never seen in training: a quarter of the valid scenes show one of them, alone.
Positions, sizes and colours vary a little and every pixel has noise, none of it enough to blur a word of the caption.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import ClassVar

import numpy as np

from regard.data.example import Captioned
from regard.data.worlds.base import ExampleWorld

SIDE = 32
COLOURS = {
    "red": (215, 40, 40),
    "green": (40, 150, 60),
    "blue": (50, 80, 215),
    "yellow": (235, 205, 40),
    "purple": (150, 50, 170),
    "grey": (120, 120, 120),
}
# Whether a pixel (x, y) belongs to a shape of radius 1 around the origin; y points down.
OUTLINES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "circle": lambda x, y: x**2 + y**2 <= 1,
    "square": lambda x, y: np.maximum(abs(x), abs(y)) <= 0.85,
    "triangle": lambda x, y: (y <= 0.85) & (abs(x) <= (y + 1) / 1.85),
    "cross": lambda x, y: (np.minimum(abs(x), abs(y)) <= 0.28) & (np.maximum(abs(x), abs(y)) <= 1),
}
RADII = {"small": 3.4, "large": 6.4}
# The centre of a shape that stands alone, and of the two in a row or a column.
PLACES = {
    "at the top left": (7.5, 7.5),
    "at the top": (15.5, 7.5),
    "at the top right": (23.5, 7.5),
    "at the left": (7.5, 15.5),
    "in the middle": (15.5, 15.5),
    "at the right": (23.5, 15.5),
    "at the bottom left": (7.5, 23.5),
    "at the bottom": (15.5, 23.5),
    "at the bottom right": (23.5, 23.5),
}
RELATIONS = {"above": ((15.5, 7), (15.5, 24)), "left of": ((7, 15.5), (24, 15.5))}
UNSEEN = (("red", "triangle"), ("green", "cross"), ("blue", "circle"), ("yellow", "square"))
SEEN = tuple(pair for pair in product(COLOURS, OUTLINES) if pair not in UNSEEN)


@dataclass(frozen=True)
class Shape:
    """One shape of a scene: what the caption says of it, and where its centre lies (x to the right, y down)."""

    size: str
    colour: str
    outline: str
    centre: tuple[float, float]

    def __str__(self) -> str:
        return f"a {self.size} {self.colour} {self.outline}"


@dataclass(frozen=True)
class Scene:
    """One shape and its place, or two shapes and the relation of the first to the second."""

    shapes: tuple[Shape, ...]
    place: str

    @property
    def caption(self) -> str:
        first, *second = map(str, self.shapes)
        return " ".join([first, self.place, *second])

    @property
    def category(self) -> str:
        """one, two, or unseen: a pair of colour and shape that training never shows."""
        if any((shape.colour, shape.outline) in UNSEEN for shape in self.shapes):
            return "unseen"
        return "one" if len(self.shapes) == 1 else "two"


@dataclass(frozen=True)
class Shapes(ExampleWorld[Captioned]):
    """Scenes of shapes with their captions; the category of an example is that of its scene."""

    name: ClassVar[str] = "shapes"
    task: ClassVar[str] = "captions"
    tokens: ClassVar[str] = "words"
    best: ClassVar[dict[str, float]] = {"exact_match": 1.0}

    def example(self, seed: int) -> Captioned:
        """An example as in training."""
        return self._made(seed, unseen=False)

    def examples(self, split: str, count: int | None = None, seed: int | None = None) -> list[Captioned]:
        """Examples 0 .. count-1 of a split. Every fourth of valid is a shape in a colour it never has in training."""
        seeds = self.seeds(split, count, seed)
        return [self._made(number, unseen=split == "valid" and i % 4 == 3) for i, number in enumerate(seeds)]

    def _made(self, seed: int, unseen: bool) -> Captioned:
        random = Random(seed)
        scene = drawn_scene(random, unseen)
        return Captioned(painted(scene, random), scene.caption, scene.category, file=f"world:{self.name}")


def drawn_scene(random: Random, unseen: bool = False) -> Scene:
    """A scene by chance: one shape of the pairs that training never shows, or one or two of the others."""
    alone = unseen or random.random() < 0.5
    place = random.choice(list(PLACES if alone else RELATIONS))
    centres = (PLACES[place],) if alone else RELATIONS[place]
    shapes = []
    for x, y in centres:
        colour, outline = random.choice(UNSEEN if unseen else SEEN)
        moved = (x + random.uniform(-1, 1), y + random.uniform(-1, 1))
        shapes.append(Shape(random.choice(list(RADII)), colour, outline, moved))
    return Scene(tuple(shapes), place)


def painted(scene: Scene, random: Random) -> np.ndarray:
    """The picture of a scene, (32, 32, 3) of unsigned bytes."""
    # Bytes of Random are the same on every machine and in every version of numpy.
    noise = np.frombuffer(random.randbytes(SIDE * SIDE * 3), np.uint8).reshape(SIDE, SIDE, 3) % 25
    picture = np.full((SIDE, SIDE, 3), random.uniform(225, 243))
    y, x = np.mgrid[:SIDE, :SIDE]
    for shape in scene.shapes:
        radius = RADII[shape.size] * random.uniform(0.95, 1.05)
        inside = OUTLINES[shape.outline]((x - shape.centre[0]) / radius, (y - shape.centre[1]) / radius)
        picture[inside] = np.add(COLOURS[shape.colour], [random.uniform(-12, 12) for _ in range(3)])
    return np.clip(picture + noise - 12, 0, 255).astype(np.uint8)
