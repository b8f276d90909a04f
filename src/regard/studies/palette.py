"""The colour of every model, the same on every page, and how entrants of one model with other settings differ from it.

Within the ladder of each task any two colours are far apart, as most people see them and as those do who lack one kind
of cone (tests/unit/studies/test_palette.py measures that), and each can be seen on light and on dark. The first are of
Okabe and Ito; the others were found by making the nearest two of every ladder as different as can be. They stand here
together because a colour means nothing alone. What is fitted at once has a dashed line, and a ring for a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.charts.chart import DASHED, Style
from regard.charts.plot import COLOURS

if TYPE_CHECKING:
    from regard.studies.row import Row

MODELS = {
    "ngram": "#0072b2",
    "majority": "#5a87e1",
    "naive_bayes": "#9600c3",
    "linear": "#f03cff",
    "naive": "#9678ff",
    "lear": "#ff69d2",
    "dlinear": "#785a1e",
    "ibm1": "#a500f0",
    "nearest": "#1ea5ff",
    "nearest_picture": "#5aa5f0",
    "cloze": "#00a50f",
    "most_frequent": "#00691e",
    "hmm": "#c3000f",
    "crf": "#0087f0",
    "dan": "#d55e00",
    "fnn": "#009e73",
    "rnn": "#cc79a7",
    "lstm": "#e69f00",
    "gru": "#a5a587",
    "gpt": "#56b4e9",
    "bert": "#966987",
    "backpack": "#b40078",
    "s4d": "#e100b4",
    "mamba": "#5a1eff",
    "mamba2": "#ff3c5a",
    "seq2seq": "#ff78a5",
    "bahdanau": "#b4004b",
    "gnmt": "#87874b",
    "transformer": "#4b5a87",
    "captioner": "#d2963c",
    "classifier": "#695a00",
    "average": "#3c87ff",
    "ridge": "#00693c",
    "regressor": "#b41e1e",
    "label_rates": "#a569ff",
    "linear_labels": "#874b00",
    "multilabeller": "#0087d2",
    "tagger": "#9600d2",
    "forecaster": "#0078d2",
    "captioner?decoder=lstm": "#1e782d",
    "captioner?decoder=bahdanau": "#8700e1",
    "captioner?decoder=transformer": "#ff0087",
}
# Of entrants of one model, in turn: how much of white or black is in the colour, and how the line is broken.
MIXED = (0.35, 0.6, 0.2, 0.5)
BROKEN = ((9.0, 3.0), (9.0, 3.0, 2.0, 3.0), (4.0, 2.0), (14.0, 4.0))
DARKEST = 0.7  # of what is mixed in of black, so that it is still seen on dark
LIGHT = 0.2  # of the luminance of white, above which a colour is made darker and below which lighter


def styles_of(rows: Sequence[Row]) -> dict[str, Style]:
    """The style of every label. A model from outside has a colour that no other model there has, as long as there are.

    An entrant with settings of its own, or one that begins with another run, is a variation of its model.
    """
    known = {row.label: row.label if row.label in MODELS else row.model for row in rows}
    taken = {MODELS[name] for name in known.values() if name in MODELS}
    outside = list(dict.fromkeys(name for name in known.values() if name not in MODELS))
    free = [colour for colour in COLOURS if colour not in taken] or list(COLOURS)
    own = MODELS | {name: free[number % len(free)] for number, name in enumerate(outside)}
    found, varied = dict[str, Style](), dict[str, int]()
    for row in rows:
        name = known[row.label]
        if row.label == name:
            found[name] = Style(own[name], DASHED if row.fitted else ())
        else:
            found[row.label] = variation(own[name], varied.setdefault(name, 0))
            varied[name] += 1
    return found


def variation(colour: str, number: int) -> Style:
    """The style of an entrant of a model: lighter of a dark colour, darker of a light one, and a broken line."""
    parts = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    end, most = (0, DARKEST) if luminance(colour) > LIGHT else (255, 1.0)
    share = most * MIXED[number % len(MIXED)]
    mixed = (round(part + share * (end - part)) for part in parts)
    return Style(f"#{''.join(f'{part:02x}' for part in mixed)}", BROKEN[number % len(BROKEN)])


def luminance(colour: str) -> float:
    """Of sRGB, from 0 for black to 1 for white (WCAG 2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
