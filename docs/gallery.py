"""The gallery: a telling picture of every family and instrument, each made by the command that stands below it.

What a command needs is trained first, where it is not there yet. Every picture says in its metadata of which commit it
was made.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from regard.cli.main import main

DOCS = Path(__file__).parent
FOLDER = DOCS / "gallery"
SIZE = "1200x675"
STORY = "Jonas lived in a small house near the harbour ."
LONG = f"{STORY} Jonas had a blue map . At the end of the day Jonas still had the"

# How each run is trained. Longer budgets give more telling pictures.
RUNS = {
    "ngram": "world:stories --model ngram",
    "dan": "world:stories --model dan --budget 12s",
    "fnn": "world:stories --model fnn --budget 12s",
    "rnn": "world:stories --model rnn --budget 12s",
    "lstm": "world:stories --model lstm --budget 40s",
    "gru": "world:stories --model gru --budget 12s",
    "gpt": "world:stories --model gpt --budget 60s",
    "backpack": "world:stories --model backpack --budget 15s",
    "s4d": "world:stories --model s4d --budget 15s",
    "mamba": "world:stories --model mamba --budget 60s",
    "mamba2": "world:stories --model mamba2 --budget 15s",
    "bert": "world:stories --model bert --budget 60s",
    "seq2seq": "world:translation --model seq2seq --budget 15s",
    "bahdanau": "world:translation --model bahdanau --set model.d_model=64 --set train.word_dropout=0.15 --budget 90s",
    "gnmt": "world:translation --model gnmt --budget 15s",
    "transformer": "world:translation --model transformer --budget 20s",
    "reviews": "world:reviews --budget 30s",
    "linear": "world:reviews --model linear",
    "tags": "world:tags --budget 30s",
    "hmm": "world:tags --model hmm",
    "shapes": "world:shapes --budget 60s",
    "market": "world:electricity --budget 40s",
    "lear": "world:electricity --model lear",
}
SOURCE = '"the small dog sees the cat"'
REVIEW = '"i do not think the ending is clumsy ."'
SENTENCE = '"The old man the boats near the market ."'

SHOWN = ("X", "W_Q", "Q", "K", "V", "scores", "weights", "heat", "outputs")


@dataclass(frozen=True)
class Card:
    """A picture: what it is of, what is to be seen, and what `regard explain` is asked for it."""

    name: str
    title: str
    told: str
    asked: str

    @property
    def command(self) -> str:
        """What a person types."""
        saved = "" if "--animate" in self.asked else f" --svg {self.name}.svg"
        return f"regard explain {self.asked}{saved} --size {SIZE}"

    @property
    def run(self) -> str:
        """The run that it looks at, if it looks at one."""
        first = self.asked.split(" ")[0]
        return first.removeprefix("runs/") if first.startswith("runs/") else ""


FAMILIES = [
    Card(
        "ngram",
        "n-gram",
        "Counting: how many words before were matched at each word.",
        f'runs/ngram "{STORY}" --panel matched',
    ),
    Card(
        "dan",
        "DAN",
        "Averaging: what each word adds to the next one.",
        'runs/dan "Jonas lived in a small house near the" --panel 1',
    ),
    Card(
        "fnn",
        "Window",
        "A window of words: which of its places count.",
        'runs/fnn "Jonas lived in a small house near the" --panel 1',
    ),
    Card(
        "rnn",
        "RNN",
        "Recurrence: how fast a word that was read is no longer felt.",
        f'runs/rnn "{STORY}" --view forgetting --panel 1',
    ),
    Card("lstm", "LSTM", "Gates: what is written, kept and shown at each word.", f'runs/lstm "{STORY}" --panel gates'),
    Card("gru", "GRU", "Fewer gates for the same work.", f'runs/gru "{STORY}" --panel gates'),
    Card(
        "seq2seq",
        "Seq2seq",
        "One vector between two recurrences: which source words the next one needs.",
        f"runs/seq2seq {SOURCE} --view drop --position 2 --panel 1",
    ),
    Card(
        "bahdanau",
        "Seq2seq with attention",
        "The decoder searches its source before every word.",
        f"runs/bahdanau {SOURCE} --panel links",
    ),
    Card(
        "gnmt",
        "GNMT",
        "What a deep translator expects at every step of its writing.",
        f"runs/gnmt {SOURCE} --view next --panel 1",
    ),
    Card(
        "transformer",
        "Transformer",
        "Where a translation looks, by layer and head.",
        f"runs/transformer {SOURCE} --layer 2 --panel weights",
    ),
    Card(
        "gpt",
        "GPT",
        "Self-attention: which word looks at which.",
        f'runs/gpt "{LONG}" --view attention --layer 2 --panel weights',
    ),
    Card(
        "bert",
        "BERT",
        "Both sides at once: what stands at a mask.",
        'runs/bert "Jonas lived in a small [MASK] near the harbour ." --view fill --panel 1',
    ),
    Card(
        "backpack",
        "Backpack",
        "Senses: what each meaning of each word brings to the next.",
        f'runs/backpack "{STORY} Jonas had a" --panel 1',
    ),
    Card(
        "s4d",
        "S4D",
        "A state space: how long its channels hear what they read.",
        f'runs/s4d "{STORY}" --view kernels --panel 1',
    ),
    Card(
        "mamba",
        "Mamba",
        "Selection: how much of each word each channel lets into its state.",
        'runs/mamba "Jonas lived in a small house ." --view selection --panel steps_by_channel',
    ),
    Card(
        "mamba2",
        "Mamba-2",
        "The matrix that a scan is equal to.",
        f'runs/mamba2 "{STORY}" --view selection --panel matrix',
    ),
    Card(
        "reviews",
        "Classifier",
        "What the answer owes to each word: how it changes without it.",
        f"runs/reviews {REVIEW} --view drop --panel 1",
    ),
    Card(
        "linear",
        "Linear model",
        "The n-grams that speak most for and against a class.",
        f"runs/linear {REVIEW} --view weights --panel class-1",
    ),
    Card(
        "tags",
        "Tagger",
        "The tags of every word, and how sure each is.",
        f"runs/tags {SENTENCE} --view answer --panel 1",
    ),
    Card(
        "hmm",
        "HMM",
        "How likely each tag is, all ways to tag the sentence together.",
        f"runs/hmm {SENTENCE} --view tags --panel chances",
    ),
    Card("shapes", "Captioner", "Where in a picture it looks for a word.", "runs/shapes --panel picture"),
    Card(
        "market",
        "Forecaster",
        "The hours ahead as bands, and what came.",
        "runs/market --view forecast --panel forecast",
    ),
    Card("lear", "LEAR", "A lasso over days before: which hours count.", "runs/lear --view lags --panel 1"),
]
INSTRUMENTS = [
    Card(
        "steps",
        "Worked numbers",
        "Self-attention over three inputs, a step at a time.",
        f"steps three-inputs {' '.join(f'--panel {key}' for key in SHOWN)} --animate steps.svg",
    ),
    Card(
        "words",
        "An alignment, word by word",
        "A translation as it is written, and where it looks.",
        f"runs/bahdanau {SOURCE} --panel links --animate words.svg --seconds 1",
    ),
    Card(
        "heads",
        "All heads",
        "Every head of a model: where it looks, and its habit.",
        f'runs/gpt "{STORY}" --view heads --panel 2',
    ),
    Card(
        "next",
        "What comes next",
        "The chances of the next word: what was told is a colour.",
        f'runs/gpt "{LONG}" --view next --panel raw',
    ),
    Card(
        "drop",
        "What if",
        "How the next word changes where one is left out.",
        'runs/gpt "Jonas lived in a small" --view drop --panel 1',
    ),
    Card(
        "states",
        "States",
        "How the state of a recurrence moves from word to word.",
        f'runs/lstm "{STORY}" --view states --panel 1',
    ),
    Card(
        "positions",
        "Positions",
        "Sinusoids, as the Transformer adds them: its first four columns.",
        "steps positions --panel waves",
    ),
]


def make(runs: Path, only: str = "") -> None:
    """Draw all pictures again, or one, and write the page."""
    FOLDER.mkdir(exist_ok=True)
    commit = made_at()
    for card in (*FAMILIES, *INSTRUMENTS):
        if only in ("", card.name):
            _train(card.run, runs)
            _draw(card, runs, commit)
            print(card.name)
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")


def make_first(runs: Path) -> None:
    """Draw the first picture of the README again."""
    import first

    if not (runs / "first" / "report.json").exists():
        runs.mkdir(exist_ok=True)
        _regard(runs, f"{first.COMMAND} --out runs/first")
    folder, commit = DOCS / "first", made_at()
    folder.mkdir(exist_ok=True)
    for name, text in first.pictures(runs / "first").items():
        (folder / name).write_text(stamped(text, commit, first.COMMAND), encoding="utf-8")


def made_at() -> str:
    """The commit of the code."""
    asked = ("git", "-C", str(DOCS), "rev-parse", "--short=12", "HEAD")
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def _train(name: str, runs: Path) -> None:
    if name and not (runs / name).exists():
        runs.mkdir(exist_ok=True)
        _regard(runs, f"regard train {RUNS[name]} --out runs/{name} --quiet")


def _draw(card: Card, runs: Path, commit: str) -> None:
    place = FOLDER / f"{card.name}.svg"
    _regard(runs, re.sub(rf"(?<= ){card.name}\.svg", str(place), card.command))
    if not place.exists():
        raise SystemExit(f"{card.name}: takes more than one slide; ask for less with --panel")
    place.write_text(stamped(place.read_text(encoding="utf-8"), commit, card.command), encoding="utf-8")


def _regard(runs: Path, command: str) -> None:
    """Run a command where `runs/` is the folder of the runs, in this process, which loads torch once."""
    with contextlib.chdir(runs.resolve().parent):
        code = main(shlex.split(command.replace("runs/", f"{runs.name}/"))[1:])
    if code:
        raise SystemExit(f"{command}: exit code {code}")


def stamped(svg: str, commit: str, command: str) -> str:
    """A picture that says of which commit it is, and how it was made."""
    return svg.replace("</title>", f"</title><metadata>commit {commit}; {escape(command)}</metadata>", 1)


def page() -> str:
    """The text of docs/gallery.md."""
    return "\n".join([*_head(), *_cards("Families", FAMILIES), *_cards("Instruments", INSTRUMENTS), *_foot()])


def _head() -> Iterator[str]:
    yield "# Gallery"
    yield ""
    yield "One telling picture of every family and instrument, and the command that makes it. The runs were trained for"
    yield "under two minutes each on the built-in worlds ([how](#the-runs)); [inside.md](inside.md) lists every view."
    yield "For a presentation there is `--size slide`; `--png` gives pixels, `--animate` a moving picture."


def _cards(title: str, cards: list[Card]) -> Iterator[str]:
    yield from ("", f"## {title}")
    for card in cards:
        picture = f"[![{card.title}: {card.told}](gallery/{card.name}.svg)](gallery/{card.name}.svg)"
        yield from ("", f"### {card.title}", "", card.told, "", picture, "", f"`{card.command}`")


def _foot() -> Iterator[str]:
    yield from ("", "## The runs", "", "| run | trained by |", "| --- | --- |")
    yield from (f"| `{name}` | `regard train {how} --out runs/{name}` |" for name, how in RUNS.items())
    yield from ("", "Each picture says in its metadata of which commit it was made; `python docs/pictures.py gallery`")
    yield from ("makes all of them again.", "")
