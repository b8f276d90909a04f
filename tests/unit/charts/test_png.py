"""PNG files against Pillow's reader."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from regard.charts.drawing import Drawing, Picture
from regard.charts.png import encoded, in_text
from regard.charts.raster import png
from regard.charts.svg import svg


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (64, 64), (3, 9, 3), (32, 32, 3)])
def test_a_reader_of_another_finds_the_same_pixels(shape: tuple[int, ...]):
    pixels = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    with Image.open(io.BytesIO(encoded(pixels))) as picture:
        picture.verify()  # every CRC
    with Image.open(io.BytesIO(encoded(pixels))) as picture:
        assert picture.mode == ("L" if len(shape) == 2 else "RGB")
        np.testing.assert_array_equal(np.asarray(picture), pixels)
    assert base64.b64decode(in_text(pixels)) == encoded(pixels)


def test_a_picture_of_a_drawing_is_in_its_svg_and_on_its_png_where_it_should_be():
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[0, 0] = (255, 0, 0)
    drawing = Drawing(shapes=[Picture(100, 40, 60, 20, pixels, smooth=False)])
    assert f'href="data:image/png;base64,{in_text(pixels)}"' in svg(drawing)
    with Image.open(io.BytesIO(png(drawing, 2))) as picture:
        found = np.asarray(picture)
    assert found[90, 210].tolist() == [255, 0, 0]
    assert found[90, 310].tolist() == found[110, 210].tolist() == [0, 0, 0]
    assert found[90, 330].tolist() == [255, 255, 255]
