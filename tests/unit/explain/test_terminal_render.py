"""A view in a terminal: it fits, it is harmless, and more is always darker."""

from __future__ import annotations

import doctest
import io
import os
import pty
import re
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from every_panel import HOSTILE, WEIGHTS, WIDE, WORDS, every_panel, with_labels
from rich.cells import cell_len

from regard.explain.render import number
from regard.explain.render.cells import numbers
from regard.explain.render.cells.maps import ASCII_LADDER, LADDER
from regard.explain.render.cells.paper import BLUES, ORANGES
from regard.explain.render.terminal import lines, show
from regard.explain.view import Bars, Curves, Heat, Links, Listing, Numbers, View
from regard.terminal import label

SNAPSHOTS = Path(__file__).parent / "snapshots"
MANNERS = {
    "plain-80": (80, False, True),
    "plain-200": (200, False, True),
    "colour-80": (80, True, True),
    "ascii-80": (80, False, False),
    "plain-40": (40, False, True),
}
CODE = re.compile(r"\x1b\[[0-9;]*m")


def one(panel, width: int = 80, colour: bool = False, unicode: bool = True) -> list[str]:
    return lines(View("Title", [panel], name="one"), width, colour, unicode)[2:]


def snapshot(name: str) -> str:
    """The lines of the view of all panels; escape is written as its picture, so that the file is text."""
    return "\n".join(lines(every_panel(), *MANNERS[name])).replace("\x1b", "␛") + "\n"


