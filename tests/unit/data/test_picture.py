"""Reading captioned pictures: folders, arrays, tables, and what is refused in which words."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.data import unpack
from regard.data.picture import read_captions, read_picture
from regard.errors import RegardError, UsageError

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)
THREE = np.arange(3 * 4 * 4 * 3, dtype=np.uint8).reshape(3, 4, 4, 3)


def picture(path: Path, colour: tuple[int, ...], size: tuple[int, int] = (8, 8), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)
    return path


def folder(path: Path, table: str, name: str = "captions.tsv") -> str:
    """Three pictures of unequal sizes and formats, and a table."""
    picture(path / "red.png", RED)
    picture(path / "deep" / "green.bmp", GREEN, (5, 9))
    picture(path / "blue.JPG", BLUE, (40, 20))
    (path / name).write_text(table)
    return str(path)


def array(path: Path, table: str, name: str = "a.captions.tsv", **arrays: np.ndarray) -> str:
    np.savez_compressed(path / "a.images.npz", **(arrays or {"images": THREE}))
    data = table.encode()
    (path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(path / "a.images.npz")


PLAIN = "red.png\ta red one\ndeep/green.bmp\tgrün\nblue.JPG\ta blue one\n"


def test_a_folder_with_a_table(tmp_path):
    examples = read_captions(folder(tmp_path, PLAIN), size=6)
    assert [(e.text, e.category, e.where) for e in examples] == [
        ("a red one", "", f"{tmp_path}/captions.tsv, line 1"),
        ("grün", "", f"{tmp_path}/captions.tsv, line 2"),
        ("a blue one", "", f"{tmp_path}/captions.tsv, line 3"),
    ]
    for example, colour in zip(examples, (RED, GREEN, BLUE), strict=True):
        assert example.picture.shape == (6, 6, 3)
        assert example.picture.dtype == np.uint8
        # JPEG rounds a little.
        assert np.abs(example.picture.astype(int) - colour).max() <= 2


def test_a_header_lets_columns_stand_anywhere(tmp_path):
    rows = "category\tcaption\tnote\tfile\nwarm\ta red one\t-\tred.png\ncold\tb\t-\tblue.JPG\n"
    rows += "warm\tanother\t-\tred.png\nlife\tg\t-\tdeep/green.bmp\n"
    examples = read_captions(folder(tmp_path, rows))
    assert [(e.text, e.category) for e in examples] == [
        ("a red one", "warm"),
        ("b", "cold"),
        ("another", "warm"),
        ("g", "life"),
    ]
    assert examples[0].where.endswith("line 2")
    assert np.array_equal(examples[0].picture, examples[2].picture)


def test_a_table_by_its_own_name(tmp_path):
    folder(tmp_path, PLAIN.replace("\ta ", "\tone "), name="mine.tsv")
    assert [e.text for e in read_captions(str(tmp_path / "mine.tsv"))] == ["one red one", "grün", "one blue one"]


@pytest.mark.parametrize("name", ["a.captions.tsv", "a.captions.tsv.gz", "a.tsv"])
def test_an_array_with_its_table_beside_it(tmp_path, name: str):
    path = array(tmp_path, "one\tx\ntwo\ty\nthree\tx\n", name)
    examples = read_captions(path, size=4)
    assert [(e.text, e.category) for e in examples] == [("one", "x"), ("two", "y"), ("three", "x")]
    assert np.array_equal(np.stack([e.picture for e in examples]), THREE)
    assert read_captions(str(tmp_path / name), size=4) == examples


def test_an_array_of_another_size_is_resized(tmp_path):
    images = np.broadcast_to(np.array([RED, GREEN, BLUE], np.uint8)[:, None, None], (3, 4, 6, 3))
    examples = read_captions(array(tmp_path, "a\nb\nc\n", images=images), size=9)
    for example, colour in zip(examples, (RED, GREEN, BLUE), strict=True):
        assert example.picture.shape == (9, 9, 3)
        assert (example.picture == colour).all()


def test_the_language_of_the_captions(tmp_path):
    path = array(tmp_path, "row\tcaption_de\tcaption_en\n0\teins\tone\n1\tzwei\ttwo\n2\tdrei\tthree\n")
    assert [e.text for e in read_captions(path)] == ["one", "two", "three"]
    for name in ("de", "caption_de"):
        assert [e.text for e in read_captions(path, caption=name)] == ["eins", "zwei", "drei"]
    with pytest.raises(UsageError, match="no column dee or caption_dee, did you mean 'caption_de'"):
        read_captions(path, caption="dee")


def test_transparency_is_white(tmp_path):
    half = picture(tmp_path / "half.png", (255, 0, 0, 51), mode="RGBA")
    assert (read_picture(str(half), 3) == (255, 204, 204)).all()
    through = picture(tmp_path / "through.png", (0, 0, 0, 0), mode="RGBA")
    assert (read_picture(str(through), 3) == 255).all()
    table = Image.new("P", (4, 4), 1)
    table.putpalette([0, 0, 0, 9, 9, 9])
    table.save(tmp_path / "palette.gif", transparency=1)
    assert (read_picture(str(tmp_path / "palette.gif"), 4) == 255).all()


def test_grey_of_sixteen_bits_keeps_its_brightness(tmp_path):
    Image.fromarray(np.full((4, 4), 257 * 100, np.uint16)).save(tmp_path / "deep.png")
    assert (read_picture(str(tmp_path / "deep.png"), 4) == 100).all()


def test_a_photograph_stands_as_its_camera_was_held(tmp_path):
    upright = np.zeros((8, 8, 3), np.uint8)
    upright[:4] = 255
    turned = Image.fromarray(np.rot90(upright))
    exif = turned.getexif()
    exif[0x0112] = 6  # the camera was turned: rotate clockwise to view
    turned.save(tmp_path / "photo.png", exif=exif)
    assert np.array_equal(read_picture(str(tmp_path / "photo.png"), 8), upright)


def bomb(path: Path) -> None:
    """A file of a few bytes that says it is 60,000 x 60,000 pixels."""
    good = io.BytesIO()
    Image.new("RGB", (1, 1)).save(good, "BMP")
    data = bytearray(good.getvalue())
    data[18:26] = (60_000).to_bytes(4, "little") * 2
    path.write_bytes(data)


def large(path: Path) -> None:
    Image.new("1", (9000, 8000)).save(path, "PNG")


def cut(path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (30, 30, 3), np.uint8)
    Image.fromarray(noise).save(path, "PNG")
    path.write_bytes(path.read_bytes()[:900])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.write_text("no picture"), "cannot be read as a picture"),
        (lambda path: path.write_bytes(b""), "cannot be read as a picture"),
        (cut, "cannot be read as a picture"),
        (bomb, "too large"),
        (large, "too large (9000 x 8000 pixels)"),
    ],
)
def test_a_picture_that_cannot_be_read_is_named(tmp_path, spoil: Callable[[Path], object], words: str):
    path = folder(tmp_path, PLAIN)
    spoil(tmp_path / "red.png")
    message = refusal(path)
    assert words in message
    assert str(tmp_path / "red.png") in message


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", "is empty"),
        ("file\tcaption\n", "holds a header and nothing else"),
        (PLAIN + "black.png\tnone\n", "line 4: there is no picture"),
        (PLAIN.replace("red.png", "rot.png"), "line 1: there is no picture"),
        ("red.png\ta red one\n", "(2 such pictures)"),
        ("red.png\n", "line 1: expected file, caption"),
        (PLAIN + "red.png\ta\tb\n", "line 4: 3 columns where line 1 has 2"),
        (PLAIN.replace("grün", " "), "line 2: a caption is missing"),
        (PLAIN.replace("red.png", ""), "line 1: a file name is missing"),
        ("name\tcaption\nred.png\ta\n", "no column is called file"),
        ("file\tcaption_de\nred.png\trot\n", "no column caption or caption_en"),
    ],
)
def test_a_table_that_does_not_fit_its_pictures_is_refused(tmp_path, table: str, words: str):
    assert words in refusal(folder(tmp_path, table))


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (THREE[:2], "2 pictures but"),
        (np.concatenate([THREE, THREE]), "6 pictures but"),
        (THREE.astype(np.float32), "found float32"),
        (THREE[..., :1], "found uint8 of (3, 4, 4, 1)"),
        (THREE[..., 0], "found uint8 of (3, 4, 4)"),
        (THREE[:, :0], "found uint8 of (3, 0, 4, 3)"),
        (np.array([{}, {}, {}]), "found object"),
    ],
)
def test_an_array_that_is_no_pictures_is_refused(tmp_path, images: np.ndarray, words: str):
    message = refusal(array(tmp_path, "a\nb\nc\n", images=images))
    assert words in message
    assert "a.images.npz" in message


def test_an_array_whose_header_promises_the_moon_is_refused_unread(tmp_path):
    path = array(tmp_path, "a\nb\nc\n")
    for shape, words in (((3, 10**6, 10**6, 3), "too large"), ((3, 8000, 8000, 3), "no good .npz")):
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("images.npy", header.getvalue())
        assert words in refusal(path)


def test_what_is_no_data_at_all_is_refused(tmp_path):
    path = array(tmp_path, "a\nb\nc\n", pictures=THREE)
    assert "no array called images" in refusal(path)
    Path(path).write_bytes(b"PK nothing")
    assert "no good .npz" in refusal(path)
    (tmp_path / "a.captions.tsv").unlink()
    assert "write" in refusal(path)
    assert "a.captions.tsv" in refusal(path)
    assert "such as" in refusal(str(tmp_path))
    Path(path).unlink()
    assert "captions.tsv" in refusal(str(tmp_path))
    assert "there is no file or folder" in refusal(str(tmp_path / "absent"))
    (tmp_path / "a.txt").write_text("text")
    assert "holds no captioned pictures" in refusal(str(tmp_path / "a.txt"))
    with pytest.raises(UsageError, match="size must be at least 1"):
        read_captions(str(tmp_path), size=0)


def test_an_archive_does_not_say_itself_how_much_it_may_unpack_to(tmp_path, monkeypatch):
    monkeypatch.setattr(unpack, "ALWAYS_ALLOWED", 1000)
    path = Path(array(tmp_path, "a\nb\nc\n", images=np.zeros((3, 256, 256, 3), np.uint8)))
    assert "unpacks to more than" in refusal(str(path))
    data = path.read_bytes()
    at = data.rindex(b"PK\x01\x02") + 20  # the packed size, as the directory of the archive has it
    path.write_bytes(data[:at] + (1 << 30).to_bytes(4, "little") + data[at + 4 :])
    assert f"over 100 times its {len(data):,}" in refusal(str(path))


def test_the_array_that_was_looked_at_is_the_one_that_is_read(tmp_path):
    path = array(tmp_path, "a\nb\nc\n")
    before = [example.picture for example in read_captions(path, size=4)]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("images", b"something else, of any size")
    assert all(np.array_equal(a, e.picture) for a, e in zip(before, read_captions(path, size=4), strict=True))


def test_an_archive_that_ends_too_early_is_told(tmp_path, monkeypatch):
    path = array(tmp_path, "a\nb\nc\n")

    def ends(*_: object, **__: object) -> None:
        raise EOFError

    monkeypatch.setattr(np.lib.format, "read_array", ends)
    assert "is no good .npz file (EOFError)" in refusal(path)


def test_a_row_number_out_of_order_is_refused(tmp_path):
    assert "line 3: its row number is '2', not 1" in refusal(array(tmp_path, "row\tcaption\n0\ta\n2\tb\n1\tc\n"))


def test_without_pillow_the_message_says_what_to_install(tmp_path, monkeypatch):
    path = folder(tmp_path / "files", PLAIN)
    stored = array(tmp_path, "a\nb\nc\n")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UsageError, match=r"pip install 'regard\[tasks\]'"):
        read_captions(path)
    assert len(read_captions(stored, size=4)) == 3


@pytest.mark.data
def test_emoji_captions(real_data):
    for split, n in (("train", 6408), ("valid", 430)):
        examples = read_captions(str(real_data / "emoji_captions" / f"{split}.images.npz"))
        assert len(examples) == n
        assert {e.picture.shape for e in examples} == {(32, 32, 3)}
        assert all(e.category for e in examples)
    german = read_captions(str(real_data / "emoji_captions" / "valid.captions.tsv.gz"), caption="de")
    assert (german[0].text, examples[0].text) == ("Taste: #", "keycap: #")


def refusal(path: str) -> str:
    with pytest.raises(RegardError) as caught:
        read_captions(path)
    message = str(caught.value)
    assert "\n" not in message
    return message
