"""The world of shapes: its captions are true, can be read off the pictures, and hold back what valid asks for."""

from __future__ import annotations

from collections import Counter

import numpy as np

from regard.data.example import Captioned
from regard.data.worlds import from_spec, world
from regard.data.worlds.base import ExampleWorld
from regard.data.worlds.shapes import COLOURS, OUTLINES, PLACES, RADII, RELATIONS, UNSEEN

SHAPES: ExampleWorld[Captioned] = world("shapes")  # pyright: ignore


def shapes_of(caption: str) -> list[tuple[str, str]]:
    """(colour, outline) of every shape a caption names."""
    words = caption.split(" ")
    return [(words[i - 1], word) for i, word in enumerate(words) if word in OUTLINES]


def described(picture: np.ndarray) -> str:
    """The caption, by measuring the picture: islands of dark or coloured pixels, their middles, sizes and areas."""
    light = picture.min(-1) > 190
    islands = [part for part in islands_of(~light) if part.sum() > 4]
    boxes = [np.argwhere(island) for island in islands]
    middles = [(box.min(0) + box.max(0)) / 2 for box in boxes]
    told = [
        f"a {size_of(box)} {colour_of(picture, island)} {outline_of(island)}"
        for box, island in zip(boxes, islands, strict=True)
    ]
    if len(told) == 1:
        return f"{told[0]} {place_of(middles[0])}"
    down, right = middles[1] - middles[0]
    if abs(down) > abs(right):
        first, relation = (0 if down > 0 else 1), "above"
    else:
        first, relation = (0 if right > 0 else 1), "left of"
    return f"{told[first]} {relation} {told[1 - first]}"


def islands_of(dark: np.ndarray) -> list[np.ndarray]:
    # The border keeps a roll from leaving one side and entering the other.
    left, islands = np.pad(dark, 1), []
    while left.any():
        island = np.zeros_like(left)
        island.flat[left.argmax()] = True
        while True:
            grown = island.copy()
            for axis in (0, 1):
                for step in (1, -1):
                    grown |= np.roll(island, step, axis)
            grown &= left
            if (grown == island).all():
                break
            island = grown
        islands.append(island[1:-1, 1:-1])
        left &= ~island
    return islands


def size_of(box: np.ndarray) -> str:
    return "small" if np.ptp(box, axis=0).max() < 9 else "large"


def colour_of(picture: np.ndarray, island: np.ndarray) -> str:
    mean = picture[island].mean(0)
    return min(COLOURS, key=lambda name: float(np.abs(mean - COLOURS[name]).sum()))


def outline_of(island: np.ndarray) -> str:
    """By how full the box around the shape is, and whether it stands on a full row and ends in a point."""
    box = np.argwhere(island)
    (top, left), (bottom, right) = box.min(0), box.max(0) + 1
    inside = island[top:bottom, left:right]
    if inside[-1].mean() > 0.9 and inside[0].mean() < 0.7:
        return "triangle"
    return "square" if inside.mean() > 0.95 else "circle" if inside.mean() > 0.65 else "cross"


def place_of(middle: np.ndarray) -> str:
    return min(PLACES, key=lambda name: float(np.abs(middle[::-1] - PLACES[name]).sum()))


def test_every_caption_can_be_read_off_its_picture():
    examples = SHAPES.examples("valid", 400) + SHAPES.examples("train", 400)
    assert [described(example.picture) for example in examples] == [example.text for example in examples]


def test_what_valid_asks_for_is_never_shown_in_training():
    train, valid = SHAPES.examples("train", 3000), SHAPES.examples("valid", 1000)
    shown = {pair for example in train for pair in shapes_of(example.text)}
    assert shown == {(colour, outline) for colour in COLOURS for outline in OUTLINES} - set(UNSEEN)
    assert {example.category for example in train} == {"one", "two"}
    held_back = [example for example in valid if set(shapes_of(example.text)) & set(UNSEEN)]
    assert len(held_back) == 250
    assert {pair for example in held_back for pair in shapes_of(example.text)} == set(UNSEEN)
    for example in valid:
        n = len(shapes_of(example.text))
        assert example.category == ("unseen" if example in held_back else {1: "one", 2: "two"}[n])
    assert all(len(shapes_of(example.text)) == 1 for example in held_back)


def test_training_has_every_word_of_the_captions_about_equally_often():
    counts = Counter(word for example in SHAPES.examples("train", 3000) for word in example.text.split(" "))
    for group in (RADII, COLOURS, OUTLINES):
        total = sum(counts[word] for word in group)
        assert all(abs(counts[word] / total - 1 / len(group)) < 0.06 for word in group)
    words = {word for phrase in (*PLACES, *RELATIONS) for word in phrase.split(" ")}
    assert set(counts) == {"a", *RADII, *COLOURS, *OUTLINES, *words}


def test_an_example_is_a_function_of_seed_split_and_index():
    few, many = SHAPES.examples("train", 5), SHAPES.examples("train", 20)
    assert few == many[:5]
    assert SHAPES.examples("train", 5, seed=1) != few
    assert SHAPES.examples("valid", 5) != few
    assert from_spec("world:shapes?train=5").examples("train") == few  # pyright: ignore
    assert all(e.picture.shape == (32, 32, 3) and e.picture.dtype == np.uint8 for e in few)


def test_the_same_scene_is_never_painted_twice_alike():
    """Noise is in every picture, so that a model cannot learn captions by heart."""
    examples = SHAPES.examples("train", 2000)
    assert len({example.picture.tobytes() for example in examples}) == 2000
    assert len({example.text for example in examples}) < 1600


def test_the_spec_of_the_world():
    assert (SHAPES.task, SHAPES.tokens, SHAPES.best) == ("captions", "words", {"exact_match": 1.0})
    assert SHAPES.spec == "world:shapes?seed=0&train=20000&valid=1000"
