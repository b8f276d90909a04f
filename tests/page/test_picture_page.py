"""Pictures in a real browser: fonts that lie in the file are used, and what moves is seen a step at a time."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from picture_book import steps

from regard.charts import fonts
from regard.explain.view import Note, View

OpenPage = Callable[..., Any]
SEEN = """() =>
  [...document.querySelectorAll(".frame")].map((frame) => getComputedStyle(frame).visibility === "visible")"""
AT = "(time) => document.getAnimations().forEach((one) => { one.pause(); one.currentTime = time; })"
DECODED = """async (data) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const decoder = new ImageDecoder({ data: bytes, type: "image/png" });
  await decoder.completed;
  await decoder.tracks.ready;
  const { frameCount, repetitionCount } = decoder.tracks.selectedTrack;
  const canvas = new OffscreenCanvas(480, 270).getContext("2d", { willReadFrequently: true });
  const found = [];
  for (let frame = 0; frame < frameCount; frame += 1) {
    const { image } = await decoder.decode({ frameIndex: frame });
    canvas.drawImage(image, 0, 0);
    const pixels = canvas.getImageData(0, 0, 480, 270).data;
    found.push([image.duration / 1e6, pixels.reduce((sum, one) => sum + one, 0)]);
  }
  return { frameCount, loops: repetitionCount === Infinity, found };
}"""


def test_words_are_as_wide_as_the_font_in_the_file_makes_them(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    font = pytest.importorskip("fontTools.ttLib")
    # The narrowest of the fonts here, which no browser takes by itself.
    name = "DejaVuSansCondensed-Bold.ttf"
    if name not in fonts.files():
        pytest.skip(f"{name} is not installed")
    (face,) = fonts._read(fonts.files()[name])
    monkeypatch.setattr("regard.charts.embed.pieces", lambda text, look, embedded: [(text, face)])
    text = "lilliput minimum"
    View("Title", [Note(text=text)], name="one").save(tmp_path / "a.svg")
    page = open_page((tmp_path / "a.svg").as_uri())
    wide = page.evaluate(
        "() => document.fonts.ready.then(() => [...document.querySelectorAll('text')].pop().getComputedTextLength())"
    )
    read = font.TTFont(face.path)
    advances, letters = read["hmtx"], read.getBestCmap()
    expected = 20 * sum(advances[letters[ord(c)]][0] for c in text) / read["head"].unitsPerEm
    assert wide == pytest.approx(expected, rel=0.01)


def test_bold_and_plain_words_each_have_their_own_letters(open_page: OpenPage, tmp_path: Path):
    font = pytest.importorskip("fontTools.ttLib")
    files = [fonts.files().get(name) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")]
    if None in files:
        pytest.skip("DejaVu is not installed")
    View("minimum", [Note(text="minimum")], name="one").save(tmp_path / "a.svg")
    page = open_page((tmp_path / "a.svg").as_uri())
    script = "() => document.fonts.ready.then(() => [...document.querySelectorAll('text')].map((one) => "
    bold, plain = page.evaluate(script + "one.getComputedTextLength()))")
    for wide, size, path in ((plain, 20, files[0]), (bold, 34, files[1])):
        read = font.TTFont(path)
        advances, letters = read["hmtx"], read.getBestCmap()
        expected = size * sum(advances[letters[ord(c)]][0] for c in "minimum") / read["head"].unitsPerEm
        assert wide == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("loop", [True, False])
def test_one_step_is_seen_at_a_time_and_once_played_the_last_one_stays(loop: bool, open_page: OpenPage, tmp_path: Path):
    steps().animate(tmp_path / "a.svg", seconds=2, loop=loop, size="480x270")
    page = open_page((tmp_path / "a.svg").as_uri())
    count = len(page.evaluate(SEEN))
    assert count == len(steps().panels)
    for step in range(count):
        # A frame of a loop is as far on as its delay says: its own clock runs from the start of the whole.
        page.evaluate(AT, 2000 * step + 1000)
        assert page.evaluate(SEEN) == [place == step for place in range(count)]
    page.evaluate(AT, 2000 * count + 1000)
    assert page.evaluate(SEEN) == [place == (0 if loop else count - 1) for place in range(count)]


def test_who_asked_for_less_motion_sees_the_last_step(open_page: OpenPage, tmp_path: Path):
    steps().animate(tmp_path / "a.svg")
    page = open_page((tmp_path / "a.svg").as_uri())
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate("() => document.getAnimations().length") == 0
    assert page.evaluate(SEEN) == [False] * (len(steps().panels) - 1) + [True]


def test_a_moving_png_is_decoded_frame_by_frame(open_page: OpenPage, tmp_path: Path):
    image = pytest.importorskip("PIL.Image")
    path = steps().animate(tmp_path / "a.png", seconds=0.5, loop=False, size="480x270")
    page = open_page(path.as_uri())
    told = page.evaluate(DECODED, base64.b64encode(path.read_bytes()).decode())
    assert (told["frameCount"], told["loops"]) == (len(steps().panels), False)
    with image.open(path) as picture:
        for number, (seconds, total) in enumerate(told["found"]):
            picture.seek(number)
            assert seconds == 0.5
            assert total == int(np.asarray(picture.convert("RGBA"), dtype=np.int64).sum())
