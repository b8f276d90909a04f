"""Pictures in motion: an APNG that another reader reads frame by frame, and an SVG that shows one drawing at a time."""

from __future__ import annotations

import io
import struct
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from regard.charts.apng import SIGNATURE, apng
from regard.charts.drawing import Box, Drawing, Words
from regard.charts.embed import Embedded
from regard.charts.motion import moving_svg

SVG = "{http://www.w3.org/2000/svg}"


def frames() -> list[np.ndarray]:
    """Four pictures: the second differs in a corner, the third nowhere, the last everywhere."""
    first = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    second = first.copy()
    second[30:, 50:] = (255, 0, 0)
    return [first, second, second.copy(), 255 - first]


def chunks(data: bytes) -> list[tuple[str, bytes]]:
    assert data.startswith(SIGNATURE)
    place, found = len(SIGNATURE), []
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        body = data[place + 4 : place + 8 + length]
        assert struct.unpack_from(">I", data, place + 8 + length) == (zlib.crc32(body),)
        found.append((body[:4].decode(), body[4:]))
        place += length + 12
    return found


def test_pillow_reads_every_frame_as_it_was_given():
    with Image.open(io.BytesIO(apng(iter(frames()), 4, 0.75, loop=True))) as picture:
        assert (picture.format, picture.n_frames, picture.info["loop"]) == ("PNG", 4, 0)
        for number, frame in enumerate(frames()):
            picture.seek(number)
            assert picture.info["duration"] == 750
            np.testing.assert_array_equal(np.asarray(picture.convert("RGB")), frame)


def test_who_knows_no_motion_sees_the_first_frame():
    data = apng(frames(), 4, 1, loop=True)
    plain = SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind.encode() + body + struct.pack(">I", zlib.crc32(kind.encode() + body))
        for kind, body in chunks(data)
        if kind in ("IHDR", "IDAT", "IEND")
    )
    with Image.open(io.BytesIO(plain)) as picture:
        np.testing.assert_array_equal(np.asarray(picture), frames()[0])


def test_chunks_are_numbered_in_a_row_and_hold_no_more_than_what_changes():
    found = chunks(apng(frames(), 4, 1, loop=False))
    assert [kind for kind, _ in found] == [
        *("IHDR", "acTL", "fcTL", "IDAT"),
        *("fcTL", "fdAT") * 3,
        "IEND",
    ]
    assert struct.unpack(">II", found[1][1]) == (4, 1)
    numbers = [struct.unpack_from(">I", body)[0] for kind, body in found if kind in ("fcTL", "fdAT")]
    assert numbers == list(range(7))
    boxes = [struct.unpack_from(">4I", body, 4) for kind, body in found if kind == "fcTL"]
    assert boxes == [(60, 40, 0, 0), (10, 10, 50, 30), (1, 1, 0, 0), (60, 40, 0, 0)]


@pytest.mark.parametrize("loop", [True, False])
def test_what_frames_share_is_written_once(loop: bool):
    shared = Words(10, 20, "a title that stands in every frame & stays")
    drawings = [Drawing(width=100, fixed=50, shapes=[shared, Box(0, 0, n, 5, "#000000")]) for n in (1, 2, 3)]
    text = moving_svg(drawings, 2, 1.5, loop, Embedded())
    root = ElementTree.fromstring(text)
    assert (root.attrib["width"], root.attrib["viewBox"]) == ("200", "0 0 100 50")
    assert text.count("a title that stands") == 1
    groups = [group for group in root.iter(f"{SVG}g") if group.attrib.get("class", "").startswith("frame")]
    assert [group.attrib["class"] for group in groups] == ["frame", "frame", "frame last"]
    assert all(len(list(group.iter(f"{SVG}use"))) == 1 for group in groups)
    assert "prefers-reduced-motion:no-preference" in text
    assert ("infinite" in text) is loop