@pytest.mark.parametrize("name", MANNERS)
def test_what_is_printed_is_what_was_looked_at(name: str):
    assert snapshot(name) == (SNAPSHOTS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("width", [-1, 0, 1, 20, 21, 33, 60, 80, 113, 200])
@pytest.mark.parametrize(
    "view", [every_panel(), with_labels(HOSTILE), with_labels(WIDE)], ids=["every", "hostile", "wide"]
)
def test_every_line_fits(view: View, width: int, colour: bool, unicode: bool):
    for line in lines(view, width, colour, unicode):
        assert cell_len(CODE.sub("", line)) <= max(20, width), line


@pytest.mark.parametrize("view", [with_labels(HOSTILE), with_labels(WIDE)], ids=["hostile", "wide"])
@pytest.mark.parametrize("colour", [True, False])
def test_no_label_commands_the_terminal(view: View, colour: bool):
    text = "\n".join(lines(view, 80, colour))
    assert colour == ("\x1b" in text)
    left = CODE.sub("", text)
    assert all(c == "\n" or ord(c) >= 32 for c in left)
    assert "\x1b" not in left
    assert not set(left) & set("\u202e\u200b\x7f\x9b\ufe0f")


def test_blanks_and_line_ends_of_tokens_are_seen():
    text = "\n".join(one(Bars(names=HOSTILE, values=range(len(HOSTILE)))))
    for seen in ("a\\nb", "\\ttab", "␣blank␣", "<script>", "&amp;", "\\u202e", "\\x00", "\\x1b[2J"):
        assert seen in text
    assert len(text.split("\n")) == len(HOSTILE)


def test_without_unicode_every_letter_is_ascii():
    for view in (every_panel(), with_labels(WIDE), with_labels(HOSTILE)):
        assert all(line.isascii() for line in lines(view, 80, True, False))


def test_wide_and_combining_letters_keep_columns_aligned():
    weights = np.full((len(WIDE), len(WIDE)), 0.5)
    printed = one(Heat(weights=weights, rows=WIDE, columns=WIDE))
    edges = [[cell_len(line[: m.start()]) for m in re.finditer("│", line)] for line in printed if line.count("│") == 2]
    assert len(edges) == len(WIDE) + 1
    assert all(row == edges[0] for row in edges[:-1])
    printed = one(Listing(columns=("token", "count#"), rows=[(name, 7) for name in WIDE]))
    assert len({cell_len(line) for line in printed}) == 1


def test_a_larger_weight_is_never_lighter():
    row = np.linspace(0.0, 1.0, 60)[None]
    for unicode, ladder in ((True, LADDER), (False, ASCII_LADDER)):
        cells = re.split("[│|]", one(Heat(weights=row), unicode=unicode)[1])[1]
        levels = [ladder.index(c) for c in cells]
        assert levels == sorted(levels)
        assert set(levels) == set(range(9))
    coloured = re.findall(r"\x1b\[48;5;(\d+)m( +)", one(Heat(weights=row), colour=True)[1])
    assert [int(code) for code, _ in coloured] == list(BLUES)
    assert sum(len(cells) for _, cells in coloured) == 60


@pytest.mark.parametrize("ramp", [BLUES, ORANGES])
def test_colours_get_darker_step_by_step(ramp: tuple[int, ...]):
    steps = (0, 95, 135, 175, 215, 255)

    def light(code: int) -> float:
        channels = (steps[(code - 16) // 36], steps[(code - 16) // 6 % 6], steps[(code - 16) % 6])
        linear = [(c / 255 / 12.92) if c < 11 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    held = [light(code) for code in ramp]
    assert all(a > b for a, b in pairwise(held))


def test_weights_below_zero_have_another_mark_and_another_colour():
    panel = Heat(weights=np.array([[-1.0, 1.0, np.nan]]), low=-1)
    assert "-█ +█ ·" in one(panel)[1]
    assert "-@ +@ ~" in one(panel, unicode=False)[1]
    assert f"48;5;{ORANGES[-1]}m" in one(panel, colour=True)[1]
    assert f"48;5;{BLUES[-1]}m" in one(panel, colour=True)[1]


def test_a_map_too_wide_keeps_the_columns_with_the_largest_weights_and_says_so():
    weights = np.zeros((3, 100))
    weights[1, 90] = 1.0
    printed = one(Heat(weights=weights, rows=("a", "b", "c"), columns=[f"w{n}" for n in range(100)]), 80)
    assert "76 of 100 columns" in "\n".join(printed)
    row = next(line for line in printed if line.startswith("b"))
    column = row.index("█")
    assert "".join(line[column : column + 1] for line in printed[:3]).strip() == "w90"


def test_two_thousand_tokens_are_drawn_in_a_second_and_no_peak_is_lost():
    weights = np.zeros((2000, 2000))
    weights[1234, 567] = 1.0
    names = [f"token{n}" for n in range(2000)]
    start = time.thread_time()
    printed = one(Heat(weights=weights, rows=names, columns=names), 80)
    assert time.thread_time() - start < 1.0
    assert len(printed) < 70
    row = next(line for line in printed if "█" in line)
    first, last = (int(end) for end in row.split(" ")[0].split("-"))
    assert first <= 1234 <= last
    assert row.split("│")[1].index("█") == 567 // 30
    assert "each cell is the largest of 32 x 30" in "\n".join(printed)


def test_numbers_have_four_digits_and_what_is_left_out_is_counted():
    printed = "\n".join(
        one(Numbers(values=np.array([[1 / 3, 2.0, np.nan], [-12.3456, 0.5, 1e-7]]), equation="A = B C"))
    )
    for text in ("    A = B C", "0.3333", "2", ".", "-12.35", "0.5", "1e-07"):
        assert text in printed
    wide = one(Numbers(values=np.arange(600.0).reshape(2, 300)), 60)
    assert "..." in wide[0]
    assert wide[0].split()[:2] == ["0", "1"]
    assert wide[0].split()[-1] == "299"
    assert wide[-1].endswith("of 2 x 300 numbers")
    tall = one(Numbers(values=np.arange(300.0).reshape(100, 3)))
    assert tall[-2].split() == ["297", "298", "299"]
    assert tall[-1] == "39 x 3 of 100 x 3 numbers"


def test_no_number_is_cut_in_two_however_narrow_the_terminal():
    values = np.full((2, 3), -0.01234)
    for width in range(20, 60):
        found = re.findall(
            r"-?[0-9.]+", "\n".join(one(Numbers(values=values, rows=("first row", "second")), width)[:2])
        )
        assert set(found) <= {"-0.01234", "..."}
        assert "-0.01234" in found


def test_a_marked_number_stands_out():
    panel = Numbers(values=np.array([[1.5, 2.5]]), marked=[(0, 1)])
    assert "*2.5*" in one(panel)[0]
    assert "\x1b[1;7m" in one(panel, colour=True)[0]
    assert "*" not in one(panel, colour=True)[0]


def test_bars_are_as_long_as_their_values_and_negative_ones_end_at_zero():
    printed = one(Bars(names=("a", "b", "c"), values=(1.0, 0.5, -0.5)))
    longest, half, below = (line.rstrip() for line in printed)
    assert longest.count("█") == 2 * half.count("█") == 2 * below.count("█")
    assert below.rindex("█") + 1 == longest.index("█") == half.index("█")


def test_links_are_numbered_from_the_strongest_and_pairs_are_told():
    weights = np.array([[0.9, 0.1], [0.4, 0.6]])
    printed = one(Links(weights=weights, upper=("ja", "nein"), lower=("yes", "no"), pairs=[(0, 0), (1, 1)]))
    assert any(re.match(r" 1  yes → ja +0.9", line) for line in printed)
    assert any(re.match(r" 2  no → nein +0.6", line) for line in printed)
    assert "pairs (upper-lower, from 0): 0-0 1-1" in printed
    free = one(Links(weights=weights, upper=("ja", "nein"), lower=("yes", "no")))
    assert any(re.match(r" 3  no → ja +0.4", line) for line in free)
    assert not any("0.1" in line for line in free)


def test_a_curve_ends_where_its_points_do():
    panel = Curves(lines={"up": [(0, 0), (10, 5)]}, x="x", y="y")
    for unicode in (True, False):
        printed = one(panel, 60, unicode=unicode)
        assert printed[1].startswith("5 ")
        assert len(printed[1]) == 60  # the last point is in the upper right corner
        assert printed[12].startswith("0 ")
        assert printed[12][3] != " "


def test_a_long_text_of_a_table_is_folded_not_cut():
    text = "one two three four five six seven eight nine ten eleven twelve"
    printed = one(Listing(columns=("name", "number#", "text"), rows=[("a", 1, text)]), 40)
    assert len(printed) > 2
    assert " ".join(" ".join(printed[1:]).split()[2:]) == text


@pytest.mark.parametrize(
    "panel",
    [
        Heat(weights=np.zeros((0, 0))),
        Numbers(values=np.zeros((0, 3))),
        Links(weights=np.zeros((0, 0)), upper=(), lower=()),
        Bars(names=(), values=()),
        Curves(lines={}),
        Curves(lines={"a": [(0.0, float("nan"))]}),
        Listing(columns=(), rows=()),
        Listing(columns=("a",), rows=()),
        Bars(names=("a", "b"), values=(0.0, float("nan"))),
        Heat(weights=np.full((1, 1), np.nan), low=0.0, high=0.0),
        Curves(lines={"a": [(1.0, 1.0)]}, x_log=True, y_log=True),
    ],
    ids=str,
)
def test_nothing_to_show_is_no_failure(panel):
    for width in (20, 80):
        for colour in (False, True):
            assert lines(View("Title", [panel], name="empty"), width, colour)[0].endswith(("Title", "\x1b[0m"))


def test_a_pipe_gets_plain_text_of_a_hundred_columns(capsys: pytest.CaptureFixture[str]):
    every_panel().show()
    text = capsys.readouterr().out
    assert text == "\n".join(lines(every_panel(), 100)) + "\n"
    assert "\x1b" not in text


def test_a_stream_without_blocks_gets_ascii():
    held = io.BytesIO()
    stream = io.TextIOWrapper(held, encoding="latin-1")
    show(every_panel(), stream)
    stream.flush()
    assert held.getvalue().decode("ascii").splitlines() == lines(every_panel(), 100, False, False)


@pytest.mark.parametrize("no_colour", [True, False])
def test_a_terminal_gets_its_width_and_colours(no_colour: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("NO_COLOR", "1") if no_colour else monkeypatch.delenv("NO_COLOR", raising=False)
    view = View("Title", [Heat(weights=WEIGHTS, rows=WORDS, columns=WORDS)], name="small")
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        show(view, stream)
    held = b""
    with suppress(OSError):  # which is how a terminal says that nobody writes any more
        while chunk := os.read(reader, 1 << 16):
            held += chunk
    os.close(reader)
    text = held.decode("utf-8")
    assert text.splitlines() == lines(view, 90, not no_colour)
    assert ("\x1b" in text) != no_colour


@pytest.mark.parametrize("module", [label, number, numbers])
def test_examples_in_the_renderer_hold(module):
    assert doctest.testmod(module).failed == 0


if __name__ == "__main__":
    # Writes the snapshots anew; they are to be read before they are kept.
    for kind in sys.argv[1:] or MANNERS:
        (SNAPSHOTS / f"{kind}.txt").write_text(snapshot(kind), encoding="utf-8")
