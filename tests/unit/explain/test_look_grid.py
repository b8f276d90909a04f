"""All heads at once against the maps of the views of one, and names of heads against maps made to have them."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from look_run import TEXT, masked_run, pair_run, seen, text_run
from regard.errors import UsageError
from regard.explain import registry
from regard.explain.heads import SHORT, called, figures, named_here
from regard.explain.look import options_from
from regard.explain.looks import grid as module
from regard.explain.looks.alignment import alignment
from regard.explain.looks.attention import attention, heads
from regard.explain.looks.grid import grid
from regard.explain.render.terminal import lines
from regard.explain.thumbnails import Thumbnails
from regard.explain.view import View

N = 12


def panels(view: View) -> list[Thumbnails]:
    assert all(isinstance(panel, Thumbnails) for panel in view.panels)
    return list(view.panels)  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize("name", ["gpt", "bert"])
def test_every_map_is_that_of_the_view_of_one_head(name: str) -> None:
    run = text_run("gpt") if name == "gpt" else masked_run()
    (panel,) = panels(seen(run, grid))
    assert panel.places == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert panel.labels == ["1.1", "1.2", "2.1", "2.2"]
    for number, (layer, head) in enumerate(panel.places):
        one = seen(run, attention, layer=layer, head=head)["weights"]
        np.testing.assert_allclose(panel.maps[number], one.weights, atol=1e-7)
        assert panel.highs[number] == pytest.approx(one.high)
    assert tuple(panel.rows) == tuple(one.rows)  # pyright: ignore[reportPossiblyUnboundVariable]
    rows = {tuple(row[:2]): row for row in seen(run, heads)["heads"].rows}
    for number, place in enumerate(panel.places):
        entropy, distance, sink = rows[place][2:5]
        assert panel.figures["entropy"][number] == pytest.approx(entropy)
        assert panel.figures["distance"][number] == pytest.approx(distance)
        assert panel.figures["first"][number] == pytest.approx(sink)


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
def test_what_is_written_at_its_source_is_the_alignment_a_step_at_a_time_or_at_once(name: str) -> None:
    run = pair_run(name)
    told = {"target": "a dog sees"}
    panel = panels(seen(run, grid, **told))[-1]
    assert panel.title == "The target at the source"
    assert panel.alone == ("alignment", "")
    for number, (layer, head) in enumerate(panel.places):
        one = seen(run, alignment, layer=layer, head=head, **told)["weights"]
        np.testing.assert_allclose(panel.maps[number], one.weights, atol=1e-7)
        assert list(panel.rows) == list(one.rows)
        assert list(panel.columns) == list(one.columns)


def test_encoder_decoder_and_what_lies_between_have_a_panel_each_and_one_side_can_be_asked_for() -> None:
    run = pair_run("transformer")
    titles = [panel.title for panel in panels(seen(run, grid))]
    assert titles == ["The source at itself", "The target at itself", "The target at the source"]
    assert [panel.title for panel in panels(seen(run, grid, side="source"))] == titles[:1]
    with pytest.raises(UsageError, match="no attention over the side 'picture'; there is over source and target"):
        seen(run, grid, side="picture")


def made(weights: np.ndarray) -> np.ndarray:
    """Rows that sum to 1, of one head."""
    return (weights / weights.sum(-1, keepdims=True))[None]


EVEN = np.tril(np.ones((N, N)))


@pytest.mark.parametrize(
    ("weights", "name"),
    [
        (np.eye(N) + EVEN / N, "itself"),
        (np.eye(N, k=-1) * 5 + EVEN / N, "previous token"),
        (np.eye(N, k=1) * 5 + np.ones((N, N)) / N, "next token"),
        (np.eye(1, N) * 5 + EVEN / N, "first token"),
        (EVEN, "broad"),
        (np.ones((N, N)), "broad"),
        (np.where(np.arange(N) == 5, 1.0, 0) * 3 + np.eye(N), ""),  # one word that is none of these
    ],
)
def test_a_head_is_called_by_what_has_most_of_its_weight(weights: np.ndarray, name: str) -> None:
    map_ = made(weights)
    assert named_here(map_, figures(map_, True), True) == [name]


def test_between_two_sides_a_head_is_called_by_the_ends_and_the_diagonal() -> None:
    rows, columns = 8, 24
    last, first = np.zeros((2, rows, columns)) + 0.01
    last[:, -1] = first[:, 0] = 1.0
    diagonal = np.full((rows, columns), 0.01)
    diagonal[np.arange(rows), np.round(np.arange(rows) * 23 / 7).astype(int)] = 1.0
    maps = np.concatenate([made(last), made(first), made(diagonal), made(np.ones((rows, columns)))])
    assert named_here(maps, figures(maps, False), False) == ["last token", "first token", "diagonal", "broad"]


def test_content_is_told_by_the_trial_and_places_by_the_text() -> None:
    tried = ["induction", "none", "first token", "first token", "same token"]
    here = ["first token", "broad", "previous token", "", "itself"]
    assert called(tried, here) == ["induction", "broad", "previous token", "first token", "same token"]
    assert called([], here) == here
    assert set(here) - {""} <= set(SHORT)


def test_heads_are_put_in_the_order_that_is_asked_for() -> None:
    run = text_run("gpt")
    (plain,) = panels(seen(run, grid))
    (sharp,) = panels(seen(run, grid, sort="entropy"))
    assert list(sharp.figures["entropy"]) == sorted(plain.figures["entropy"])
    for number, place in enumerate(sharp.places):
        np.testing.assert_array_equal(sharp.maps[number], plain.maps[plain.places.index(place)])
    (first,) = panels(seen(run, grid, sort="first"))
    assert list(first.figures["first"]) == sorted(plain.figures["first"], reverse=True)
    assert sorted(panels(seen(run, grid, sort="name"))[0].places) == sorted(plain.places)
    with pytest.raises(UsageError, match=r"--sort entrophy: .* did you mean 'entropy'"):
        seen(run, grid, sort="entrophy")
    with pytest.raises(UsageError, match="makes no use of sort"):
        registry.view(run, "attention", TEXT, sort="name")


def test_of_a_long_text_a_cell_keeps_the_largest_of_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    run = text_run("gpt")
    (whole,) = panels(seen(run, grid))
    monkeypatch.setattr(module, "WHOLE", 10)
    monkeypatch.setattr(module, "SIDE", 3)
    (small,) = panels(seen(run, grid))
    assert small.block == 3
    assert small.maps.shape == (4, 3, 3)
    for one, other in zip(small.maps, whole.maps, strict=True):
        assert one[2, 0] == pytest.approx(other[6:, :3].max())
    assert small.figures == whole.figures  # measured before anything was made smaller
    assert "each cell is the largest of 3 x 3" in small.note


def test_a_page_gets_every_map_on_one_sheet_to_a_255th() -> None:
    (panel,) = panels(seen(text_run("gpt"), grid))
    told = panel.to_page(1 << 20)
    with Image.open(io.BytesIO(base64.b64decode(told["sheet"]))) as picture:
        sheet = np.asarray(picture) / 255
    rows, columns = told["shape"]
    for number, weights in enumerate(panel.maps):
        top, left = number // told["across"] * rows, number % told["across"] * columns
        np.testing.assert_allclose(sheet[top : top + rows, left : left + columns] ** 2, weights, atol=1 / 255)
    assert told["has_rows"]
    assert not panel.to_page()["has_rows"]
    assert not replace(panel, block=2).to_page(1)["has_rows"]
    assert "maps" not in json.dumps(panel.to_dict())
    assert panel.to_dict()["figures"]["entropy"] == list(panel.figures["entropy"])


@pytest.mark.parametrize("width", [20, 60, 100])
@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_shows_every_head_with_its_number(width: int, colour: bool) -> None:
    view = registry.view(text_run("gpt"), "grid", TEXT)
    text = "\n".join(lines(view, width, colour))
    assert all(text.count(label) == 1 for label in ("1.1", "1.2", "2.1", "2.2"))
    assert all(line.isascii() for line in lines(view, width, colour, unicode=False))


def test_a_picture_has_a_map_for_each_head() -> None:
    view = registry.view(text_run("gpt"), "grid", TEXT)
    svg = view.to_svg()
    assert svg.count("<image ") == 4
    assert svg.count('href="data:image/png;base64,') == svg.count("href")
    with Image.open(io.BytesIO(view.to_png())) as picture:
        assert picture.size[0] == 2560


@pytest.mark.parametrize(("name", "has_heads"), [("gpt", True), ("lstm", False), ("mamba", False)])
def test_models_without_attention_have_no_such_view(name: str, has_heads: bool) -> None:
    assert ("grid" in registry.views(text_run(name))) == has_heads
    assert options_from({"sort": "layer"}).sort == "layer"
