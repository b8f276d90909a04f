"""A view with a panel of every kind, and labels that would do harm if they were not shown as text."""

from __future__ import annotations

import numpy as np

from regard.explain.view import Bars, Curves, Heat, Links, Listing, Note, Numbers, View

WORDS = ("I", "arrived", "at", "the", "bank")
HOSTILE = (
    "\x1b[2J\x1b[31mred",
    "a\nb",
    "\ttab",
    " blank ",
    "<script>alert('x')</script>",
    "&amp;",
    "\u202eright",
    "\x00",
)
WIDE = ("日本語", "e\u0301te\u0301", "\u0301", "👍", "한국", "❤\ufe0f", "👨\u200d👩")
# Each row sums to 1; a later word has not been read.
WEIGHTS = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.25, 0.75, 0.0, 0.0, 0.0],
        [0.125, 0.5, 0.375, 0.0, 0.0],
        [0.05, 0.1, 0.6, 0.25, 0.0],
        [0.02, 0.38, 0.1, 0.1, 0.4],
    ]
)
ALIGNED = np.array([[0.9, 0.06, 0.04], [0.1, 0.3, 0.6], [0.05, 0.85, 0.1]])
SCORES = np.where(np.tri(4) > 0, np.arange(16.0).reshape(4, 4) / 7 - 1, np.nan)


def every_panel() -> View:
    """All seven kinds, with plain labels."""
    distances = range(1, 41)
    return View(
        "Attention of layer 2, head 3",
        [
            Note(title="Question", text="How much does each word look at the words before it? " * 2),
            Note(text="A = softmax(Q K^T / √d)", style="equation"),
            Note(text="A later word has not been read: its weight is zero, not small.", style="answer"),
            Heat(title="Weights", weights=WEIGHTS, rows=WORDS, columns=WORDS, row_name="query", column_name="key"),
            Heat(
                title="Change",
                weights=np.array([[-1.0, 0.0, 0.5], [1.0, np.nan, -0.25]]),
                rows=WIDE[:2],
                columns=("a", "b", "longest of all"),
                low=-1,
                scale="difference",
            ),
            Numbers(
                title="Scores",
                values=SCORES,
                rows=WORDS[:4],
                columns=WORDS[:4],
                equation="S = Q K^T / √d",
                marked=[(2, 1)],
            ),
            Numbers(title="Wide", values=np.arange(90.0).reshape(2, 45) / 8, equation="E"),
            Links(
                title="Alignment",
                weights=ALIGNED,
                upper=("das", "kleine", "Haus"),
                lower=("the", "house", "little"),
                upper_name="source",
                lower_name="target",
                pairs=[(0, 0), (1, 2), (2, 1)],
            ),
            Bars(
                title="Next word", names=("river", "bank", " street"), values=(0.625, 0.25, 0.0009), unit="probability"
            ),
            Bars(title="Contribution", names=("good", "bad"), values=(1.5, -2.25)),
            Curves(
                title="Memory",
                lines={"lstm": [(d, 0.8**d) for d in distances], "gpt": [(d, 1 / d) for d in distances]},
                x="distance",
                y="influence",
            ),
            Curves(title="Loss", lines={"train": [(2.0**n, 5.0 - n / 2) for n in range(9)]}, x="step", x_log=True),
            Listing(
                title="Heads",
                columns=("head", "entropy#", "looks at"),
                rows=[
                    ("1.1", 2.25, "the first token, commas and full stops, wherever they are in the sentence"),
                    ("1.2", 0.5, None),
                ],
                note="Sorted by entropy.",
            ),
        ],
        about={"run": "runs/gpt", "layer": 2, "head": 3},
        caveat="A weight says where a head looked, not why the model answered as it did.",
        name="sample",
    )


def with_labels(labels: tuple[str, ...]) -> View:
    """All kinds that have labels, with these, which are also its titles and texts."""
    count = len(labels)
    weights = np.full((count, count), 1 / count)
    text = " ".join(labels)
    return View(
        text,
        [
            Note(title=text, text=text, note=text),
            Note(text=text, style="equation"),
            Heat(
                weights=weights, rows=labels, columns=labels, row_name=labels[0], column_name=labels[0], scale=labels[0]
            ),
            Numbers(values=weights, rows=labels, columns=labels, equation=text),
            Links(weights=weights, upper=labels, lower=labels, upper_name=labels[0], lower_name=labels[0]),
            Bars(names=labels, values=range(count), unit=labels[0]),
            Curves(lines={name: [(0, 0), (1, number)] for number, name in enumerate(labels)}, x=labels[0], y=labels[0]),
            Listing(columns=labels, rows=[labels]),
        ],
        about={"text": text},
        caveat=text,
        name="labels",
    )
