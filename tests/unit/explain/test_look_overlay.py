"""Weights over the picture itself, and what is drawn of them."""

from __future__ import annotations

import base64
import doctest
import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from look_run import TOKENIZER, _config, _sharpened
from regard.core import registry
from regard.core.data_spec import DataSpec
from regard.explain import overlay as module
from regard.explain.look import options_from
from regard.explain.looks.alignment import alignment
from regard.explain.overlay import Overlay, soft, veiled
from regard.explain.render.terminal import lines
from regard.explain.view import View
from regard.run.run import Run
from regard.tasks import task_named
from regard.tasks.captions import CaptionProcessor
from regard.tasks.reading import Reading

SIZE = 32
WEIGHTS = np.array([[[0.1, 0.7], [0.1, 0.1]], [[0.25, 0.25], [0.25, 0.25]]])
PANEL = Overlay(picture=np.full((6, 6, 3), 200, np.uint8), weights=WEIGHTS, words=("red", "dot"), title="Picture")


def captioned(tmp_path: object, decoder: str) -> tuple[Reading, np.ndarray]:
    """A captioner that was never trained, and the picture that it reads."""
    torch.manual_seed(0)
    spec = DataSpec(TOKENIZER.vocab_size, picture=(3, SIZE, SIZE))
    model = registry.entry("captioner").config(spec, size="tiny", decoder=decoder).build()
    processor = CaptionProcessor(TOKENIZER, SIZE, 6)
    task = task_named("captions")
    run = Run(tmp_path, _config("captioner", "captions"), task, _sharpened(model).float(), processor)  # pyright: ignore
    picture = np.random.default_rng(0).integers(256, size=(SIZE, SIZE, 3), dtype=np.uint8)
    path = f"{tmp_path}/picture.png"
    Image.fromarray(picture).save(path)
    return task.reading(run, path, "the small dog"), picture


@pytest.mark.parametrize("decoder", ["transformer", "bahdanau"])
def test_the_picture_travels_with_the_weights_of_every_word(decoder: str, tmp_path: object) -> None:
    reading, picture = captioned(tmp_path, decoder)
    view = alignment(reading, options_from({}))
    panel = view["picture"]
    np.testing.assert_array_equal(panel.picture, picture)
    across = panel.weights.shape[1]
    assert panel.weights.shape == (4, across, across)  # three words and the end
    assert list(panel.words) == ["the", "small", "dog", "</s>"]
    np.testing.assert_allclose(panel.weights.reshape(4, -1), view["weights"].weights)
    np.testing.assert_allclose(panel.weights.sum((1, 2)), 1, rtol=1e-5)
    told = panel.to_page()
    with Image.open(io.BytesIO(base64.b64decode(told["picture"]))) as sent:
        np.testing.assert_array_equal(np.asarray(sent), picture)
    assert told["grid"] == [across, across]
    assert f"{across} x {across} squares" in panel.note


def test_what_is_soft_has_the_cells_own_values_at_their_centres() -> None:
    cells = np.random.default_rng(1).random((3, 3))
    np.testing.assert_allclose(soft(cells, 9)[1::3, 1::3], cells)
    assert doctest.testmod(module).failed == 0


def test_a_picture_is_dimmed_where_least_is_and_tinted_where_most_is() -> None:
    pixels = veiled(PANEL.picture, WEIGHTS[0], 64).astype(int)
    bright, dim = pixels[4, 60], pixels[60, 4]
    assert bright.sum() > dim.sum()
    assert bright[0] > bright[2] + 50  # warm
    even = veiled(PANEL.picture, WEIGHTS[1], 64)
    assert (even == even[0, 0]).all()


def test_pictures_show_the_picture_and_one_for_each_word() -> None:
    view = View("Where", [PANEL])
    svg = view.to_svg()
    assert svg.count("<image ") == 3
    assert "red  up to 0.7" in svg.replace("red up", "red  up")
    with Image.open(io.BytesIO(view.to_png())) as drawn:
        assert drawn.size[0] == 2560


@pytest.mark.parametrize("width", [20, 80])
def test_a_terminal_shows_the_squares_of_every_word(width: int) -> None:
    text = "\n".join(lines(View("Where", [PANEL]), width))
    assert "red" in text
    assert "1,2 0.7" in text  # row 1, column 2
    assert "2 x 2 squares" in text.replace("\n", " ")


def test_nothing_to_show_is_no_failure() -> None:
    none = replace(PANEL, weights=np.zeros((0, 2, 2)), words=())
    assert "(no weights)" in "\n".join(lines(View("Where", [none]), 80))
    assert View("Where", [none]).to_svg()
    blank = replace(PANEL, weights=np.zeros((1, 2, 2)), words=("a",))
    assert View("Where", [blank]).to_svg()
    assert lines(View("Where", [blank]), 80)
