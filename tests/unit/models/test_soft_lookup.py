"""Soft lookups and counts of both sides, against loops in float64."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.core.fitted import FitSettings, Nobody
from regard.core.inputs import SourceTokens
from regard.core.model import logits_of
from regard.errors import CheckpointError
from regard.models.cloze import ClozeConfig
from regard.models.ibm1 import Ibm1Config
from regard.models.nearest import NearestConfig
from regard.models.nearest_picture import NearestPictureConfig
from regard.storage import manifest, tensors

V = 7
END = V - 1


@dataclass(frozen=True)
class Side:
    rows: list[list[int]]
    values: np.ndarray = field(init=False)
    starts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.array(list(itertools.chain(*self.rows)), np.int64))
        object.__setattr__(self, "starts", np.concatenate([[0], np.cumsum([len(row) for row in self.rows])]))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Given:
    source: Side
    target: Side
    pictures: Any = None

    @property
    def rows(self) -> Given:
        return self


TARGETS = [[0, 1, 2], [0, 1, 3, 3], [2, 0, 1], [0, 1, 2], []]
GIVEN = Given(Side([[0, 1, END], [0, 2, END], [3, 1, END], [0, 1, END], [4, END]]), Side(TARGETS))
NEAREST = NearestConfig(V, 3, 3, 0.2, 0.1, source_vocab_size=V)


def fitted(config: Any, given: Given = GIVEN) -> Any:
    model = config.build().double()
    model.fit(given, FitSettings(), Nobody())
    return model


def by_loop(weights: list[float], rows: list[int], prefix: list[int], m: float, order: int) -> np.ndarray:
    """What the equations of soft_lookup.py say, place by place."""
    counts = np.bincount(list(itertools.chain(*TARGETS)), minlength=V) + 1.0
    counts[END] += len(TARGETS)
    p = counts / counts.sum()
    framed = [[END, *TARGETS[row], END] for row in rows]
    levels = [[(w, text, at) for w, text in zip(weights, framed, strict=True) for at in range(len(text) - 1)]]
    for n in range(1, order):
        last = prefix[-n:] if len(prefix) >= n else None
        levels.append([one for one in levels[0] if last and one[1][max(0, one[2] - n + 1) : one[2] + 1] == last])
    begins = [one for one in levels[0] if one[1][: one[2] + 1] == prefix]
    for level in [*levels, begins]:
        c = np.zeros(V)
        for w, text, at in level:
            c[text[at + 1]] += w
        p = (c + m * p) / (c.sum() + m)
    return p


@pytest.mark.parametrize("written", [[], [0], [0, 1], [0, 1, 3], [2, 2], [5, 1]])
def test_a_soft_lookup_is_what_its_equations_say(written: list[int]):
    model, source = fitted(NEAREST), torch.tensor([[0, 1, END]])
    found = model.looked_up(source)
    assert [one.row for one in found[:2]] == [0, 3]
    assert sum(one.weight for one in found) == pytest.approx(1)
    prefix = [END, *written]
    expected = by_loop([one.weight for one in found], [one.row for one in found], prefix, 0.1, 3)
    log_p = logits_of(model, SourceTokens(source, torch.tensor([prefix])))[0, -1]
    assert np.allclose(log_p.exp().numpy(), expected, atol=1e-12)
    assert expected.sum() == pytest.approx(1)


def test_many_sources_are_looked_up_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch):
    model, source = fitted(NEAREST), torch.tensor([[0, 1, END], [4, END, 0], [3, 3, 3]])
    lengths = torch.tensor([3, 2, 3])
    whole = model.start(source, lengths)
    monkeypatch.setattr("regard.models.soft_lookup.SOURCES_AT_ONCE", 2 * len(TARGETS))
    parts = model.start(source, lengths)
    assert torch.equal(whole.rows, parts.rows)
    assert torch.equal(whole.weights, parts.weights)


def test_similarities_are_cosines_of_tf_idf():
    model = fitted(NEAREST)

    def grams(ids: list[int]) -> dict[Any, int]:
        found: dict[Any, int] = {}
        for gram in [*ids, *itertools.pairwise(ids)]:
            found[gram] = found.get(gram, 0) + 1
        return found

    texts = [grams(row) for row in GIVEN.source.rows]

    def vector(own: dict[Any, int]) -> dict[Any, float]:
        n = len(texts)
        raw = {
            gram: (1 + math.log(count)) * (1 + math.log((1 + n) / (1 + sum(gram in one for one in texts))))
            for gram, count in own.items()
            if any(gram in one for one in texts)
        }
        norm = math.sqrt(sum(value**2 for value in raw.values()))
        return {gram: value / norm for gram, value in raw.items()}

    asked = vector(grams([0, 0, 1]))
    expected = [sum(asked.get(gram, 0.0) * value for gram, value in vector(one).items()) for one in texts]
    found = model.similarity(*model.encode(torch.tensor([[0, 0, 1]])))[0]
    assert np.allclose(found.numpy(), expected, atol=1e-12)


def test_pictures_are_weighed_by_a_softmax_of_their_distance():
    chance = np.random.default_rng(1)
    pictures = chance.integers(256, size=(5, 8, 8, 3), dtype=np.uint8)
    model = fitted(NearestPictureConfig(V, 5, 3, 0.3, 0.1, 8, 8), Given(GIVEN.source, GIVEN.target, pictures))
    seen = pictures.astype(np.float64).transpose(0, 3, 1, 2) / 127.5 - 1
    asked = torch.from_numpy(chance.uniform(-1, 1, (1, 3, 8, 8)))
    distance = ((seen - asked.numpy()) ** 2).reshape(5, -1).mean(1)
    weights = np.exp(-distance / 0.3) / np.exp(-distance / 0.3).sum()
    found = {one.row: one.weight for one in model.looked_up(asked)}
    assert np.allclose([found[row] for row in range(5)], weights, atol=1e-6)
    apart = model.differences(asked, [4, 0]).numpy()  # where they differ, a square a pixel here
    assert np.allclose(apart, ((seen - asked.numpy()) ** 2).mean(1)[[4, 0]], atol=1e-6)
    assert np.allclose(apart.mean((1, 2)), distance[[4, 0]], atol=1e-6)


def test_a_gap_is_told_by_both_sides_then_each_then_none():
    ids = np.array([0, 1, 2, 4, 0, 3, 2, 4, 0, 1, 3, 4])  # 4 ends a text, 5 is the mask
    model = ClozeConfig(6, 2, 2.0).build().double()
    model.learn(ids, FitSettings(), Nobody())
    windows = model(torch.tensor([[4, 0, 5, 2, 4]]))[0]
    assert windows[0, 2].tolist() == [0, 2]
    p = model.head(windows)[0, 2].exp()
    left = model.before.probabilities(torch.tensor([[0]]), model.before.init_state(1))[0, 0]
    right = model.behind.probabilities(torch.tensor([[2]]), model.behind.init_state(1))[0, 0]
    base = (left * right / model.before.table.base).numpy()
    base[4:] = 0
    counts = np.zeros(6)
    for a, w, b in zip(ids, ids[1:], ids[2:], strict=False):
        counts[w] += (a, b) == (0, 2)
    expected = (counts + 2.0 * base / base.sum()) / (counts.sum() + 2.0)
    assert counts.sum() == 2
    assert np.allclose(p.numpy()[:4], expected[:4], atol=1e-12)
    assert float(p.sum()) == pytest.approx(1)


def test_the_alignment_that_is_shown_is_that_of_the_equation():
    model = fitted(Ibm1Config(V, V, 2, language=0.5, diagonal=2.0))
    state, written = model.start(torch.tensor([[0, 1, END]])), torch.tensor([[1, 0, END]])
    weights = model.alignment(written, state, written=written)
    t = model._translations.of(written, state.source)
    assert torch.allclose(weights[0, :2], (t / t.sum(-1, keepdim=True))[0, :2])
    seen = model.trace(SourceTokens(torch.tensor([[0, 1, END]]), torch.tensor([[END, 1, 0]])))["weights"]
    assert torch.allclose(seen[0, 0, :2], weights[0, :2])
    assert torch.allclose(seen.sum(-1), torch.ones(1, 1, 3, dtype=torch.float64))


def test_what_no_source_is_left_to_say_is_the_end():
    pairs = Given(Side([[0, END], [1, END], [0, 1, END]] * 4), Side([[0], [1], [0, 1]] * 4))
    model = fitted(Ibm1Config(V, V, 2, 20, language=0.2, diagonal=0.0), pairs)
    for source, written in (([0, END], [END, 0]), ([1, END], [END, 1]), ([0, 1, END], [END, 0, 1])):
        log_p = logits_of(model, SourceTokens(torch.tensor([source]), torch.tensor([written])))[0]
        assert log_p.argmax(-1).tolist() == [*written[1:], END]


@pytest.mark.parametrize("config", [NEAREST, Ibm1Config(V, V, 2), Ibm1Config(V, V, 3, language=1.0, diagonal=0.0)])
def test_a_model_is_the_same_out_of_its_file(config: Any, tmp_path: Path):
    model, path = fitted(config), tmp_path / "model.safetensors"
    manifest.write_file(path, tensors.chunks(model.stored()))
    again = config.build().double()
    again.open_file(path)
    asked = SourceTokens(torch.tensor([[0, 1, END]]), torch.tensor([[END, 0, 1]]))
    assert torch.equal(logits_of(again, asked), logits_of(model, asked))


@pytest.mark.parametrize(
    ("config", "name", "change"),
    [
        (NEAREST, "texts", lambda one: one + V),
        (NEAREST, "starts", lambda one: one.flip(0)),
        (NEAREST, "source", lambda one: one[1:]),
        (NEAREST, "chosen", lambda one: one * 0),
        (Ibm1Config(V, V, 2), "first", lambda one: one[1:]),
        (Ibm1Config(V, V, 2), "words", lambda one: one.flip(0)),
        (Ibm1Config(V, V, 2), "t", lambda one: -one),
        (Ibm1Config(V, V, 2), "language.table.discounts", lambda one: one[1:]),
    ],
)
def test_a_damaged_file_is_refused(config: Any, name: str, change: Any, tmp_path: Path):
    stored, path = fitted(config).stored(), tmp_path / "model.safetensors"
    manifest.write_file(path, tensors.chunks(stored | {name: change(stored[name]).contiguous()}))
    with pytest.raises(CheckpointError, match="not the file of"):
        config.build().open_file(path)
