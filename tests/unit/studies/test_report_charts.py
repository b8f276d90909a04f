"""The page of a comparison from numbers that are made here: colours, axes, what is left out, what can be copied."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from regard.studies.comparison import Comparison
from regard.studies.palette import MODELS, styles_of
from regard.studies.protocol import Protocol
from regard.studies.report_charts import charts, first_chart, further_charts, scores, slices
from regard.studies.report_page import as_html
from regard.studies.row import Row
from regard.studies.summary import finding, ranking, recalled

RECALL = {"3-4": 1.0, "5-8": 0.5, "9-16": 0.25}


def row(label: str, losses: dict[float, float], **more: Any) -> Row:
    """A model whose held-out loss by seconds is known."""
    curve = [{"step": s, "seconds": s, "tokens": 100 * s, "valid_loss": loss} for s, loss in losses.items()]
    run = {
        "score": curve[-1]["valid_loss"],
        "scores": {"loss": curve[-1]["valid_loss"]},
        "slices": {"recall by distance": RECALL},
        "curve": curve,
        "speed": 100.0,
        "speed_unit": "tokens/s",
        "state_bytes": 40,
        "state_grows": False,
        "peak_memory": 1000,
        "seconds": 18.0,
        "step": 10,
        "tokens": 1000,
        "samples": None,
        "flops_per_token": 1000.0,
        "sample": "a <b>",
        "seed": 0,
        "path": "nowhere",
        "scored": [[("a ", 0.9), ("<b> ", 0.2)]],
    }
    return Row(label, label.partition("?")[0], 0 if label == "ngram" else 1000, runs=[run | more])


ROWS = (
    row("ngram", {0.2: 1.0}),
    row("lstm", {2.0: 9.0, 8.0: 1.1, 18.0: 0.9}, state_bytes=400, scored=[[("a ", 0.1), ("<b> ", 0.3)]]),
    row("gpt?n_layers=3", {2.0: 3.0, 8.0: 0.95, 18.0: 0.6}, state_bytes=4000, state_grows=True),
)
FOUND = Comparison(Protocol("world:x", "text", "24s", 1), ROWS, Path("c"), {"name": "world:x"}, 0.5)


def copied(text: str) -> list[list[list[str]]]:
    """The tables that can be copied."""
    found = re.findall(r'<details class="csv"><summary>CSV</summary><pre>(.*?)</pre>', text, re.DOTALL)
    return [list(csv.reader(io.StringIO(unescape(one)))) for one in found]


def test_all_charts_draw_a_model_in_its_colour() -> None:
    for drawn in (first_chart(FOUND), *charts(FOUND)):
        assert all(MODELS[name] in drawn for name in ("ngram", "lstm") if name in drawn)
    assert f'<span class="dot" style="background:{MODELS["lstm"]}"></span>lstm' in as_html(FOUND)


def test_the_first_picture_is_of_recall_where_facts_are_asked_for_else_of_scores() -> None:
    assert copied(first_chart(FOUND))[0][:3] == [
        ["model", "tokens since it was told", "share right"],
        ["ngram", "3-4", "1.0"],
        ["ngram", "5-8", "0.5"],
    ]
    plain = replace(FOUND, rows=tuple(replace(one, runs=[one.runs[0] | {"slices": {}}]) for one in ROWS))
    assert copied(first_chart(plain))[0][1][:2] == ["gpt?n_layers=3", "0.6"]
    assert recalled(plain) == ""


def test_a_curve_is_the_distance_from_the_best_possible_and_a_fitted_model_stays_where_it_is() -> None:
    by_time = next(one for one in charts(FOUND) if "by seconds" in one)
    told = [(name, float(x), float(y)) for name, x, y in copied(by_time)[0][1:]]
    assert [point for point in told if point[0] == "ngram"] == [("ngram", 0.2, 0.5), ("ngram", 18.0, 0.5)]
    assert ("gpt?n_layers=3", 18.0, pytest.approx(0.1)) in told
    assert all("ngram" not in one for one in further_charts(FOUND))


def test_what_is_the_same_for_all_is_not_drawn() -> None:
    drawn = "".join(charts(FOUND))
    assert "bytes carried" in drawn
    assert not any(title in drawn for title in ("speed of use", "training time", "memory of training"))


def test_the_words_say_what_the_pictures_show() -> None:
    assert recalled(FOUND) == (
        "Of the facts told 9-16 tokens before, recalled are: ngram 25% (40B), lstm 25% (400B), gpt?n_layers=3 25% "
        "(4kB, growing)."
    )
    assert (
        "ngram, fitted at once, stood at a held-out loss of 1; gpt?n_layers=3 was the first below it, after 8s."
        in finding(FOUND)
    )


def again(first: Row, **more: Any) -> Row:
    """A model that was trained a second time, by another seed."""
    second = first.runs[0] | {"seed": 1} | more
    return replace(first, runs=[*first.runs, second])


def test_charts_and_words_are_of_all_trainings_as_the_ranking_is() -> None:
    worse = {"3-4": 0.0, "5-8": 0.0, "9-16": 0.75}
    bins = [[0.95, 0.5, 10]], [[0.95, 1.0, 30]]
    more = {"score": 0.5, "speed": 300.0, "slices": {"recall by distance": worse}, "reliability": bins[1]}
    rows = tuple(again(replace(one, runs=[one.runs[0] | {"reliability": bins[0]}]), **more) for one in ROWS)
    found = replace(FOUND, rows=(*rows[:2], replace(rows[2], runs=[one | {"speed": 5e3} for one in rows[2].runs])))
    assert "lstm 50%" in recalled(found)
    assert ["ngram", "9-16", "0.5"] in copied(first_chart(found))[0]
    drawn = charts(found)
    speed = next(one for one in drawn if "speed of use" in one)
    points = {name: (float(x), float(y)) for name, x, y in copied(speed)[0][1:]}
    assert points["ngram"] == (200.0, pytest.approx((1.0 + 0.5) / 2 - 0.5))
    assert {one.label: one.mean - 0.5 for one in found.order} == pytest.approx({k: y for k, (_, y) in points.items()})
    chances = next(one for one in drawn if "Are chances true?" in one)
    assert [(name, float(right)) for name, _, right in copied(chances)[0][3:]] == [
        (one.label, (0.5 * 10 + 1.0 * 30) / 40) for one in rows
    ]
    assert ranking(found)[1][-1][-3:] == ["200", "40B", "1kB"]


def test_what_is_of_one_training_says_so() -> None:
    several = replace(FOUND, rows=tuple(again(one) for one in ROWS))
    page = as_html(several)
    assert "Held-out loss by seconds, first training of each" in page
    assert "Where some are right and others wrong, first training of each" in page
    assert "Of the first training of each: lstm was the first at a held-out loss of" in finding(several)
    assert "first training" not in as_html(FOUND) + finding(FOUND)


def test_a_curve_of_one_point_is_no_fit_at_once() -> None:
    """Of an ensemble only the loss of the whole is known, when its last part has ended."""
    whole = row("dan?train.ensemble=3", {18.0: 0.7})
    found = replace(FOUND, rows=(ROWS[1], whole))
    assert "fitted at once" not in finding(found)
    by_time = next(one for one in charts(found) if "by seconds" in one)
    assert [x for name, x, _ in copied(by_time)[0] if name == whole.label] == ["18.0"]


def test_the_page_has_one_table_of_examples_and_every_number_to_copy() -> None:
    page = as_html(FOUND)
    assert ["text", "ngram", "lstm", "gpt?n_layers=3"] in [table[0] for table in copied(page)]
    assert page.count("<figure") == len(copied(page)) - 2  # the others are of the ranking and of the examples
    assert '<td class="share" style="--share:0.9">90%</td>' in page
    assert "a &lt;b&gt;" in page
    assert "&lt;iframe" not in page


def test_a_notebook_shows_the_same_page_apart_from_its_own() -> None:
    shown = FOUND._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts" ')
    assert unescape(shown.partition('srcdoc="')[2].partition('"')[0]) == as_html(FOUND)


def test_chances_are_drawn_beside_the_line_on_which_they_are_true() -> None:
    assert not any("Are chances true?" in chart for chart in charts(FOUND))
    bins = [[0.3, 0.0, 2], [0.7, 0.6, 40], [0.95, 0.9, 60]]
    sure = replace(FOUND, rows=(*ROWS, row("dan", {1.0: 0.7}, reliability=bins)))
    drawn = next(chart for chart in charts(sure) if "Are chances true?" in chart)
    assert copied(drawn)[0][1:] == [
        ["as often as said", "0.0", "0.0"],
        ["as often as said", "1.0", "1.0"],
        ["dan", "0.7", "0.6"],
        ["dan", "0.95", "0.9"],
    ]


@pytest.mark.parametrize(("one", "other"), [("bad", "good"), ("0", "1")])
def test_a_line_joins_distances_and_lengths_and_no_classes(one: str, other: str) -> None:
    classes, lengths = {one: 0.5, other: 0.75}, {"1-10": 0.5, "11-20": 0.25}
    rows = (row("lstm", {1.0: 1.0}, slices={"precision by class": classes, "by length": lengths}),)
    by_class, by_length = (chart for _, chart in slices(replace(FOUND, rows=rows)))
    assert (by_class.joined, by_class.y.label, by_class.x.label) == (False, "precision", "class")
    assert (by_length.joined, by_length.y.label, by_length.x.label) == (True, "loss", "length")
    assert copied(by_class.html(styles_of(rows))) == [
        [["model", "class", "precision"], ["lstm", one, "0.5"], ["lstm", other, "0.75"]]
    ]


def test_a_score_of_which_more_is_better_lies_below_the_best_possible() -> None:
    found = replace(FOUND, protocol=Protocol("world:x", "labelled", "24s", 1), optimum=2.0)
    assert "Test accuracy below the best possible" in scores(found, styles_of(found.rows))
    assert "Test loss above the best possible" in scores(FOUND, styles_of(ROWS))
