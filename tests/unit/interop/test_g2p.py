"""The network of g2p-en: phonemes and their probabilities equal those of the equations, worked out in numpy."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.errors import CheckpointError, UsageError
from regard.interop.g2p_file import FILE, LETTERS, PHONEMES

WORDS = ["activationist", "zorgle", "covfefe", "naïve", "qwerty", "Tokenizer", "xylograph", "ghoti", "o", "a's"]
MOST = 20  # phonemes that the package writes of a word


def weights_of(width: int, seed: int = 0) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"fc_w": (len(PHONEMES), width), "fc_b": (len(PHONEMES),)}
    for side, tokens in (("enc", LETTERS), ("dec", PHONEMES)):
        shapes |= {f"{side}_emb": (len(tokens), width)}
        shapes |= {f"{side}_{name}": (3 * width, width) for name in ("w_ih", "w_hh")}
        shapes |= {f"{side}_{name}": (3 * width,) for name in ("b_ih", "b_hh")}
    return {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def spelled(weights: dict[str, np.ndarray], word: str) -> tuple[list[str], float]:
    """The phonemes of a word, the most probable one after the other, and log p of all of them."""
    w: dict[str, Any] = {name: value.astype(np.float64) for name, value in weights.items()}

    def step(side: str, token: int, h: np.ndarray) -> np.ndarray:
        x = w[f"{side}_w_ih"] @ w[f"{side}_emb"][token] + w[f"{side}_b_ih"]
        y = w[f"{side}_w_hh"] @ h + w[f"{side}_b_hh"]
        size = len(h)
        r, z = (1 / (1 + np.exp(-(x + y)[k * size : (k + 1) * size])) for k in (0, 1))
        n = np.tanh(x[2 * size :] + r * y[2 * size :])
        return (1 - z) * n + z * h

    h = np.zeros(w["enc_w_hh"].shape[1])
    for letter in [*word, "</s>"]:
        h = step("enc", LETTERS.index(letter) if letter in LETTERS else 1, h)
    token, found, total = PHONEMES.index("<s>"), [], 0.0
    for _ in range(MOST):
        h = step("dec", token, h)
        logits = w["fc_w"] @ h + w["fc_b"]
        token = int(logits.argmax())
        total += float(logits[token] - np.logaddexp.reduce(logits))
        if PHONEMES[token] == "</s>":
            break
        found.append(PHONEMES[token])
    return found, total


def test_a_file_of_such_weights_is_a_run_of_pairs(tmp_path: Path) -> None:
    weights = weights_of(8)
    np.savez(tmp_path / "tiny.npz", **weights)  # pyright: ignore[reportArgumentType]
    told = regard.import_run(tmp_path / "tiny.npz", tmp_path / "run")
    assert (told.architecture, told.task, told.parameters) == ("g2p", "pairs", sum(w.size for w in weights.values()))
    run = regard.load(tmp_path / "run", device="cpu")
    for word, answer in zip(["cat", "dog's"], run.answers(["Cat", "dög's"], max_tokens=MOST), strict=True):
        phonemes, log_prob = spelled(weights, word)
        kept = [one for one in phonemes if one not in ("<s>", "<unk>")]  # which are no text
        assert answer.text.split() == kept
        assert answer.details["log_prob"] == pytest.approx(log_prob, abs=1e-3)
    assert run.explain("cat", view="gates").to_dict()
    assert regard.load(tmp_path / "tiny.npz", device="cpu").answers(["cat"])[0].text == run.answers(["cat"])[0].text


def test_the_package_spells_words_in_the_same_phonemes(tmp_path: Path) -> None:
    package = find_spec("g2p_en")
    if package is None or not package.origin:
        pytest.skip("g2p-en is not installed")
    regard.import_run("g2p:", tmp_path / "run")
    with np.load(Path(package.origin).parent / FILE) as arrays:
        weights = dict(arrays)
    run = regard.load(tmp_path / "run", device="cpu")
    for word, answer in zip(WORDS, run.answers(WORDS), strict=True):
        phonemes, log_prob = spelled(weights, word.lower().replace("ï", "i"))
        assert answer.text.split() == phonemes, word
        assert answer.details["log_prob"] == pytest.approx(log_prob, abs=1e-3)


def test_a_member_that_is_not_what_it_says_is_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "spoilt.npz"

    def header(shape: tuple[int, ...]) -> bytes:
        written = io.BytesIO()
        np.lib.format.write_array_header_1_0(written, {"descr": "<f4", "fortran_order": False, "shape": shape})
        return written.getvalue()

    def spoilt(place: int, value: int, *, after: bytes = b"") -> Callable[[bytearray], None]:
        """Sets a byte, counted from a mark of the archive."""

        def change(data: bytearray) -> None:
            data[data.index(after) + place] = value

        return change

    whole = header((29, 256)) + np.random.default_rng(0).normal(size=(29, 256)).astype("f4").tobytes()
    encrypted = [spoilt(6, 1), spoilt(8, 1, after=b"PK\x01\x02")]
    for content, changes, told in (
        (header((1 << 45,)), [], "is not what follows"),  # which no memory holds
        (whole, [spoilt(place, 0xFF) for place in range(60, 120)], "decompressing"),
        (b"hello world", [], "magic string"),
        (whole, encrypted, "encrypted"),
    ):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("enc_emb.npy", content)
        data = bytearray(path.read_bytes())
        for change in changes:
            change(data)
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=rf"enc_emb: cannot be read: .*{told}") as caught:
            regard.import_run(path, tmp_path / "run")
        assert "\n" not in str(caught.value)


def test_other_archives_are_refused_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = weights_of(8)
    objects = np.array([{"a": 1}], dtype=object)
    for changed, told in (
        ({"fc_b": None}, "fc_b: missing"),
        ({"fc_b": np.zeros(3, np.float32)}, r"fc_b: gives \[3\]"),
        ({"more": np.zeros(3, np.float32)}, "more: not known"),
        ({"fc_b": objects}, "fc_b: cannot be read"),
    ):
        arrays = {name: array for name, array in (weights | changed).items() if array is not None}
        np.savez(tmp_path / "spoilt.npz", **arrays)  # pyright: ignore[reportArgumentType]
        with pytest.raises(CheckpointError, match=told) as caught:
            regard.import_run(tmp_path / "spoilt.npz", tmp_path / "run")
        assert "\n" not in str(caught.value)
    (tmp_path / "no.npz").write_bytes(b"PK\x03\x04" + b"\xff" * 40)
    with pytest.raises(CheckpointError, match="not a readable archive"):
        regard.import_run(tmp_path / "no.npz", tmp_path / "run")
    with pytest.raises(UsageError, match=r"is written g2p: for the installed package"):
        regard.import_run("g2p:other", tmp_path / "run")
    assert not (tmp_path / "run").exists()
